package catalog

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func compiledCatalogSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(Schema())))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource(schemaURL, document))
	schema, err := compiler.Compile(schemaURL)
	require.NoError(t, err)
	return schema
}

func TestSchemaAndParserKnowTheSameFields(t *testing.T) {
	var schema struct {
		Properties map[string]any
		Defs       map[string]struct {
			Properties map[string]struct{ Enum []string }
		} `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(Schema(), &schema))
	assert.ElementsMatch(t, topFields, slices.Collect(maps.Keys(schema.Properties)))
	for definition, fields := range map[string][]string{
		"defaults":    names(policyFields()),
		"tool":        (&file{}).toolNames(),
		"confirm":     names(confirmFields()),
		"annotations": names(annotationFields()),
		"icon":        names(iconFields()),
		"attach":      names(attachFields()),
		"status":      names(statusFields()),
		"question":    names(inputFields()),
		"effect":      names(effectFields()),
	} {
		assert.ElementsMatch(t, fields, slices.Collect(maps.Keys(schema.Defs[definition].Properties)), definition)
	}
}

func TestSchemaAcceptsWhatTheParserAccepts(t *testing.T) {
	schema := compiledCatalogSchema(t)
	for _, name := range []string{
		"testdata/good/ci.yaml", "testdata/good/data.yml", "testdata/existing.yaml", "../../examples/existing/expense.yaml",
	} {
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		var report reporter
		root := parseYAML(name, data, "", &report)
		require.Empty(t, report.errors)
		assert.NoError(t, schema.Validate(root.value()), name)
	}
}

func TestSchemaRejectsWhatTheParserRejects(t *testing.T) {
	schema := compiledCatalogSchema(t)
	for _, fields := range []string{
		"task: sometimes", "result: xml", "cancel: kill", "arguments: list", "arguments: positional", "positional: [a]",
		"pollInterval: 5", "retention: 7 days", "tpye: x", "input: {}", "input: {type: object}, inputFile: a.json",
		"confirm: {}", "confirm: {message: m, schema: {type: object}}", "icons: [{src: 'http://example.com'}]",
		"icons: [{src: 'data:,', sizes: [big]}]", "icons: [{src: 'data:,', theme: blue}]", "title: ''",
		"annotations: {readOnly: true}", "with: [1]", "fallback: later", "handoffAfter: 45, fallback: handoff",
		"task: required, fallback: wait", "task: required, fallback: handoff", "task: never, fallback: handoff",
		"task: never, fallback: refuse", "fallback: wait, handoffAfter: 30s", "fallback: refuse, handoffAfter: 30s",
		"task: required, handoffAfter: 30s", "task: never, handoffAfter: 30s",
		"namespace: ''", "idSuffix: ''", "memo: {mcp.meta: 1}", "memo: []", "searchAttributes: {Team: {}}",
		"searchAttributes: {Team: [1]}", "dedupe: always", "dedupe: {afterCompletion: true}", "dedupe: key, confirm: {message: m}",
		"dedupe: key, idSuffix: a", "versioning: latest", "versioning: {deployment: d}", "attach: {workflowId: a}",
		"status: {}", "status: {total: 1}", "status: {query: q, signal: s}",
		"inputs: {q: {message: m, accept: {signal: s}, decline: cancel}}", "inputs: {q: {when: true, message: m, accept: {signal: s}}}",
		"inputs: {q: {when: true, message: m, accept: {}, decline: cancel}}", "inputs: {q: {when: true, message: m, accept: cancel, decline: cancel}}",
		"inputs: {q: {when: true, message: m, accept: {signal: s, update: u}, decline: cancel}}",
		"inputs: {q: {when: true, message: m, accept: {signal: s}, decline: stop}}",
		"inputs: {1: {when: true, message: m, accept: {signal: s}, decline: cancel}}",
		"title: t }, u: { attach: {workflowId: 'mcp:a'}", "title: t }, u: { attach: {workflowId: '*'}",
		"title: t }, u: { attach: {workflowId: a, allow: [read]}", "title: t }, u: { attach: {}", "title: t }, u: { title: u",
		"title: t }, task_wait: { workflow: W, taskQueue: q", "title: t }, task_answer: { workflow: W, taskQueue: q",
		"title: t }, task_cancel: { workflow: W, taskQueue: q",
	} {
		t.Run(fields, func(t *testing.T) {
			data := []byte("version: 1\ntools: { t: { workflow: W, taskQueue: q, " + fields + " } }\n")
			_, err := Parse("c.yaml", data)
			require.Error(t, err)
			var report reporter
			assert.Error(t, schema.Validate(parseYAML("c.yaml", data, "", &report).value()))
		})
	}
}
