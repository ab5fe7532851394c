package workflows_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/workflows"
)

func TestPipelineMistakes(t *testing.T) {
	ls := []string{"ls"}
	tests := []struct {
		name  string
		steps []workflows.Step
		want  []string
	}{
		{"no steps", nil, []string{"pipeline has no steps"}},
		{"no name", []workflows.Step{{Run: ls}}, []string{`step 1 (""): has no name`}},
		{"long name", []workflows.Step{{Name: strings.Repeat("a", 101), Run: ls}}, []string{
			fmt.Sprintf(`step 1 (%q): the name is longer than 100 bytes`, strings.Repeat("a", 101)),
		}},
		{"name taken", []workflows.Step{{Name: "a", Run: ls}, {Name: "a", Run: ls}}, []string{
			`step 2 ("a"): the name is taken by an earlier step`,
		}},
		{"neither run nor ask", []workflows.Step{{Name: "a"}}, []string{`step 1 ("a"): needs either run (a program and its arguments) or ask (a question)`}},
		{"both run and ask", []workflows.Step{{Name: "a", Run: ls, Ask: &workflows.AskStep{Message: "?"}}}, []string{
			`step 1 ("a"): needs either run (a program and its arguments) or ask (a question)`,
		}},
		{"question without words", []workflows.Step{{Name: "a", Ask: &workflows.AskStep{}}}, []string{`step 1 ("a"): ask has no message`}},
		{"negative timeout", []workflows.Step{{Name: "a", Run: ls, Timeout: -1}}, []string{`step 1 ("a"): timeout must be at least 1ms`}},
		{"nameless program", []workflows.Step{{Name: "a", Run: []string{""}}}, []string{`step 1 ("a"): the program to run has no name`}},
		{"command settings of a question", []workflows.Step{{Name: "a", Ask: &workflows.AskStep{Message: "?"}, Retries: 1}}, []string{
			`step 1 ("a"): dir, env, timeout and retries are for commands; a question has none`,
		}},
		{"form that is none", []workflows.Step{{Name: "a", Ask: &workflows.AskStep{Message: "?", Schema: json.RawMessage(`{"type":"string"}`)}}}, []string{
			`step 1 ("a"): ask.schema must have type "object", with primitive properties: it is a form`,
		}},
		{"negative retries", []workflows.Step{{Name: "a", Run: ls, Retries: -1}}, []string{`step 1 ("a"): retries cannot be negative`}},
		{"unknown need", []workflows.Step{{Name: "a", Run: ls, Needs: []string{"b"}}}, []string{`step 1 ("a"): needs unknown step "b"`}},
		{"need of itself", []workflows.Step{{Name: "a", Run: ls, Needs: []string{"a"}}}, []string{"steps need each other in a circle: a"}},
		{"circle", []workflows.Step{
			{Name: "start", Run: ls},
			{Name: "a", Run: ls, Needs: []string{"start", "c"}},
			{Name: "b", Run: ls, Needs: []string{"a"}},
			{Name: "c", Run: ls, Needs: []string{"b"}},
		}, []string{"steps need each other in a circle: a, b, c"}},
		{"all at once", []workflows.Step{
			{Run: ls, Retries: -2},
			{Name: "a"},
			{Name: "a", Ask: &workflows.AskStep{}, Needs: []string{"x", "y"}},
		}, []string{
			`step 1 (""): has no name`,
			`step 1 (""): retries cannot be negative`,
			`step 2 ("a"): needs either run (a program and its arguments) or ask (a question)`,
			`step 3 ("a"): the name is taken by an earlier step`,
			`step 3 ("a"): ask has no message`,
			`step 3 ("a"): needs unknown step "x"`,
			`step 3 ("a"): needs unknown step "y"`,
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var want string
			for i, line := range test.want {
				if i > 0 {
					want += "\n"
				}
				want += line
			}
			assert.EqualError(t, workflows.PipelineSpec{Steps: test.steps}.Validate(), want)
		})
	}
}

func TestPipelinesWithoutMistakes(t *testing.T) {
	ls := []string{"ls"}
	tests := map[string][]workflows.Step{
		"one step":          {{Name: "a", Run: ls}},
		"diamond":           {{Name: "a", Run: ls}, {Name: "b", Run: ls, Needs: []string{"a"}}, {Name: "c", Run: ls, Needs: []string{"a"}}, {Name: "d", Run: ls, Needs: []string{"b", "c"}}},
		"need of a later":   {{Name: "b", Run: ls, Needs: []string{"a"}}, {Name: "a", Run: ls}},
		"question":          {{Name: "a", Ask: &workflows.AskStep{Message: "?"}}},
		"the same need two": {{Name: "a", Run: ls}, {Name: "b", Run: ls, Needs: []string{"a", "a"}}},
	}
	for name, steps := range tests {
		t.Run(name, func(t *testing.T) {
			assert.NoError(t, workflows.PipelineSpec{Steps: steps}.Validate())
		})
	}
}

