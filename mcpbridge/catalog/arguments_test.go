package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/mcpbridge/catalog"
)

const buildInput = `    input:
      type: object
      required: [package]
      properties:
        package: { type: string, minLength: 1, pattern: "^[a-z./]+$" }
        retries: { type: integer, minimum: 0, maximum: 10, x-mcp-header: Retries }
        level: { enum: [low, high] }
        ratio: { type: number, exclusiveMinimum: 0, multipleOf: 0.25 }
        big: { type: integer, maximum: 9007199254740993 }
        tags: { type: array, maxItems: 2, uniqueItems: true, items: { type: string } }
        target: { anyOf: [ { type: string }, { type: object, required: [os], properties: { os: {}, arch: {} }, additionalProperties: false } ] }
        when: { oneOf: [ { type: integer }, { type: number } ] }
        either: { anyOf: [ { const: a }, { minimum: 5, type: number }, { type: number, maximum: 1 } ] }
        names: { type: object, propertyNames: { maxLength: 3 } }
        none: false
        not: { not: { const: x } }
        safe: { type: integer, x-mcp-header: Safe }
`

func TestArgumentErrorsTellHowToDoBetter(t *testing.T) {
	build := tool(t, buildInput)
	for args, want := range map[string]string{
		`{}`:               `/package: is required`,
		``:                 `/package: is required`,
		`null`:             `/package: is required`,
		`[]`:               `the arguments: must be an object, found an array`,
		`{"package"`:       `the arguments: not valid JSON: it ends too early`,
		`{"package":"a",}`: `the arguments: not valid JSON: invalid character '}' looking for beginning of object key string`,
		`{"package":"a"}x`: `the arguments: not valid JSON: invalid character 'x' looking for beginning of value`,
		`{"package":5}`:    `/package: must be a string, found the number 5`,
		`{"package":""}`: `/package: must have at least 1 characters, has 0` + "\n" +
			`/package: must match the regular expression ^[a-z./]+$, found the string ""`,
		`{"pakage":"./a"}`:                               `/package: is required` + "\n" + `/pakage: is not an argument of this tool; did you mean "package"?`,
		`{"package":"a","retries":"3"}`:                  `/retries: must be an integer, found the string "3"`,
		`{"package":"a","retries":11}`:                   `/retries: must be at most 10, found the number 11`,
		`{"package":"a","retries":1.5}`:                  `/retries: must be an integer, found the number 1.5`,
		`{"package":"a","retries":null}`:                 `/retries: must be an integer, found nothing (null)`,
		`{"package":"a","level":"medium"}`:               `/level: must be one of "low" or "high", found the string "medium"`,
		`{"package":"a","ratio":0}`:                      `/ratio: must be more than 0, found the number 0`,
		`{"package":"a","ratio":0.3}`:                    `/ratio: must be a multiple of 0.25, found the number 0.3`,
		`{"package":"a","big":9007199254740994}`:         `/big: must be at most 9007199254740993, found the number 9007199254740994`,
		`{"package":"a","ratio":1e999999}`:               `/ratio: the exponent is out of range`,
		`{"package":"a","ratio":1e99999999999999999999}`: `/ratio: the exponent is out of range`,
		`{"package":"a","tags":["x","x",3]}`: `/tags/2: must be a string, found the number 3` + "\n" +
			`/tags: items must differ, but items 0 and 1 are equal` + "\n" + `/tags: must have at most 2 items, has 3`,
		`{"package":"a","target":{"arch":"x"}}`:         `/target/os: is required`,
		`{"package":"a","target":{"os":"x","archi":1}}`: `/target/archi: is not a known property`,
		`{"package":"a","target":7}`:                    `/target: fits none of the alternatives: must be a string, found the number 7; or must be an object, found the number 7`,
		`{"package":"a","when":7}`:                      `/when: fits more than one of the alternatives of which exactly one may fit`,
		`{"package":"a","either":3}`: `/either: fits none of the alternatives: must be "a", found the number 3; ` +
			`or must be at least 5, found the number 3; or must be at most 1, found the number 3`,
		`{"package":"a","names":{"ok":1,"long~/er":2}}`: `/names/long~0~1er: the name is not allowed here: it must have at most 3 characters, has 8`,
		`{"package":"a","none":1}`:                      `/none: is not allowed here`,
		`{"package":"a","not":"x"}`:                     `/not: the string "x" is one of the values that are not allowed`,
		`{"package":"a","safe":9007199254740992}`:       `/safe: must be between -(2^53-1) and 2^53-1, because it is also sent as an HTTP header`,
		`{"package":"a","package":"b"}`:                 `the arguments: package: is already given at line 1, column 2`,
		`{"package":"a","names":{"a":1,"a":2}}`:         `the arguments: names.a: is already given at line 1, column 25`,
		`{"package":"` + strings.Repeat("x", 100) + `!"}`: `/package: must match the regular expression ^[a-z./]+$, found the string "` +
			strings.Repeat("x", 60) + `…"`,
	} {
		t.Run(args, func(t *testing.T) {
			err := build.ValidateArguments(json.RawMessage(args))
			var invalid *catalog.ArgumentError
			require.ErrorAs(t, err, &invalid)
			var got []string
			for _, v := range invalid.Violations {
				got = append(got, v.String())
			}
			assert.Equal(t, want, strings.Join(got, "\n"))
		})
	}
}

