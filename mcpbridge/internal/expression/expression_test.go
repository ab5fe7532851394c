package expression_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/mcpbridge/internal/expression"
)

func scope() *expression.Scope {
	return expression.NewScope(map[string]expression.Shape{"args": nil, "query": nil,
		"answer": {"note": nil, "where": {"city": nil}}})
}

// values are what the tests evaluate with.
func values() *expression.Values {
	return expression.NewValues(map[string]any{
		"args": json.RawMessage(`{"day":"2026-01-02","n":3,"big":9007199254740993,"huge":18446744073709551615,"f":0.1,` +
			`"whole":2.0,"list":[1,"b",null],"yes":true,"none":null,"odd-name":"x","far":1e400,"html":"<a & b>"}`),
		"query":  json.RawMessage(nil),
		"answer": map[string]json.RawMessage{"note": json.RawMessage(`"fine"`)},
	})
}

func TestTemplatesFillInValues(t *testing.T) {
	for template, want := range map[string]string{
		`"plain"`:                          `"plain"`,
		`{"b":[1.50,"x"],"a":null}`:        `{"b":[1.50,"x"],"a":null}`,
		`"${args.day}"`:                    `"2026-01-02"`,
		`"${args.n}"`:                      `3`,
		`"${args.n} days"`:                 `"3 days"`,
		`" ${args.n}"`:                     `" 3"`,
		`"${args.n}${args.n}"`:             `"33"`,
		`"${args.big}"`:                    `9007199254740993`,
		`"${args.huge}"`:                   `18446744073709551615`,
		`"${args.f}"`:                      `0.1`,
		`"${args.whole}"`:                  `2`,
		`"${args.list}"`:                   `[1,"b",null]`,
		`"of ${args.list}"`:                `"of [1,\"b\",null]"`,
		`"${args.none} ${args.yes}"`:       `"null true"`,
		`"${args.html}"`:                   `"<a & b>"`,
		`"$${args.n}"`:                     `"${args.n}"`,
		`"\u0024${args.n} \u0024{args.n}"`: `"${args.n} 3"`,
		`"$5 and $$"`:                      `"$5 and $$"`,
		`"${'}'}"`:                         `"}"`,
		`"${\"}\" + '{' + r'\\' + \"\"\"}'\"\"\"}!"`: `"}{\\}'!"`,
		`"${{'a': {'b': 1}}.a.b} end}"`:              `"1 end}"`,
		`"${args.n // how many}\n}"`:                 `3`,
		`"${args[\"odd-name\"]}"`:                    "\"x\"",
		"\"${args.`odd-name`}\"":                     `"x"`,
		`{"x":["${args.n}",{"y":"${args.f}"}]}`:      `{"x":[3,{"y":0.1}]}`,
		`"${args.?gone}"`:                            `null`,
		`"${args.?gone.orValue('x')}"`:               `"x"`,
		`"${answer}"`:                                `{"note":"fine"}`,
		`"${query}"`:                                 `null`,
		`"${b'hi'}"`:                                 `"aGk="`,
		`"${timestamp('2026-01-02T03:04:05Z')}"`:     `"2026-01-02T03:04:05Z"`,
		`"${duration('90m')}"`:                       `"1h30m0s"`,
		`"${{'z': 1, 'a': 2u}}"`:                     `{"a":2,"z":1}`,
		`"${args.day.replace('-', '/')}"`:            `"2026/01/02"`,
		`"${[1, 2].map(args, args * 2)}"`:            `[2,4]`,
	} {
		compiled, err := scope().Template(json.RawMessage(template))
		require.NoError(t, err, template)
		got, err := compiled.JSON(values())
		require.NoError(t, err, template)
		assert.Equal(t, want, string(got), template)
	}
}