func TestPipelineInputTellsPipelineAndArgumentsApart(t *testing.T) {
	encoded := `{
		"pipeline": {
			"steps": [
				{"name": "test", "run": ["go", "test"], "dir": "sub", "env": {"K": "V"}, "timeout": "1m30s", "retries": 2, "continueOnError": true},
				{"name": "approve", "ask": {"message": "Go on?", "schema": {"type": "object"}}, "needs": ["test"]}
			],
			"dir": "src",
			"env": {"CI": "1"}
		},
		"steps": "of the client",
		"count": 12345678901234567890,
		"nothing": null
	}`
	var in workflows.PipelineInput
	require.NoError(t, json.Unmarshal([]byte(encoded), &in))
	assert.Equal(t, workflows.PipelineInput{
		Pipeline: workflows.PipelineSpec{
			Steps: []workflows.Step{
				{Name: "test", Run: []string{"go", "test"}, Dir: "sub", Env: map[string]string{"K": "V"},
					Timeout: workflows.Duration(90 * time.Second), Retries: 2, ContinueOnError: true},
				{Name: "approve", Ask: &workflows.AskStep{Message: "Go on?", Schema: json.RawMessage(`{"type": "object"}`)}, Needs: []string{"test"}},
			},
			Dir: "src",
			Env: map[string]string{"CI": "1"},
		},
		Arguments: map[string]json.RawMessage{
			"steps":   json.RawMessage(`"of the client"`),
			"count":   json.RawMessage(`12345678901234567890`),
			"nothing": json.RawMessage(`null`),
		},
	}, in)

	again, err := json.Marshal(in)
	require.NoError(t, err)
	assert.JSONEq(t, encoded, string(again))
}

func TestPipelineInputMistakes(t *testing.T) {
	tests := []struct{ name, input, want string }{
		{"no pipeline", `{"count": 1}`, `no "pipeline" in the workflow's argument: the catalog entry sets it under "with"`},
		{"null", `null`, `no "pipeline" in the workflow's argument`},
		{"no object", `[1]`, "cannot unmarshal array"},
		{"pipeline of another type", `{"pipeline": "make"}`, "pipeline: json: cannot unmarshal string"},
		{"shell string", `{"pipeline": {"steps": [{"name": "a", "run": "make all"}]}}`, "pipeline: json: cannot unmarshal string"},
		{"duration as a number", `{"pipeline": {"steps": [{"timeout": 90}]}}`, `pipeline: duration 90 is not a string such as "90s"`},
		{"duration without a unit", `{"pipeline": {"steps": [{"timeout": "90"}]}}`, `pipeline: duration "90": write it as "90s" or "1h30m"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var in workflows.PipelineInput
			assert.ErrorContains(t, json.Unmarshal([]byte(test.input), &in), test.want)
		})
	}
}

func TestProblemsNameTheirPlace(t *testing.T) {
	spec := workflows.PipelineSpec{Steps: []workflows.Step{
		{Name: "a", Run: []string{"ls"}},
		{Name: "a", Ask: &workflows.AskStep{}, Needs: []string{"x"}},
		{Name: "b"},
	}}
	assert.Equal(t, []workflows.Problem{
		{Step: 1, Field: "name", Message: "the name is taken by an earlier step"},
		{Step: 1, Field: "ask", Message: "ask has no message"},
		{Step: 1, Field: "needs", Message: `needs unknown step "x"`},
		{Step: 2, Message: "needs either run (a program and its arguments) or ask (a question)"},
	}, spec.Problems())
	assert.Equal(t, []workflows.Problem{{Step: -1, Message: "pipeline has no steps"}}, workflows.PipelineSpec{}.Problems())
}

func TestPipelineSchema(t *testing.T) {
	schema, err := workflows.PipelineSchema()
	require.NoError(t, err)
	resolved, err := schema.Resolve(nil)
	require.NoError(t, err)
	tests := []struct {
		name, with string
		valid      bool
	}{
		{"every member", `{"pipeline":{"dir":"d","env":{"K":"V"},"steps":[
			{"name":"a","run":["ls"],"dir":"d","env":{"K":"V"},"timeout":"1h30m","retries":1,"continueOnError":true},
			{"name":"b","ask":{"message":"?","schema":{"type":"object"}},"needs":["a"]}]}}`, true},
		{"no pipeline", `{}`, false},
		{"misspelt member", `{"pipeline":{"steps":[{"name":"a","run":["ls"],"need":["b"]}]}}`, false},
		{"shell string", `{"pipeline":{"steps":[{"name":"a","run":"make all"}]}}`, false},
		{"duration as a number", `{"pipeline":{"steps":[{"name":"a","run":["ls"],"timeout":90}]}}`, false},
		{"duration without a unit", `{"pipeline":{"steps":[{"name":"a","run":["ls"],"timeout":"90"}]}}`, false},
		{"negative duration", `{"pipeline":{"steps":[{"name":"a","run":["ls"],"timeout":"-1s"}]}}`, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var instance any
			require.NoError(t, json.Unmarshal([]byte(test.with), &instance))
			assert.Equal(t, test.valid, resolved.Validate(instance) == nil)
		})
	}
}