func TestArgumentErrorsWordEveryKeyword(t *testing.T) {
	words := tool(t, `    input:
      type: object
      minProperties: 1
      maxProperties: 2
      dependentRequired: { a: [b, c] }
      properties:
        a: { const: { x: [1] } }
        b: { type: number, exclusiveMaximum: 0.1, minimum: -12345678901234567890 }
        c: { type: array, minItems: 1, contains: { const: 1 } }
        d: { type: [array, "null", string], maxLength: 1 }
        e: { type: array, items: { type: object, additionalProperties: { type: object, propertyNames: { enum: [k] } } } }
        f: { allOf: [ { $ref: "#/$defs/f" } ] }
        g: { type: object, additionalProperties: false, properties: { n: { type: array, items: { type: object, additionalProperties: false } } } }
        h: { anyOf: [ { type: object, properties: { x: { type: object, required: [y] } } }, { type: object, required: [z] } ] }
      $defs: { f: { multipleOf: 3 } }
`)
	for args, want := range map[string]string{
		`{}`:                                  `the arguments: must have at least 1 members, has 0`,
		`{"b":-1,"c":[1],"f":3}`:              `the arguments: must have at most 2 members, has 3`,
		`{"a":{"x":[1]}}`:                     `the arguments: with "a", b and c must be given too`,
		`{"a":1,"b":0}`:                       `/a: must be {"x":[1]}, found the number 1` + "\n" + `the arguments: with "a", c must be given too`,
		`{"b":0.1}`:                           `/b: must be less than 0.1, found the number 0.1`,
		`{"b":-12345678901234567891}`:         `/b: must be at least -12345678901234567890, found the number -12345678901234567891`,
		`{"c":[]}`:                            `/c: must have at least 1 items, has 0` + "\n" + `/c: no items match contains schema`,
		`{"d":true}`:                          `/d: must be null, a string or an array, found true`,
		`{"d":"ab"}`:                          `/d: must have at most 1 characters, has 2`,
		`{"e":[{"x":{"k":1}},{"x":{"l":1}}]}`: `/e/1/x/l: the name is not allowed here: it must be one of "k", found the string "l"`,
		`{"f":4}`:                             `/f: must be a multiple of 3, found the number 4`,
		`{"g":{"m":1}}`:                       `/g/m: is not a known property; did you mean "n"?`,
		`{"g":{"other":1}}`:                   `/g/other: is not a known property; known are n`,
		`{"g":{"n":[{"a":1}]}}`:               `/g/n/0/a: is not a known property`,
		`{"h":{"x":{}}}`:                      `/h: fits none of the alternatives: /x/y is required; or /z is required`,
		`{"whatever":1}`:                      `/whatever: is not an argument of this tool; known are a, b, c, d, e, f, g and h`,
	} {
		t.Run(args, func(t *testing.T) {
			var invalid *catalog.ArgumentError
			require.ErrorAs(t, words.ValidateArguments(json.RawMessage(args)), &invalid)
			var got []string
			for _, v := range invalid.Violations {
				got = append(got, v.String())
			}
			assert.Equal(t, want, strings.Join(got, "\n"))
		})
	}
}