func TestTemplatesWithoutAValueNameTheExpression(t *testing.T) {
	for template, want := range map[string]string{
		`{"a":"x ${args.gone}"}`:  `${args.gone}: there is no "gone"`,
		`"${query.stage}"`:        `${query.stage}: there is no "stage"`,
		`"${args.list[7]}"`:       `${args.list[7]}: there is no item [7]`,
		`"${args.n + args.day}"`:  `${args.n + args.day}: a value is of another type than it takes`,
		`"${1 / 0}"`:              `${1 / 0}: division by zero`,
		`"${args.far}"`:           `${args.far}: the number has no JSON form`,
		`"${{1: 2}}"`:             `${{1: 2}}: a map with keys of type int has no JSON form; make them strings`,
		`"${type(1)}"`:            `${type(1)}: a type has no JSON form`,
		`"${int(args.day)}"`:      `${int(args.day)}: type conversion error from 'string' to 'int'`,
		`"${args.?gone.value()}"`: `${args.?gone.value()}: optional.none() dereference`,
	} {
		compiled, err := scope().Template(json.RawMessage(template))
		require.NoError(t, err, template)
		_, err = compiled.JSON(values())
		assert.EqualError(t, err, want, template)
	}
}

func TestValuesThatAreNoJSONAreAnError(t *testing.T) {
	compiled, err := scope().Template(json.RawMessage(`"${args}"`))
	require.NoError(t, err)
	_, err = compiled.JSON(expression.NewValues(map[string]any{"args": json.RawMessage(`{`)}))
	assert.ErrorContains(t, err, "args is not JSON: ")
}

func TestConditions(t *testing.T) {
	for source, want := range map[string]bool{
		"args.yes":                         true,
		"args.n > 2.5":                     true,
		"args.n == 3.0 && args.whole == 2": true,
		"args.list.exists(x, x == 'b')":    true,
		"args.gone":                        false,
		"!args.gone":                       false,
		"args.gone.deeper == 1":            false,
		"args.list[9] == 1":                false,
		"query.waiting":                    false,
		"query == null":                    true,
		"has(args.gone) || args.yes":       true,
		"args.gone || args.yes":            true,
		"args.day.matches('^2026-')":       true,
		"timestamp(args.day + 'T00:00:00Z') > timestamp('2025-01-01T00:00:00Z')": true,
	} {
		condition, err := scope().Condition(source)
		require.NoError(t, err, source)
		got, err := condition.True(values())
		require.NoError(t, err, source)
		assert.Equal(t, want, got, source)
	}
	condition, err := scope().Condition("args.day")
	require.NoError(t, err)
	_, err = condition.True(values())
	assert.EqualError(t, err, "args.day: is of type string, and a condition is true or false")
}

func TestNumbers(t *testing.T) {
	for source, want := range map[string]float64{"args.n": 3, "args.f * 2.0": 0.2, "args.list.size()": 3, "7u": 7, "args.huge": 1 << 64} {
		number, err := scope().Number(source)
		require.NoError(t, err, source)
		got, err := number.Float(values())
		require.NoError(t, err, source)
		assert.InDelta(t, want, got, 0, source)
	}
	for source, want := range map[string]string{
		"args.gone": `args.gone: there is no "gone"`,
		"args.day":  "args.day: is of type string, and a number belongs here",
		"args.far":  "args.far: is not a finite number",
	} {
		number, err := scope().Number(source)
		require.NoError(t, err, source)
		_, err = number.Float(values())
		assert.EqualError(t, err, want)
	}
}

