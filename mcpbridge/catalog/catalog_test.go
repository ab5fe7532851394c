package catalog_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/mcpbridge/catalog"
)

func load(t *testing.T, paths ...string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Load(paths...)
	require.NoError(t, err)
	return c
}

func parse(t *testing.T, data string) *catalog.Catalog {
	t.Helper()
	c, err := catalog.Parse("catalog.yaml", []byte(data))
	require.NoError(t, err)
	return c
}

// tool parses a catalog of one tool "t" with the given fields, each line indented by four spaces.
func tool(t *testing.T, fields string) *catalog.Tool {
	t.Helper()
	found, ok := parse(t, withFields(fields)).Tool("t")
	require.True(t, ok)
	return found
}

func withFields(fields string) string {
	return "version: 1\ntools:\n  t:\n    workflow: W\n    taskQueue: q\n" + fields
}

func TestLoadReadsADirectoryOfCatalogs(t *testing.T) {
	c := load(t, "testdata/good")

	var names []string
	for _, tool := range c.Tools() {
		names = append(names, tool.Name)
	}
	assert.Equal(t, []string{"ci_pipeline", "data.load", "ping"}, names)

	ci, ok := c.Tool("ci_pipeline")
	require.True(t, ok)
	assert.Equal(t, "CI pipeline", ci.Title)
	assert.Equal(t, "Vets, tests, asks and archives the checkout.", ci.Description)
	assert.Equal(t, "Pipeline", ci.Workflow)
	assert.Equal(t, "taskbridge", ci.TaskQueue, "from defaults")
	assert.Equal(t, 2*time.Second, ci.PollInterval, "from defaults")
	assert.Equal(t, catalog.TaskRequired, ci.Task)
	assert.Equal(t, 36*time.Hour, ci.ExecutionTimeout)
	assert.Equal(t, 7*24*time.Hour, ci.Retention)
	assert.Equal(t, catalog.CancelTerminate, ci.Cancel)
	assert.Equal(t, "Really build?", ci.Confirm.Message)
	assert.Equal(t, "approval", ci.Confirm.Argument)
	assert.Equal(t, `{"steps":[{"run":"go vet ./..."},{"run":"go test ./..."}],"seed":123456789012345678901234567890}`,
		string(ci.With["pipeline"]))
	hints, err := json.Marshal(ci.Annotations)
	require.NoError(t, err)
	assert.JSONEq(t, `{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true}`, string(hints))
	assert.Equal(t, []catalog.Icon{{Src: "https://example.com/ci.png", MIMEType: "image/png", Sizes: []string{"48x48", "any"},
		Theme: "light"}}, ci.Icons)
	assert.Equal(t, []catalog.HeaderParam{{Name: "Package", Path: []string{"package"}}}, ci.HeaderParams())

	data, ok := c.Tool("data.load")
	require.True(t, ok)
	assert.Equal(t, catalog.ArgumentsPositional, data.Arguments)
	assert.Equal(t, catalog.FallbackHandoff, data.Fallback)
	assert.Equal(t, 30*time.Second, data.HandoffAfter)
	assert.Equal(t, `{"type":"object","properties":{"source":{"type":"string","description":"a 🚀 of a source"},`+
		`"limit":{"type":"integer","minimum":1,"default":10}},"required":["source"],"additionalProperties":false}`,
		string(data.InputSchema))
	assert.Equal(t, `{"type":"object","properties":{"rows":{"type":"integer"}}}`, string(data.OutputSchema))

	_, ok = c.Tool("absent")
	assert.False(t, ok)
}

func TestLoadReadsAFileNamedTwiceOnce(t *testing.T) {
	assert.Len(t, load(t, "testdata/good", "testdata/good/../good/ci.yaml").Tools(), 3)
}

func TestLoadOfNothingIsAnEmptyCatalog(t *testing.T) {
	assert.Empty(t, load(t).Tools())
}

