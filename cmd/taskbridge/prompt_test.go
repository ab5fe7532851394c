package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAsking(t *testing.T) {
	const (
		noFields = `{"message":"Go on?","requestedSchema":{"type":"object","properties":{}}}`
		page     = `{"mode":"url","message":"Log in.","url":"https://login.example.com/a"}`
		oneField = `{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}`
		form     = `{"mode":"form","message":"Deploy","requestedSchema":{"type":"object","properties":{
			"env":{"type":"string","enum":["test","live"],"default":"test"},
			"note":{"type":"string"},
			"sure":{"type":"boolean"}},"required":["env","sure"]}}`
	)
	for name, test := range map[string]struct{ question, typed, want string }{
		"no fields, yes":            {noFields, "y\n", `{"action":"accept","content":{}}`},
		"no fields, no":             {noFields, "n\n", `{"action":"decline"}`},
		"URL, agreed":               {page, "yes\n", `{"action":"accept"}`},
		"URL, refused":              {page, "n\n", `{"action":"decline"}`},
		"one field":                 {oneField, "Ada\n", `{"action":"accept","content":{"name":"Ada"}}`},
		"a required field, left":    {oneField, "\nAda\n", `{"action":"accept","content":{"name":"Ada"}}`},
		"no line break at the end":  {oneField, "Ada", `{"action":"accept","content":{"name":"Ada"}}`},
		"declined":                  {oneField, ":decline\n", `{"action":"decline"}`},
		"cancelled":                 {form, "2\n:cancel\n", `{"action":"cancel"}`},
		"Ctrl-D":                    {form, "2\n", `{"action":"cancel"}`},
		"defaults and optional":     {form, "\n\ny\n\n", `{"action":"accept","content":{"env":"test","sure":true}}`},
		"wrong, then right":         {form, "5\nlive\nhi\nx\nn\ny\n", `{"action":"accept","content":{"env":"live","note":"hi","sure":false}}`},
		"changed before it is sent": {form, "1\nhi\ny\nn\n2\n\n\ny\n", `{"action":"accept","content":{"env":"live","note":"hi","sure":true}}`},
	} {
		t.Run(name, func(t *testing.T) {
			result, shown, err := askWith(t.Context(), t, test.question, strings.NewReader(test.typed))
			require.NoError(t, err)
			got, err := json.Marshal(result)
			require.NoError(t, err)
			assert.JSONEq(t, test.want, string(got), shown)
		})
	}
}

func TestAFormIsShown(t *testing.T) {
	_, shown, err := askWith(t.Context(), t, `{"message":"Deploy\u001b[2J\nnow?","requestedSchema":{"properties":{
		"env":{"type":"string","title":"Environment","enum":["test","live"]},"n":{"type":"integer"}},"required":["env"]}}`,
		strings.NewReader("3\n2\n\n\n"))
	require.NoError(t, err)
	assert.Equal(t, `
example.com asks:
  Deploy[2J
  now?
  (* is required; :decline refuses, :cancel or Ctrl-D dismisses)
  1) test
  2) live
  Environment * (1-2):   ! "3" is not one of them: write a number from 1 to 2, or the text
  Environment * (1-2):   n (integer):   Send these answers? (y/n) [y]: `, shown)
}

func TestAURLIsShownWithItsHost(t *testing.T) {
	_, shown, err := askWith(t.Context(), t, `{"mode":"url","message":"Log in.","url":"https://login.example.com/a"}`, strings.NewReader("y\n"))
	require.NoError(t, err)
	assert.Contains(t, shown, "this page of login.example.com")
	assert.Contains(t, shown, "https://login.example.com/a")
}

func TestAskingEndsWithItsContext(t *testing.T) {
	silent, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := askWith(ctx, t, `{"message":"Go on?"}`, silent)
	require.ErrorIs(t, err, context.Canceled)
}

func askWith(ctx context.Context, t *testing.T, question string, in io.Reader) (elicitResult, string, error) {
	t.Helper()
	e, err := parseElicitation([]byte(question))
	require.NoError(t, err)
	var out bytes.Buffer
	p := &prompter{lines: newLineReader(in), out: &out, from: "example.com"}
	result, err := p.ask(ctx, e)
	return result, out.String(), err
}
