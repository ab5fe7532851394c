package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFieldsAreReadInTheirOrder(t *testing.T) {
	fields, err := parseObject([]byte(`{"type":"object","properties":{
		"zeta":{"type":"string"},"alpha":{"type":"boolean"},"mid":{"type":["integer","null"]}},"required":["alpha"]}`))
	require.NoError(t, err)
	require.Len(t, fields, 3)
	assert.Equal(t, "zeta", fields[0].Name)
	assert.Equal(t, "alpha", fields[1].Name)
	assert.True(t, fields[1].Required)
	assert.False(t, fields[2].Required)
	assert.Empty(t, fields[2].kind(), "several types")
}

func TestFieldsTakeWhatFits(t *testing.T) {
	const (
		colors = `{"type":"string","oneOf":[{"const":"#f00","title":"Red"},{"const":"#0f0","title":"Green"}]}`
		sizes  = `{"type":"array","items":{"type":"string","enum":["s","m","l"]},"minItems":1,"maxItems":2}`
	)
	for _, test := range []struct{ schema, typed, want, err string }{
		{`{"type":"string"}`, `a "b"`, `"a \"b\""`, ""},
		{`{"type":"string","minLength":3}`, "zö", "", "must be at least 3 characters"},
		{`{"type":"string","maxLength":2}`, "zö", `"zö"`, ""},
		{`{"type":"string","format":"email"}`, "ada@example.com", `"ada@example.com"`, ""},
		{`{"type":"string","format":"email"}`, "Ada <ada@example.com>", "", "write an e-mail address, such as ada@example.com"},
		{`{"type":"string","format":"uri"}`, "example.com", "", "write a URI, such as https://example.com/a"},
		{`{"type":"string","format":"date"}`, "2026-02-30", "", "write a date as YYYY-MM-DD"},
		{`{"type":"string","format":"date"}`, "2026-02-28", `"2026-02-28"`, ""},
		{`{"type":"string","format":"date-time"}`, "2026-02-28", "", "write a time as YYYY-MM-DDThh:mm:ssZ"},
		{`{"type":"boolean"}`, "Y", "true", ""},
		{`{"type":"boolean"}`, "no", "false", ""},
		{`{"type":"boolean"}`, "maybe", "", "write y or n"},
		{`{"type":"integer"}`, "12345678901234567890", "12345678901234567890", ""},
		{`{"type":"integer"}`, "1.5", "", `"1.5" is not a whole number`},
		{`{"type":"number"}`, "1.5", "1.5", ""},
		{`{"type":"number"}`, "0x10", "", `"0x10" is not a number`},
		{`{"type":"number"}`, "inf", "", `"inf" is not a number`},
		{`{"type":"number","minimum":1,"maximum":10}`, "11", "", "must be 1 to 10"},
		{`{"type":"string","enum":["a","2","b"]}`, "b", `"b"`, ""},
		{`{"type":"string","enum":["a","2","b"]}`, "1", `"a"`, ""},
		{`{"type":"string","enum":["a","2","b"]}`, "2", `"2"`, ""},
		{`{"type":"string","enum":["a","2","b"]}`, "4", "", `"4" is not one of them: write a number from 1 to 3, or the text`},
		{`{"type":"string","enum":["a"],"enumNames":["First"]}`, "First", `"a"`, ""},
		{colors, "Green", `"#0f0"`, ""},
		{colors, "#f00", `"#f00"`, ""},
		{sizes, "1, l", `["s","l"]`, ""},
		{sizes, "1,2,3", "", "must be 1 to 2 choices"},
		{`{"type":"object"}`, `{"a":1}`, `{"a":1}`, ""},
		{`{"type":"object"}`, `a`, "", `write JSON, such as "text", 1, [1,2] or {"a":1}`},
	} {
		t.Run(test.schema+" "+test.typed, func(t *testing.T) {
			var f field
			require.NoError(t, json.Unmarshal([]byte(test.schema), &f))
			got, err := f.parse(test.typed)
			if test.err != "" {
				require.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, test.want, string(got))
		})
	}
}

func TestPromptsSayWhatToType(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"string"}`: "f: ",
		`{"type":"string","title":"Name","description":"your full name","default":"Ada"}`: "Name - your full name [Ada]: ",
		`{"type":"string","format":"date"}`:                                               "f (date): ",
		`{"type":"boolean","default":false}`:                                              "f (y/n) [n]: ",
		`{"type":"integer","minimum":1,"maximum":9}`:                                      "f (integer, 1 to 9): ",
		`{"oneOf":[{"const":1,"title":"One"},{"const":2}],"default":1}`:                   "f (1-2) [One]: ",
		`{"type":"array","items":{"enum":["a","b"]},"default":["a","b"]}`:                 "f (numbers 1-2 with commas) [a,b]: ",
		`{"type":"object"}`: "f (JSON): ",
	} {
		f := field{Name: "f"}
		require.NoError(t, json.Unmarshal([]byte(schema), &f))
		assert.Equal(t, want, f.prompt(f.Default), schema)
	}
}
