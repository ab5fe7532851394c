package workflows

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// PipelineSpec is a directed acyclic graph of steps, written by the operator.
type PipelineSpec struct {
	Steps []Step `json:"steps"`
	// Dir is the working directory of every step, relative to the worker's own.
	Dir string `json:"dir,omitempty"`
	// Env are environment variables of every step.
	Env map[string]string `json:"env,omitempty"`
}

// Step is one command to run (Run) or one question to ask (Ask). A step without Needs starts at once; independent steps
// run in parallel.
type Step struct {
	Name string `json:"name"`
	// Run is a program and its arguments. No shell sees it, unless the operator writes ["sh", "-c", …] himself.
	Run []string `json:"run,omitempty"`
	// Ask is an approval.
	Ask *AskStep `json:"ask,omitempty"`
	// Needs names the steps that must have succeeded before.
	Needs []string `json:"needs,omitempty"`
	// Dir is relative to the pipeline's directory.
	Dir string            `json:"dir,omitempty"`
	Env map[string]string `json:"env,omitempty"`
	// Timeout ends an attempt of a command. Default one hour. Questions wait as long as the task lives.
	Timeout Duration `json:"timeout,omitempty"`
	// Retries is how often a failed command is run again.
	Retries int `json:"retries,omitempty"`
	// ContinueOnError lets the pipeline go on, and succeed, although this step failed.
	ContinueOnError bool `json:"continueOnError,omitempty"`
}

// AskStep is a question in a pipeline. Without a Schema it is a yes-or-no approval with a comment. The fields of an
// accepted form reach later commands as environment variables ASK_<STEP>_<FIELD>.
type AskStep struct {
	Message string          `json:"message"`
	Schema  json.RawMessage `json:"schema,omitempty"`
}

// Duration is a time.Duration written as in Go, such as "90s" or "1h30m".
type Duration time.Duration

// UnmarshalJSON reads a Go duration string.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("duration %s is not a string such as \"90s\"", data)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("duration %q: write it as \"90s\" or \"1h30m\"", text)
	}
	*d = Duration(parsed)
	return nil
}

// MarshalJSON writes a Go duration string.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// maxStepName keeps an activity's summary within Temporal's limit of 400 bytes.
const maxStepName = 100

// Problem is something that is wrong with a pipeline.
type Problem struct {
	// Step is the index of the step it is about, -1 if it is about the whole.
	Step int
	// Field of the step, "" if it is about the whole step.
	Field   string
	Message string
}

