package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReadArguments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "arguments.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"from":"file"}`), 0o600))
	for name, test := range map[string]struct {
		args  []string
		stdin string
		want  string
	}{
		"none are an empty object": {want: `{}`},
		"JSON":                     {args: []string{`{"n":12345678901234567890}`}, want: `{"n":12345678901234567890}`},
		"a file":                   {args: []string{"@" + file}, want: `{"from":"file"}`},
		"stdin":                    {args: []string{"-"}, stdin: `{"from":"stdin"}`, want: `{"from":"stdin"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readArguments(test.args, strings.NewReader(test.stdin))
			require.NoError(t, err)
			assert.Equal(t, test.want, string(got))
		})
	}
}

func TestWrongArgumentsAreExplained(t *testing.T) {
	long := strings.Repeat("a", 300)
	for argument, want := range map[string]string{
		`{"a":x}`:                                `arguments are not JSON: invalid character 'x' at start of value at byte 5: {"a":x}`,
		`{"a":1`:                                 `arguments are not JSON: unexpected EOF at byte 6: {"a":1`,
		`{"a":1} {}`:                             `arguments are not JSON: invalid character '{' after top-level value at byte 8: {"a":1} {}`,
		`{"text":"` + long + `",x:` + long + `}`: `arguments are not JSON: invalid character 'x' at start of string (expecting '"') at byte 311: …aaaaaaaaaaaaaaaaaa",x:aaaaaaaaaaaaaaaaaa…`,
		`[1]`:                                    `arguments must be a JSON object such as {"name": "value"}, not [1]`,
		`-`:                                      `arguments on stdin are empty: write a JSON object, such as {}`,
		`@missing.json`:                          `@missing.json: no such file`,
	} {
		t.Run(clip(argument, 20), func(t *testing.T) {
			_, err := readArguments([]string{argument}, strings.NewReader(""))
			require.EqualError(t, err, want)
			assertUsage(t, err)
		})
	}
}

func assertUsage(t *testing.T, err error) {
	t.Helper()
	var exit exitError
	require.True(t, errors.As(err, &exit))
	assert.Equal(t, exitUsage, exit.code)
}

func TestExampleArguments(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object"}`:                      `{}`,
		`{"properties":{"a":{"type":"string"}}}`: `{}`,
		`{"properties":{"z":{"type":"string"},"n":{"type":"integer","minimum":5},"f":{"type":"boolean"},"l":{"type":"array"},"o":{"type":"object"}},
			"required":["n","z","f","l","o"]}`: `{"z":"…","n":5,"f":true,"l":[],"o":{}}`,
		`{"properties":{"c":{"enum":["red","blue"]},"d":{"type":"string","default":"x"}},"required":["c","d"]}`: `{"c":"red","d":"x"}`,
		`{"properties":{"any":true},"required":["any"]}`:                                                        `{"any":"…"}`,
	} {
		assert.Equal(t, want, example([]byte(schema)), schema)
	}
}
