package catalog

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKnownWorkflowsAreChecked(t *testing.T) {
	known := Loader{Workflows: map[string]Workflow{"Deploy": {
		With: json.RawMessage(`{"type":"object","properties":{"targets":{"type":"array","items":{"type":"string"}}},"required":["targets"],"additionalProperties":false}`),
		Check: func(with map[string]json.RawMessage) []Mistake {
			var targets []string
			require.NoError(t, json.Unmarshal(with["targets"], &targets))
			var mistakes []Mistake
			for i, target := range targets {
				if target == "moon" {
					mistakes = append(mistakes, Mistake{[]any{"targets", i}, "too far"})
				}
			}
			return mistakes
		},
	}}}
	parse := func(workflow, with string) error {
		_, err := known.Parse("c.yaml", []byte("version: 1\ntools:\n  t:\n    workflow: "+workflow+"\n    taskQueue: q\n    description: d\n"+with))
		return err
	}
	for _, test := range []struct{ with, mistake string }{
		{"", "c.yaml:4:5: tools.t.with.targets: is required"},
		{"    with: {target: [a]}\n", "c.yaml:7:20: tools.t.with.target: is not an argument of this tool; did you mean \"targets\"?\nc.yaml:7:11: tools.t.with.targets: is required"},
		{"    with:\n      targets:\n        - here\n        - 5\n", "c.yaml:10:11: tools.t.with.targets[1]: must be a string, found the number 5"},
		{"    with:\n      targets:\n        - here\n        - moon\n", "c.yaml:10:11: tools.t.with.targets[1]: too far"},
	} {
		err := parse("Deploy", test.with)
		for _, line := range strings.Split(test.mistake, "\n") {
			assert.ErrorContains(t, err, line)
		}
	}
	assert.NoError(t, parse("Deploy", "    with: {targets: [here]}\n"))
	assert.NoError(t, parse("Unknown", "    with: {anything: [moon]}\n"))
}

func TestKnownWorkflowsHaveAResultModeOfTheirOwn(t *testing.T) {
	known := Loader{Workflows: map[string]Workflow{"Deploy": {Result: ResultMCP, With: json.RawMessage(`{}`)}}}
	for _, test := range []struct {
		workflow, field string
		want            ResultMode
	}{{"Deploy", "", ResultMCP}, {"Deploy", "    result: text\n", ResultText}, {"Other", "", ResultAuto}} {
		parsed, err := known.Parse("c.yaml", []byte("version: 1\ntools:\n  t:\n    taskQueue: q\n    workflow: "+test.workflow+"\n"+test.field))
		require.NoError(t, err)
		tool, _ := parsed.Tool("t")
		assert.Equal(t, test.want, tool.Result)
	}
}