func TestFieldsHaveDefaults(t *testing.T) {
	plain := tool(t, "")
	assert.Equal(t, catalog.ArgumentsObject, plain.Arguments)
	assert.Equal(t, catalog.TaskOptional, plain.Task)
	assert.Equal(t, catalog.FallbackWait, plain.Fallback)
	assert.Zero(t, plain.HandoffAfter)
	assert.Equal(t, catalog.ResultAuto, plain.Result)
	assert.Equal(t, catalog.CancelRequest, plain.Cancel)
	assert.Equal(t, 24*time.Hour, plain.Retention)
	assert.Equal(t, time.Second, plain.PollInterval)
	assert.Zero(t, plain.ExecutionTimeout)
	assert.Zero(t, plain.InlineWait)
	assert.Nil(t, plain.Confirm)
	assert.Nil(t, plain.OutputSchema)
	assert.Equal(t, `{"type":"object","additionalProperties":false}`, string(plain.InputSchema))

	asking := tool(t, "    confirm: { message: Sure? }\n")
	assert.Equal(t, `{"type":"object","properties":{}}`, string(asking.Confirm.Schema))
}

func TestFallbackAndTaskModeAgree(t *testing.T) {
	const (
		required, optional, never = catalog.TaskRequired, catalog.TaskOptional, catalog.TaskNever
		wait, handoff, refuse     = catalog.FallbackWait, catalog.FallbackHandoff, catalog.FallbackRefuse
	)
	for _, test := range []struct {
		defaults, fields string
		task             catalog.TaskMode
		fallback         catalog.FallbackMode
		after            time.Duration
	}{
		{"", "task: required", required, refuse, 0},
		{"", "task: never", never, wait, 0},
		{"", "fallback: handoff", optional, handoff, 45 * time.Second},
		{"", "fallback: handoff, handoffAfter: 1s", optional, handoff, time.Second},
		{"", "fallback: handoff, handoffAfter: 10m", optional, handoff, 10 * time.Minute},
		{"", "fallback: refuse", required, refuse, 0},
		{"", "task: optional, fallback: refuse", required, refuse, 0},
		{"", "task: required, fallback: refuse", required, refuse, 0},
		{"", "task: never, fallback: wait", never, wait, 0},
		{"handoffAfter: 20s", "", optional, wait, 0},
		{"handoffAfter: 20s", "fallback: handoff", optional, handoff, 20 * time.Second},
		{"fallback: handoff", "", optional, handoff, 45 * time.Second},
		{"fallback: handoff", "handoffAfter: 30s", optional, handoff, 30 * time.Second},
		{"fallback: handoff, handoffAfter: 20s", "handoffAfter: 30s", optional, handoff, 30 * time.Second},
		{"fallback: handoff, handoffAfter: 20s", "fallback: wait", optional, wait, 0},
		{"fallback: handoff, handoffAfter: 20s", "fallback: refuse", required, refuse, 0},
		{"fallback: handoff, handoffAfter: 20s", "task: required", required, refuse, 0},
		{"fallback: handoff, handoffAfter: 20s", "task: never", never, wait, 0},
		{"fallback: wait", "task: required", required, refuse, 0},
		{"fallback: refuse", "", required, refuse, 0},
		{"fallback: refuse", "task: never", never, wait, 0},
		{"fallback: refuse", "fallback: handoff", optional, handoff, 45 * time.Second},
		{"task: required, fallback: handoff", "", required, refuse, 0},
		{"task: required, fallback: handoff", "task: optional", optional, handoff, 45 * time.Second},
		{"task: never", "task: optional, fallback: handoff", optional, handoff, 45 * time.Second},
	} {
		t.Run(test.defaults+"/"+test.fields, func(t *testing.T) {
			found, ok := parse(t, "version: 1\ndefaults: { taskQueue: q, "+test.defaults+" }\ntools:\n  t: { workflow: W, "+test.fields+" }\n").Tool("t")
			require.True(t, ok)
			assert.Equal(t, test.task, found.Task)
			assert.Equal(t, test.fallback, found.Fallback)
			assert.Equal(t, test.after, found.HandoffAfter)

			again, err := catalog.NewTool(*found)
			require.NoError(t, err, "what is complete stays as it is")
			assert.Equal(t, found.Fallback, again.Fallback)
			assert.Equal(t, found.HandoffAfter, again.HandoffAfter)
		})
	}
}

func TestDefaultsAreForTheToolsOfTheirFile(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{
		"a.yaml": "version: 1\ndefaults: { fallback: handoff, handoffAfter: 20s }\ntools: { a: { workflow: W, taskQueue: q } }\n",
		"b.yaml": "version: 1\ntools: { b: { workflow: W, taskQueue: q } }\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644))
	}
	c := load(t, dir)
	a, _ := c.Tool("a")
	b, _ := c.Tool("b")
	assert.Equal(t, catalog.FallbackHandoff, a.Fallback)
	assert.Equal(t, 20*time.Second, a.HandoffAfter)
	assert.Equal(t, catalog.FallbackWait, b.Fallback)
	assert.Zero(t, b.HandoffAfter)
}