func TestMistakesInExpressions(t *testing.T) {
	for source, want := range map[string]string{
		"":                        "is empty; write an expression",
		" ":                       "is empty; write an expression",
		"${args.yes}":             "is an expression as a whole; write it without ${ and }",
		"args.n >":                "character 9: the expression ends too early",
		"args.n > ) 1":            `character 10: unexpected ")"`,
		"args.n = 1":              "character 8: = does not compare; write ==",
		"args.day == 'x":          `character 13: cannot read 'x; is a quote missing?`,
		"arg.yes":                 `unknown variable "arg"; did you mean "args"?`,
		"memory.x":                `unknown variable "memory"; known are answer, args and query`,
		"args.n > other":          `unknown variable "other"; known are answer, args and query`,
		"args.day.startWith('2')": `unknown function "startWith"; did you mean "startsWith"?`,
		"frobnicate(args)":        `unknown function "frobnicate"; those of CEL and its strings extension are known`,
		"1 + 'a' == 2":            "character 3: + does not take int, string",
		"args.yes &&\n 1":         "line 2, character 2: expected type 'bool' but found 'int'",
		"'a'.matches('(')":        "error parsing regexp: missing closing ): `(`",
		"'a'":                     "is of type string, and a condition is true or false",
		"1 + args.n":              "is of type int, and a condition is true or false",
		"answer.notes == 'a'":     `answer has no "notes"; did you mean "note"?`,
		"has(answer.notes)":       `answer has no "notes"; did you mean "note"?`,
		"answer.where.x == 1":     `answer.where has no "x"; it has city`,
		"answer['zzzz'] == 1":     `answer has no "zzzz"; it has note and where`,
		"answer.?zzzz == 1":       `answer has no "zzzz"; it has note and where`,
		"answer.note.any == 1 && args.list.exists(answer, answer.zzzz)": "",
		strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300):       "expression recursion limit exceeded: 250",
	} {
		_, err := scope().Condition(source)
		if want == "" {
			assert.NoError(t, err, source)
			continue
		}
		assert.ErrorContains(t, err, want, source)
	}
	_, err := scope().Number("'a'")
	assert.EqualError(t, err, "is of type string, and a number belongs here")
	var problem *expression.Problem
	_, err = scope().Condition("memory.x")
	require.ErrorAs(t, err, &problem)
	assert.Equal(t, "memory", problem.Unknown)
}

func TestMistakesInTemplatesSayWhere(t *testing.T) {
	for template, want := range map[string]struct {
		path    []any
		message string
	}{
		`"${args.n"`:                 {nil, "${args.n has no } that ends it; write $${ for the characters ${ themselves"},
		`"${'a}"`:                    {nil, "${'a} has no } that ends it; write $${ for the characters ${ themselves"},
		`{"a":["x",{"b":"${arg}"}]}`: {[]any{"a", 1, "b"}, `${arg}: unknown variable "arg"; did you mean "args"?`},
		`{"a/b":{"~":"${}"}}`:        {[]any{"a/b", "~"}, "${}: is empty; write an expression"},
		`[{"${args.n}":1}]`:          {[]any{0, "${args.n}"}, "the name of a member cannot have ${ in it; expressions are for values"},
		`["a","${args.n + }"]`:       {[]any{1}, "${args.n + }: character 10: the expression ends too early"},
	} {
		_, err := scope().Template(json.RawMessage(template))
		var problem *expression.Problem
		require.ErrorAs(t, err, &problem, template)
		assert.Equal(t, want.path, problem.Path, template)
		assert.Equal(t, want.message, problem.Message, template)
	}
	_, err := scope().Template(json.RawMessage(`{`))
	assert.ErrorContains(t, err, "is not JSON: ")
}

func TestReplaceAndJoin(t *testing.T) {
	for source, want := range map[string]string{
		"'aXbXc'.replace('X', '--')":    "a--b--c",
		"'aXbXc'.replace('X', '-', 1)":  "a-bXc",
		"'aXbXc'.replace('X', '-', 0)":  "aXbXc",
		"'aXbXc'.replace('X', '-', -1)": "a-b-c",
		"'né'.replace('', '.')":         ".n.é.",
		"'né'.replace('', '.', 2)":      ".n.é",
		"['a','','b'].join(', ')":       "a, , b",
		"['','a'].join('-')":            "-a",
		"['a','b'].join()":              "ab",
	} {
		compiled, err := scope().Text("${" + source + "}")
		require.NoError(t, err, source)
		got, err := compiled.String(values(), nil)
		require.NoError(t, err, source)
		assert.Equal(t, want, got, source)
	}
}