func TestArgumentErrorIsOneLineForOneViolation(t *testing.T) {
	build := tool(t, buildInput)
	require.EqualError(t, build.ValidateArguments(nil), "invalid arguments: /package: is required")
	require.EqualError(t, build.ValidateArguments(json.RawMessage(`{"level":1}`)),
		"invalid arguments:\n- /level: must be one of \"low\" or \"high\", found the number 1\n- /package: is required")
}

func TestValidArgumentsPass(t *testing.T) {
	build := tool(t, buildInput)
	for _, args := range []string{
		`{"package":"./a"}`,
		` { "package" : "./a" , "big" : 9007199254740993, "retries": 3.0, "safe": -9007199254740991 } `,
		`{"package":"a","target":"linux","tags":["a","b"],"level":"low","ratio":1e2,"names":{"a":1}}`,
	} {
		assert.NoError(t, build.ValidateArguments(json.RawMessage(args)), args)
	}
	plain := tool(t, "")
	for _, args := range []string{"", " ", "null", "{}"} {
		assert.NoError(t, plain.ValidateArguments(json.RawMessage(args)), args)
	}
	require.EqualError(t, plain.ValidateArguments(json.RawMessage(`{"a":1}`)), "invalid arguments: /a: is not an argument of this tool")
}

func TestClientsCannotSetWhatTheOperatorSets(t *testing.T) {
	open := tool(t, `    input: { type: object, additionalProperties: true }
    with: { pipeline: { safe: true } }
    confirm: { message: Sure?, argument: approval }
`)
	for _, name := range []string{"pipeline", "Pipeline", `pip\u0065line`, "approval", "APPROVAL"} {
		args := json.RawMessage(`{"other":1,"` + name + `":{"safe":false}}`)
		assert.ErrorContains(t, open.ValidateArguments(args), "is not an argument of this tool", name)
		_, err := open.WorkflowArguments(args, nil)
		assert.ErrorContains(t, err, "is not an argument of this tool", name)
	}
	assert.NoError(t, open.ValidateArguments(json.RawMessage(`{"other":1}`)))

	closed := tool(t, "    with: { pipeline: 1 }\n")
	assert.Equal(t, strings.ReplaceAll(closed.ValidateArguments(json.RawMessage(`{"pipelinx":1}`)).Error(), "pipelinx", "pipeline"),
		closed.ValidateArguments(json.RawMessage(`{"pipeline":1}`)).Error(), "a reserved name looks like any unknown one")
}

func workflowArguments(t *testing.T, tool *catalog.Tool, args, confirmed string) []string {
	t.Helper()
	raw, err := tool.WorkflowArguments(json.RawMessage(args), json.RawMessage(confirmed))
	require.NoError(t, err)
	var texts []string
	for _, r := range raw {
		texts = append(texts, string(r))
	}
	return texts
}

const mergedTool = `    input:
      type: object
      properties:
        a: { default: { deep: [1.0, 12345678901234567890] } }
        b: { type: integer }
        c: { type: string, default: c }
    with: { z: 1, y: 98765432109876543210 }
    confirm: { message: Sure?, argument: approval }
`

func TestObjectArgumentsKeepEveryByteOfTheClient(t *testing.T) {
	merged := tool(t, mergedTool)
	assert.Equal(t,
		[]string{`{"b":123456789012345678901234567890,"c":"\u00e9 < é","a":{"deep":[1.0,12345678901234567890]},"approval":{ "ok" : 1e0 },"y":98765432109876543210,"z":1}`},
		workflowArguments(t, merged, ` { "b" : 123456789012345678901234567890 , "c":"\u00e9 < é" } `, ` { "ok" : 1e0 } `))
	assert.Equal(t,
		[]string{`{"\u0063":{ "x":[ 1 ,2 ] },"a":{"deep":[1.0,12345678901234567890]},"approval":{},"y":98765432109876543210,"z":1}`},
		workflowArguments(t, merged, `{"\u0063":{ "x":[ 1 ,2 ] }}`, ""))
	assert.Equal(t, []string{`{}`}, workflowArguments(t, tool(t, ""), "", ""))
}