func TestInputSchemasAreClosedUnlessTheAuthorDecides(t *testing.T) {
	for name, test := range map[string]struct{ input, want string }{
		"silent":   {"{ type: object, properties: { a: true } }", `{"type":"object","properties":{"a":true},"additionalProperties":false}`},
		"open":     {"{ type: object, additionalProperties: true }", `{"type":"object","additionalProperties":true}`},
		"composed": {"{ type: object, allOf: [ { required: [a] } ] }", `{"type":"object","allOf":[{"required":["a"]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, string(tool(t, "    input: "+test.input+"\n").InputSchema))
		})
	}
}

func TestYAMLBecomesJSONAsWritten(t *testing.T) {
	for yaml, want := range map[string]string{
		"{ z: 1, a: 2, m: 3 }":                    `{"z":1,"a":2,"m":3}`,
		"123456789012345678901234567890":          `123456789012345678901234567890`,
		"-0.10000000000000000000000001":           `-0.10000000000000000000000001`,
		"1e400":                                   `1e400`,
		"[ +5, .5, 1., -.5, 1.e5, 1_000 ]":        `[5,0.5,1.0,-0.5,1.0e5,1000]`,
		"[ 0x1F, 0o17, 0b11, -0xffffffffffffff ]": `[31,15,3,-72057594037927935]`,
		"[ yes, no, on, off, y ]":                 `["yes","no","on","off","y"]`,
		"[ true, True, ~, null, ]":                `[true,true,null,null]`,
		"2001-01-01":                              `"2001-01-01"`,
		"!!str 5":                                 `"5"`,
		"'<a & b>'":                               `"<a & b>"`,
		"\"\\u2028 \\\"\"":                        `"\u2028 \""`,
		"{ 2001-01-01: x, on: y, \"<<\": z }":     `{"2001-01-01":"x","on":"y","<<":"z"}`,
	} {
		t.Run(yaml, func(t *testing.T) {
			assert.Equal(t, want, string(tool(t, "    with: { v: "+yaml+" }\n").With["v"]))
		})
	}
}

func TestAliasesAndMergeKeysAreResolved(t *testing.T) {
	merged := tool(t, `    with:
      base: &base { a: 1, b: 2 }
      more: &more { b: 3, c: 4 }
      alias: *base
      one: { z: 0, <<: *base, b: 9 }
      many: { <<: [*base, *more], d: 5 }
      key: { ? &k name : 1 }
`)
	assert.Equal(t, `{"a":1,"b":2}`, string(merged.With["alias"]))
	assert.Equal(t, `{"z":0,"a":1,"b":9}`, string(merged.With["one"]))
	assert.Equal(t, `{"a":1,"b":2,"c":4,"d":5}`, string(merged.With["many"]))
}

func TestExponentialAliasesAreRefused(t *testing.T) {
	var b strings.Builder
	b.WriteString("version: 1\nx-a0: &a0 [lol]\n")
	for i := range 12 {
		previous := "*a" + string(rune('0'+i%10))
		if i >= 10 {
			previous = "*b" + string(rune('0'+i-10))
		}
		name := "a" + string(rune('0'+i+1))
		if i >= 9 {
			name = "b" + string(rune('0'+i-9))
		}
		b.WriteString("x-" + name + ": &" + name + " [" + strings.Repeat(previous+", ", 10) + "]\n")
	}
	_, err := catalog.Parse("laughs.yaml", []byte(b.String()+"tools: {}\n"))
	require.EqualError(t, err, "laughs.yaml:1:1: the aliases expand to more than 100000 values; write fewer or smaller anchors")
}

func TestErrorsComeBackOneByOne(t *testing.T) {
	_, err := catalog.Parse("c.yaml", []byte("version: 2\ntools: []\n"))
	var all catalog.Errors
	require.ErrorAs(t, err, &all)
	require.Len(t, all, 2)
	assert.Equal(t, catalog.Error{File: "c.yaml", Line: 2, Column: 8, Path: "tools",
		Message: "expected a mapping of tool names to tools, found a list"}, *all[1])
	var one *catalog.Error
	require.ErrorAs(t, err, &one)
	assert.Equal(t, "version", one.Path)
}

func TestMistakesOfAllFilesAreReportedTogether(t *testing.T) {
	dir := t.TempDir()
	write := func(name, data string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o644))
	}
	write("a.yaml", withFields("    task: sometimes\n"))
	write("b.yml", withFields("    inputFile: s/in.json\n    outputFile: s/out.yaml\n")+"  u:\n    workflow: W\n    taskQueue: q\n    inputFile: s/none.json\n    outputFile: s/bad.json\n")
	write("empty/readme.txt", "no catalogs here")
	write("ignored.txt", "not: [a catalog")
	write("s/in.json", "{\n\t\"type\": \"object\",\n\t\"properties\": {\"ü\": 1, \"a\": {\"type\": \"strng\"}}\n}\n")
	write("s/out.yaml", "type: object\nproperties: [a]\n")
	write("s/bad.json", "{\n  \"type\": \"object\"\n  \"properties\": {}\n}\n")

	_, err := catalog.Load(dir, filepath.Join(dir, "empty"), filepath.Join(dir, "absent.yaml"))
	require.Error(t, err)
	got := strings.Split(strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""), "\n")
	assert.Equal(t, []string{
		`a.yaml:6:11: tools.t.task: "sometimes" is not a task mode; use required, optional or never`,
		`absent.yaml: cannot be read: no such file or directory`,
		`b.yml:3:3: tools.t: is already declared at a.yaml:3:3`,
		`b.yml:11:16: tools.u.inputFile: open s/none.json: no such file or directory`,
		`empty: the directory has no .yaml or .yml files`,
		`s/bad.json:3:3: not valid JSON: invalid character '"' after object key:value pair`,
		`s/in.json:3:39: tools.t.inputFile.properties.a.type: unknown type "strng"; did you mean "string"?`,
		`s/out.yaml:2:13: tools.t.outputFile.properties: must be an object, found an array`,
	}, got)
}

func TestNewToolChecksByTheSameRules(t *testing.T) {
	schema := json.RawMessage(`{ "type": "object", "properties": { "b": {"type":"string"}, "a": {"type":"integer","default":1} } }`)
	made, err := catalog.NewTool(catalog.Tool{Name: "go", Workflow: "W", TaskQueue: "q", InputSchema: schema,
		With: map[string]json.RawMessage{"fixed": json.RawMessage(`{ "n": 12345678901234567890 }`)}})
	require.NoError(t, err)
	assert.Equal(t, `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer","default":1}},"additionalProperties":false}`,
		string(made.InputSchema))
	assert.Equal(t, catalog.TaskOptional, made.Task)
	require.NoError(t, made.ValidateArguments(json.RawMessage(`{"b":"x"}`)))
	args, err := made.WorkflowArguments(json.RawMessage(`{"b":"x"}`), nil)
	require.NoError(t, err)
	assert.Equal(t, `{"b":"x","a":1,"fixed":{"n":12345678901234567890}}`, string(args[0]))

	_, err = catalog.NewTool(catalog.Tool{Name: "not a name", Task: "sometimes", Retention: -time.Hour, PollInterval: 2 * time.Hour,
		InputSchema: json.RawMessage(`{"type":"object","type":"object"}`), Arguments: "list",
		With: map[string]json.RawMessage{"x": json.RawMessage(`{`)}, Icons: []catalog.Icon{{Src: "http://example.com/i.png"}}})
	require.EqualError(t, err, strings.Join([]string{
		`tools."not a name": "not a name" is not a tool name; use 1 to 128 of the characters A-Z, a-z, 0-9, _, - and .`,
		`tools."not a name".workflow: is missing; name the workflow type to start`,
		`tools."not a name".taskQueue: is missing; name the task queue of the workflow's workers here or in defaults`,
		`tools."not a name".arguments: "list" is not an argument mode; use object, positional or none`,
		`tools."not a name".task: "sometimes" is not a task mode; use required, optional or never`,
		`tools."not a name".retention: -1h is too short; the shortest is 1ms`,
		`tools."not a name".pollInterval: 2h is too long; the longest is 1h`,
		`tools."not a name".input: type: is already given at line 1, column 2`,
		`tools."not a name".with.x: not valid JSON: it ends too early`,
		`tools."not a name".icons[0].src: "http://example.com/i.png" is not an https: or data: URI`,
	}, "\n"))
}

func TestNewToolChecksFallbacks(t *testing.T) {
	complete := func(fields catalog.Tool) (*catalog.Tool, error) {
		fields.Name, fields.Workflow, fields.TaskQueue = "t", "W", "q"
		return catalog.NewTool(fields)
	}
	for _, test := range []struct {
		given    catalog.Tool
		fallback catalog.FallbackMode
		after    time.Duration
	}{
		{catalog.Tool{}, catalog.FallbackWait, 0},
		{catalog.Tool{Task: catalog.TaskNever}, catalog.FallbackWait, 0},
		{catalog.Tool{Task: catalog.TaskRequired}, catalog.FallbackRefuse, 0},
		{catalog.Tool{Fallback: catalog.FallbackHandoff}, catalog.FallbackHandoff, catalog.DefaultHandoffAfter},
		{catalog.Tool{Fallback: catalog.FallbackHandoff, HandoffAfter: time.Minute}, catalog.FallbackHandoff, time.Minute},
	} {
		made, err := complete(test.given)
		require.NoError(t, err)
		assert.Equal(t, test.fallback, made.Fallback)
		assert.Equal(t, test.after, made.HandoffAfter)
	}
	for _, test := range []struct {
		given catalog.Tool
		want  string
	}{
		{catalog.Tool{Task: catalog.TaskRequired, Fallback: catalog.FallbackWait},
			`tools.t.fallback: "task: required" refuses calls without a task; leave fallback out, or make the task optional`},
		{catalog.Tool{Fallback: "later", HandoffAfter: time.Hour},
			`tools.t.fallback: "later" is not a fallback; use wait, handoff or refuse`},
		{catalog.Tool{Fallback: catalog.FallbackHandoff, HandoffAfter: time.Hour},
			`tools.t.handoffAfter: 1h is too long; the longest is 10m`},
		{catalog.Tool{HandoffAfter: time.Minute},
			`tools.t.handoffAfter: has no meaning without "fallback: handoff"; write that too or remove this`},
	} {
		_, err := complete(test.given)
		assert.EqualError(t, err, test.want)
	}
}

func TestNewToolLeavesItsArgumentAlone(t *testing.T) {
	given := catalog.Tool{Name: "t", Workflow: "W", TaskQueue: "q", Confirm: &catalog.Confirm{Message: "Sure?"},
		With: map[string]json.RawMessage{"a": json.RawMessage(`[ 1 ]`)}}
	_, err := catalog.NewTool(given)
	require.NoError(t, err)
	assert.Nil(t, given.Confirm.Schema)
	assert.Equal(t, `[ 1 ]`, string(given.With["a"]))
}

func TestHeaderParamsFollowSchemaOrder(t *testing.T) {
	routed := tool(t, `    input:
      type: object
      properties:
        z: { type: string, x-mcp-header: Zone }
        nested: { type: object, properties: { n: { type: integer, x-mcp-header: N } } }
        x-mcp-header: { type: boolean, x-mcp-header: Flag, default: true, examples: [ { x-mcp-header: 1 } ] }
`)
	assert.Equal(t, []catalog.HeaderParam{
		{Name: "Zone", Path: []string{"z"}},
		{Name: "N", Path: []string{"nested", "n"}},
		{Name: "Flag", Path: []string{"x-mcp-header"}},
	}, routed.HeaderParams())
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"testdata/good/ci.yaml", "testdata/good/data.yml"} {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(data)
	}
	for _, m := range mistakes {
		f.Add([]byte(m.yaml))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := catalog.Parse("fuzz.yaml", data)
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				assert.True(t, strings.HasPrefix(line, "fuzz.yaml:") || !strings.Contains(line, "fuzz.yaml:"), line)
			}
			return
		}
		assert.True(t, slices.IsSortedFunc(c.Tools(), func(a, b *catalog.Tool) int { return strings.Compare(a.Name, b.Name) }))
		for _, tool := range c.Tools() {
			assert.True(t, json.Valid(tool.InputSchema))
			if tool.ValidateArguments(nil) != nil {
				continue
			}
			_, err := tool.WorkflowArguments(nil, nil)
			assert.NoError(t, err)
		}
	})
}