// Validate reports everything that is wrong with the pipeline.
func (p PipelineSpec) Validate() error {
	var problems []error
	for _, problem := range p.Problems() {
		err := errors.New(problem.Message)
		if problem.Step >= 0 {
			err = fmt.Errorf("step %d (%q): %w", problem.Step+1, p.Steps[problem.Step].Name, err)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// Problems lists everything that is wrong with the pipeline, with its place.
func (p PipelineSpec) Problems() []Problem {
	if len(p.Steps) == 0 {
		return []Problem{{Step: -1, Message: "pipeline has no steps"}}
	}
	var problems []Problem
	for i, step := range p.Steps {
		problem := func(field, format string, args ...any) {
			problems = append(problems, Problem{i, field, fmt.Sprintf(format, args...)})
		}
		if step.Name == "" {
			problem("name", "has no name")
		}
		if len(step.Name) > maxStepName {
			problem("name", "the name is longer than %d bytes", maxStepName)
		}
		if slices.ContainsFunc(p.Steps[:i], func(s Step) bool { return s.Name == step.Name }) {
			problem("name", "the name is taken by an earlier step")
		}
		if (len(step.Run) == 0) == (step.Ask == nil) {
			problem("", "needs either run (a program and its arguments) or ask (a question)")
		}
		if step.Ask != nil {
			step.Ask.problems(problem)
			if step.Dir != "" || step.Env != nil || step.Timeout != 0 || step.Retries != 0 {
				problem("", "dir, env, timeout and retries are for commands; a question has none")
			}
		}
		if len(step.Run) > 0 && step.Run[0] == "" {
			problem("run", "the program to run has no name")
		}
		if step.Timeout != 0 && time.Duration(step.Timeout) < time.Millisecond {
			problem("timeout", "timeout must be at least 1ms")
		}
		if step.Retries < 0 {
			problem("retries", "retries cannot be negative")
		}
		for _, need := range step.Needs {
			if !slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Name == need }) {
				problem("needs", "needs unknown step %q", need)
			}
		}
	}
	if err := p.findCycle(); err != nil && len(problems) == 0 {
		problems = append(problems, Problem{Step: -1, Message: err.Error()})
	}
	return problems
}

// PipelineSchema is the JSON Schema of what a catalog says under `with` for [Pipeline].
func PipelineSchema() (*jsonschema.Schema, error) {
	type with struct {
		Pipeline PipelineSpec `json:"pipeline"`
	}
	schema, err := jsonschema.For[with](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Duration]():        {Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`},
		reflect.TypeFor[json.RawMessage](): {Type: "object"},
	}})
	if err == nil {
		withoutNulls(schema)
	}
	return schema, err
}

// withoutNulls takes null out of the types of members that Go could leave nil: an operator leaves them out instead.
func withoutNulls(schema *jsonschema.Schema) {
	if schema == nil {
		return
	}
	if len(schema.Types) == 2 && schema.Types[0] == "null" {
		schema.Type, schema.Types = schema.Types[1], nil
	}
	withoutNulls(schema.Items)
	for _, property := range schema.Properties {
		withoutNulls(property)
	}
}

// problems reports what is wrong with a question.
func (a AskStep) problems(problem func(field, format string, args ...any)) {
	if a.Message == "" {
		problem("ask", "ask has no message")
	}
	var form struct {
		Type string `json:"type"`
	}
	if a.Schema != nil && (json.Unmarshal(a.Schema, &form) != nil || form.Type != "object") {
		problem("ask", `ask.schema must have type "object", with primitive properties: it is a form`)
	}
}

// findCycle removes steps whose needs are all removed until none is left, or none can be.
func (p PipelineSpec) findCycle() error {
	left := slices.Clone(p.Steps)
	for len(left) > 0 {
		before := len(left)
		left = slices.DeleteFunc(left, func(step Step) bool {
			return !slices.ContainsFunc(step.Needs, func(need string) bool {
				return slices.ContainsFunc(left, func(s Step) bool { return s.Name == need })
			})
		})
		if len(left) == before {
			names := make([]string, len(left))
			for i, step := range left {
				names[i] = step.Name
			}
			return fmt.Errorf("steps need each other in a circle: %s", strings.Join(names, ", "))
		}
	}
	return nil
}

// PipelineInput is the argument of [Pipeline]: the pipeline, fixed by the operator under the catalog's `with`, and beside
// it whatever arguments the client gave.
type PipelineInput struct {
	Pipeline PipelineSpec
	// Arguments reach commands as environment variables ARG_<NAME> and in no other way.
	Arguments map[string]json.RawMessage
}

// UnmarshalJSON takes member "pipeline" as the pipeline and every other one as a client's argument.
func (in *PipelineInput) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &in.Arguments); err != nil {
		return err
	}
	spec, ok := in.Arguments["pipeline"]
	if !ok {
		return errors.New(`no "pipeline" in the workflow's argument: the catalog entry sets it under "with"`)
	}
	delete(in.Arguments, "pipeline")
	if err := json.Unmarshal(spec, &in.Pipeline); err != nil {
		return fmt.Errorf("pipeline: %w", err)
	}
	return nil
}

// MarshalJSON is the inverse of UnmarshalJSON.
func (in PipelineInput) MarshalJSON() ([]byte, error) {
	members := map[string]any{"pipeline": in.Pipeline}
	for name, value := range in.Arguments {
		members[name] = value
	}
	return json.Marshal(members)
}

// environment adds values to env as <PREFIX>_<NAME>: strings as they are, null not at all, all else as JSON. Of names that
// differ in punctuation or case only, the last in byte order counts.
func environment(env map[string]string, prefix string, values map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		var text string
		switch value := values[name]; {
		case string(value) == "null":
			continue
		case json.Unmarshal(value, &text) != nil:
			text = string(value)
		}
		env[prefix+"_"+variableName(name)] = text
	}
}

// variableName is name as a POSIX environment variable: upper case, everything but letters and digits an underscore.
func variableName(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name)
}