func TestPositionalArgumentsFollowTheListedOrder(t *testing.T) {
	positional := tool(t, mergedTool+"    arguments: positional\n    positional: [z, b, approval, a, y, c]\n")
	assert.Equal(t, []string{"1", "null", `{"ok":true}`, `{"deep":[1.0,12345678901234567890]}`, "98765432109876543210", `"x"`},
		workflowArguments(t, positional, `{"c":"x"}`, `{"ok":true}`))

	open := tool(t, `    input: { type: object, additionalProperties: true, properties: { a: {} } }
    arguments: positional
    positional: [a]
`)
	_, err := open.WorkflowArguments(json.RawMessage(`{"b":1}`), nil)
	assert.EqualError(t, err, `"b" has no place among the positional arguments a`)
}

func TestNoArgumentsAreNone(t *testing.T) {
	assert.Empty(t, workflowArguments(t, tool(t, "    arguments: none\n"), "{}", ""))
}

func TestWorkflowArgumentsRefuseWhatIsNoObject(t *testing.T) {
	merged := tool(t, mergedTool)
	for _, test := range []struct{ args, confirmed, want string }{
		{`[1]`, ``, `arguments: expected a JSON object, found a list`},
		{`{"a":1,"a":2}`, ``, `arguments: invalid arguments: the arguments: a: is already given at line 1, column 2`},
		{`{}`, `"yes"`, `confirmation: expected a JSON object, found the string "yes"`},
		{`{}`, `{`, `confirmation: invalid arguments: the arguments: not valid JSON: it ends too early`},
	} {
		_, err := merged.WorkflowArguments(json.RawMessage(test.args), json.RawMessage(test.confirmed))
		assert.EqualError(t, err, test.want)
	}
}

func TestConfirmationsAreValidated(t *testing.T) {
	asking := tool(t, `    confirm:
      message: Really deploy?
      schema:
        type: object
        properties: { reason: { type: string, minLength: 3 }, count: { type: integer, default: 1 } }
        required: [reason]
`)
	assert.Equal(t, `{"type":"object","properties":{"reason":{"type":"string","minLength":3},"count":{"type":"integer","default":1}},"required":["reason"]}`,
		string(asking.Confirm.Schema), "as written: MCP forms have no additionalProperties")
	require.NoError(t, asking.ValidateConfirmation(json.RawMessage(`{"reason":"because"}`)))
	assert.ErrorContains(t, asking.ValidateConfirmation(nil), "/reason: is required")
	assert.ErrorContains(t, asking.ValidateConfirmation(json.RawMessage(`{"reason":"because","more":1}`)), "/more: is not")
	assert.NoError(t, tool(t, "").ValidateConfirmation(json.RawMessage(`{"anything":1}`)))
}

func FuzzArguments(f *testing.F) {
	for _, args := range []string{``, `{}`, `{"a":1,"x":[{"y":2}]}`, `{"pipeline":1}`, `{"b":1e999999999}`, `{"a":1,"a":2}`, `[[`, `{"c":"\ud800"}`} {
		f.Add([]byte(args))
	}
	made, err := catalog.Parse("fuzz.yaml", []byte(withFields(`    input: { type: object, additionalProperties: true, properties: { b: { type: number, multipleOf: 0.1 } } }
    with: { pipeline: fixed }
`)))
	require.NoError(f, err)
	tool, _ := made.Tool("t")
	f.Fuzz(func(t *testing.T, args []byte) {
		if tool.ValidateArguments(args) != nil {
			return
		}
		merged, err := tool.WorkflowArguments(args, nil)
		require.NoError(t, err)
		var got map[string]any
		require.NoError(t, json.Unmarshal(merged[0], &got))
		assert.Equal(t, "fixed", got["pipeline"])
	})
}
