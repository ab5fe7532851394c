package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/internal/mcpclient"
)

func TestWrongAnswersAreExplained(t *testing.T) {
	for name, test := range map[string]struct {
		pairs []string
		want  string
	}{
		"no value": {[]string{"confirm"}, `answer "confirm": write KEY=JSON, such as confirm='{"confirm":true}' or confirm=decline`},
		"no key":   {[]string{"=accept"}, `answer "=accept": write KEY=JSON, such as confirm='{"confirm":true}' or confirm=decline`},
		"no JSON":  {[]string{"a=yes"}, `answer to a: yes is neither JSON nor accept, decline or cancel`},
		"empty":    {[]string{"a="}, `answer to a:  is neither JSON nor accept, decline or cancel`},
		"no object": {[]string{"a=true"},
			`answer to a: true must be an object, such as {"confirm":true}, or accept, decline or cancel`},
		"twice": {[]string{"a=accept", "a=decline"}, `there are two answers to a`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseAnswers(test.pairs)
			require.EqualError(t, err, test.want)
			assertUsage(t, err)
		})
	}
}

func elicit(schema string) mcpclient.Request {
	return mcpclient.Request{Method: methodElicit, Params: json.RawMessage(`{"message":"m","requestedSchema":` + schema + `}`)}
}

func TestAnswersBeforehand(t *testing.T) {
	confirm := elicit(`{"properties":{"confirm":{"type":"boolean"},"note":{"type":"string"}},"required":["confirm"]}`)
	defaults := elicit(`{"properties":{"n":{"type":"integer","default":3}},"required":["n"]}`)
	name := elicit(`{"properties":{"name":{"type":"string"}},"required":["name"]}`)
	page := mcpclient.Request{Method: methodElicit, Params: json.RawMessage(`{"mode":"url","message":"m","url":"https://example.com"}`)}
	sample := mcpclient.Request{Method: "sampling/createMessage", Params: json.RawMessage(`{}`)}
	for name, test := range map[string]struct {
		given   []string
		yes     bool
		key     string
		request mcpclient.Request
		want    string // "" for nobody to answer
		err     string
	}{
		"content":              {[]string{`confirm-1={"confirm":false}`}, false, "confirm-1", confirm, `{"action":"accept","content":{"confirm":false}}`, ""},
		"by stem":              {[]string{`confirm={"confirm":true}`}, false, "confirm-12", confirm, `{"action":"accept","content":{"confirm":true}}`, ""},
		"in a later run":       {[]string{`confirm=accept`}, false, "confirm-2-01a22f96", confirm, `{"action":"accept","content":{"confirm":true}}`, ""},
		"of an activity":       {[]string{`confirm=accept`}, false, "confirm-01a22f96-fd7e-7e6c-8521-2d7a89d14693", confirm, `{"action":"accept","content":{"confirm":true}}`, ""},
		"key before stem":      {[]string{`confirm=accept`, `confirm-2=decline`}, false, "confirm-2", confirm, `{"action":"decline"}`, ""},
		"another key":          {[]string{`confirm-1=accept`}, false, "confirm-2", confirm, "", ""},
		"whole result":         {[]string{`a={"action":"cancel"}`}, false, "a", confirm, `{"action":"cancel"}`, ""},
		"content named action": {[]string{`a={"action":"accept","confirm":true}`}, false, "a", confirm, `{"action":"accept","content":{"action":"accept","confirm":true}}`, ""},
		"accept":               {[]string{`a=accept`}, false, "a", defaults, `{"action":"accept","content":{"n":3}}`, ""},
		"accept a URL":         {[]string{`a=accept`}, false, "a", page, `{"action":"accept"}`, ""},
		"accept cannot":        {[]string{`a=accept`}, false, "a", name, "", `answer to a: accept is not enough: field "name" has no default`},
		"yes":                  {nil, true, "a", confirm, `{"action":"accept","content":{"confirm":true}}`, ""},
		"yes cannot":           {nil, true, "a", name, "", ""},
		"yes opens no URL":     {nil, true, "a", page, "", ""},
		"given before yes":     {[]string{`a=decline`}, true, "a", confirm, `{"action":"decline"}`, ""},
		"another request":      {[]string{`a={"role":"assistant"}`}, false, "a", sample, `{"role":"assistant"}`, ""},
		"yes is for forms":     {nil, true, "a", sample, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			given, err := parseAnswers(test.given)
			require.NoError(t, err)
			a := &answerer{given: given, yes: test.yes, used: map[string]bool{}}
			got, err := a.to(t.Context(), test.key, test.request)
			switch {
			case test.err != "":
				require.EqualError(t, err, test.err)
			case test.want == "":
				require.ErrorIs(t, err, errUnanswered)
			default:
				require.NoError(t, err)
				assert.JSONEq(t, test.want, string(got))
				_, err = a.to(t.Context(), test.key, test.request)
				require.ErrorIs(t, err, errUnanswered, "the same question once more")
			}
		})
	}
}

func TestOpenQuestionsTellHowToAnswer(t *testing.T) {
	requests := mcpclient.Requests{"confirm-1": elicit(`{"properties":{"who's":{"type":"boolean"}},"required":["who's"]}`)}
	command := "taskbridge task answer ID " + exampleAnswer("confirm-1", requests["confirm-1"])
	assert.Equal(t, `{"key":"confirm-1","method":"elicitation/create","params":{"message":"m","requestedSchema":{"properties":{"who's":{"type":"boolean"}},"required":["who's"]}}}
answer with: taskbridge task answer ID 'confirm-1={"who'\''s":true}'`, openQuestions(requests, command))
}

func TestQuestionsComeInTheOrderOfTheirNumbers(t *testing.T) {
	requests := mcpclient.Requests{"b-10": {}, "a-2": {}, "z-1": {}, "plain": {}}
	assert.Equal(t, []string{"plain", "z-1", "a-2", "b-10"}, sortedKeys(requests))
}