// TestNoExpressionHangs has expressions that would take hours or all memory. That they do not is that the test ends.
func TestNoExpressionHangs(t *testing.T) {
	items := strings.TrimSuffix(strings.Repeat("1,", 20_000), ",")
	given := func() *expression.Values {
		return expression.NewValues(map[string]any{
			"args": json.RawMessage(`{"list":[` + items + `],"text":"` + strings.Repeat("a", 1<<20) + `","short":"` + strings.Repeat("a", 1<<16) + `"}`)})
	}
	for _, source := range []string{
		"args.list.exists(x, args.list.exists(y, args.list.exists(z, x + y + z < 0)))",
		"args.list.map(x, args.list)",
		"args.list.map(x, args.list.map(y, args.list.map(z, z)))",
		"args.list.map(x, args.short + args.short)",
		"args.list.filter(x, (args.text + args.text).size() > 0)",
		"args.list.filter(x, args.text.matches('(a|aa|aaa)+b'))",
		"args.list.filter(x, args.text.contains(args.short + 'b'))",
		"args.text.replace('a', args.text)",
		"args.text.replace('', args.short)",
		"args.list.map(x, args.short).join(args.short)",
		"args.text" + strings.Repeat(" + args.text", 240),
		"args.list" + strings.Repeat(" + args.list", 240),
		"[1,2,3,4,5,6,7,8,9].map(a, [1,2,3,4,5,6,7,8,9].map(b, [1,2,3,4,5,6,7,8,9].map(c, [1,2,3,4,5,6,7,8,9].map(d, [1,2,3,4,5,6,7,8,9].map(e, [1,2,3,4,5,6,7,8,9].map(f, args.list))))))",
	} {
		compiled, err := scope().Text("${" + source + "}")
		require.NoError(t, err, source)
		_, err = compiled.String(given(), nil)
		var failed *expression.Error
		assert.ErrorAs(t, err, &failed, source)
	}
}

func TestOrdinaryListsAreWithinTheBounds(t *testing.T) {
	items := strings.TrimSuffix(strings.Repeat(`{"id":12,"name":"step"},`, 5_000), ",")
	condition, err := scope().Condition("query.steps.filter(s, s.name == 'step').size() == 5000 && query.steps.all(s, s.id == 12)")
	require.NoError(t, err)
	yes, err := condition.True(expression.NewValues(map[string]any{"query": json.RawMessage(`{"steps":[` + items + `]}`)}))
	require.NoError(t, err)
	assert.True(t, yes)
}

func TestLargeValuesPassThrough(t *testing.T) {
	large := json.RawMessage(`["` + strings.Repeat("a", 1<<20) + `"]`)
	compiled, err := scope().Template(json.RawMessage(`"${args}"`))
	require.NoError(t, err)
	got, err := compiled.JSON(expression.NewValues(map[string]any{"args": large}))
	require.NoError(t, err)
	assert.Equal(t, string(large), string(got))

	twice, err := scope().Template(json.RawMessage(`["${args}","${args}","${args}"]`))
	require.NoError(t, err)
	_, err = twice.JSON(expression.NewValues(map[string]any{"args": large}))
	assert.ErrorContains(t, err, "the result is too large")
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{`"${args.a}"`, `{"a":["${args.list.map(x, x)} $${"]}`, `"${'}'}"`, `"${r'''}"`, `"${{'a':1}}"`,
		`"${args.?a.orValue({})}"`, `"${1.0/0.0}"`, `"\ud800${args}"`, `[1,{"a":"${b'x'}"}]`, `"${//}"`, `"${'%s'.format([args])}"`} {
		f.Add(seed, `{"a":1,"list":[{"b":[]}]}`)
	}
	compiling := scope()
	f.Fuzz(func(t *testing.T, template, args string) {
		given := expression.NewValues(map[string]any{"args": json.RawMessage(args), "query": nil, "answer": nil})
		if condition, err := compiling.Condition(template); err == nil {
			_, _ = condition.True(given)
		}
		if !json.Valid([]byte(template)) {
			return
		}
		compiled, err := compiling.Template(json.RawMessage(template))
		if err != nil {
			return
		}
		if got, err := compiled.JSON(given); err == nil {
			assert.True(t, json.Valid(got), "%s", got)
		}
	})
}
