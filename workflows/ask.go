package workflows

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"

	exact "github.com/go-json-experiment/json" // tells names apart that differ in case, and refuses duplicates
	"github.com/google/jsonschema-go/jsonschema"
	"go.temporal.io/sdk/workflow"

	"taskbridge/signals"
)

// Action is what a person did with an elicitation (MCP 2026-07-28, Elicitation, "Response Actions").
type Action string

// The three outcomes of an elicitation.
const (
	Accept  Action = "accept"
	Decline Action = "decline"
	Cancel  Action = "cancel"
)

// Question is a form-mode elicitation.
type Question struct {
	// Name is the stem of the question's key and, across continue-as-new, its identity. Default "question".
	Name string
	// Message is what the person reads.
	Message string
	// Schema is the requested schema: an object with primitive properties only (MCP 2026-07-28, Elicitation, "Requested
	// Schema"). Leave it nil to have it inferred from the answer's Go type: field names from json tags, descriptions
	// from jsonschema tags, omitempty for optional fields.
	Schema json.RawMessage
}

// Answer is the reply to an elicitation. Content is set when Action is [Accept], zero otherwise.
type Answer[T any] struct {
	Action  Action
	Content T
}

// Accepted reports whether the person accepted.
func (a Answer[T]) Accepted() bool { return a.Action == Accept }

// Elicit asks and waits for the answer. An answer that does not fit the question is asked for again, under a new key,
// with the reason. The error is a CanceledError when ctx ends first, else it says why the question cannot be asked.
func Elicit[T any](ctx workflow.Context, t *Task, q Question) (Answer[T], error) {
	pending, err := Ask[T](ctx, t, q)
	if err != nil {
		return Answer[T]{}, err
	}
	return pending.Get(ctx)
}

// Pending is a question that has been asked.
type Pending[T any] struct {
	task   *Task
	asked  *question
	q      Question
	schema *jsonschema.Resolved
}

// Ask asks without waiting, so that several questions can be open at once.
func Ask[T any](ctx workflow.Context, t *Task, q Question) (*Pending[T], error) {
	q.Name = cmp.Or(q.Name, "question")
	schema, err := requestedSchema[T](q)
	if err != nil {
		return nil, fmt.Errorf("question %q: %w", q.Name, err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("question %q: schema: %w", q.Name, err)
	}
	if q.Schema == nil {
		if q.Schema, err = json.Marshal(schema); err != nil {
			return nil, fmt.Errorf("question %q: schema: %w", q.Name, err)
		}
	}
	p := &Pending[T]{task: t, q: q, schema: resolved}
	p.asked, err = p.issue(ctx, q.Message)
	return p, err
}

func (p *Pending[T]) issue(ctx workflow.Context, message string) (*question, error) {
	return p.task.request(ctx, p.q.Name, signals.MethodElicit, formParams{"form", message, p.q.Schema})
}

type formParams struct {
	Mode            string          `json:"mode"`
	Message         string          `json:"message"`
	RequestedSchema json.RawMessage `json:"requestedSchema"`
}

// Get waits for the answer; see [Elicit]. Call it once.
func (p *Pending[T]) Get(ctx workflow.Context) (Answer[T], error) {
	for {
		raw, err := p.task.await(ctx, p.asked)
		if err != nil {
			return Answer[T]{}, err
		}
		answer, err := p.decode(raw)
		if err == nil {
			return answer, nil
		}
		p.asked, err = p.issue(ctx, afterUnusable(p.q.Message, err))
		if err != nil {
			return Answer[T]{}, err
		}
	}
}

func (p *Pending[T]) decode(raw json.RawMessage) (Answer[T], error) {
	action, content, err := decodeElicitResult(raw)
	answer := Answer[T]{Action: action}
	if err != nil || action != Accept {
		return answer, err
	}
	if content == nil {
		content = json.RawMessage("{}")
	}
	var instance map[string]any
	if err := exact.Unmarshal(content, &instance); err != nil {
		return answer, fmt.Errorf("content is not an object: %w", err)
	}
	if err := p.schema.Validate(instance); err != nil {
		return answer, err
	}
	if exact.Unmarshal(content, &answer.Content) == nil {
		return answer, nil
	}
	// To JSON Schema 3.0 is an integer, to a decoder it is none.
	plain, err := json.Marshal(instance)
	if err != nil {
		return answer, err
	}
	return answer, exact.Unmarshal(plain, &answer.Content)
}

func decodeElicitResult(raw json.RawMessage) (Action, json.RawMessage, error) {
	var result struct {
		Action  Action          `json:"action"`
		Content json.RawMessage `json:"content"`
	}
	if err := exact.Unmarshal(raw, &result); err != nil {
		return "", nil, fmt.Errorf("answer is not an object: %w", err)
	}
	switch result.Action {
	case Accept, Decline, Cancel:
		return result.Action, result.Content, nil
	}
	return "", nil, fmt.Errorf("action %q is not accept, decline or cancel", result.Action)
}

// requestedSchema is the question's own schema or the one of T. Additional members of an answer are ignored rather than
// refused: the requested schema has no way to say otherwise.
func requestedSchema[T any](q Question) (*jsonschema.Schema, error) {
	schema := new(jsonschema.Schema)
	if q.Schema != nil {
		if err := json.Unmarshal(q.Schema, schema); err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
		return schema, nil
	}
	schema, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, err
	}
	if schema.Type != "object" {
		return nil, fmt.Errorf("%v is not a struct: a form is an object with primitive fields", reflect.TypeFor[T]())
	}
	schema.AdditionalProperties = nil
	for name, property := range schema.Properties {
		switch property.Type {
		case "string", "number", "integer", "boolean":
		default:
			return nil, fmt.Errorf("field %q of %v is no string, number or boolean: a form has primitive fields only",
				name, reflect.TypeFor[T]())
		}
	}
	return schema, nil
}

// ElicitURL asks the person to do something at a URL (URL-mode elicitation), such as to log in somewhere. [Accept]
// means consent to open it, not that what happens there is done: let that come back by a signal of its own.
func ElicitURL(ctx workflow.Context, t *Task, name, message, url string) (Action, error) {
	params := map[string]string{"mode": "url", "message": message, "url": url}
	for {
		asked, err := t.request(ctx, name, signals.MethodElicit, params)
		if err != nil {
			return "", err
		}
		raw, err := t.await(ctx, asked)
		if err != nil {
			return "", err
		}
		action, _, err := decodeElicitResult(raw)
		if err == nil {
			return action, nil
		}
		params["message"] = afterUnusable(message, err)
	}
}

// afterUnusable is the message with which a question is asked again.
func afterUnusable(message string, reason error) string {
	return fmt.Sprintf("%s\n(The last answer could not be used: %v.)", message, reason)
}

// Role is who says a [SamplingMessage].
type Role string

// The two roles of a sampling conversation.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// SamplingMessage is one message of a conversation; Content is a content block, see [signals.Text].
type SamplingMessage struct {
	Role    Role            `json:"role"`
	Content json.RawMessage `json:"content"`
}

// Sampling is a request to the client's model (MCP 2026-07-28, Sampling).
type Sampling struct {
	Messages         []SamplingMessage `json:"messages"`
	SystemPrompt     string            `json:"systemPrompt,omitempty"`
	MaxTokens        int               `json:"maxTokens"`
	Temperature      *float64          `json:"temperature,omitempty"`
	StopSequences    []string          `json:"stopSequences,omitempty"`
	ModelPreferences json.RawMessage   `json:"modelPreferences,omitempty"`
}

// SamplingResult is what the client's model said.
type SamplingResult struct {
	Role       Role            `json:"role"`
	Content    json.RawMessage `json:"content"`
	Model      string          `json:"model"`
	StopReason string          `json:"stopReason,omitempty"`
}

// Sample has the client's model answer and waits for it.
func Sample(ctx workflow.Context, t *Task, name string, s Sampling) (SamplingResult, error) {
	return fulfil[SamplingResult](ctx, t, name, signals.MethodSample, s)
}

// Root is a directory or file that the client offers to work on.
type Root struct {
	URI  string `json:"uri"`
	Name string `json:"name,omitempty"`
}

// ListRoots asks the client for its roots and waits for them.
func ListRoots(ctx workflow.Context, t *Task) ([]Root, error) {
	result, err := fulfil[struct {
		Roots []Root `json:"roots"`
	}](ctx, t, "roots", signals.MethodListRoots, struct{}{})
	return result.Roots, err
}

func fulfil[R any](ctx workflow.Context, t *Task, name, method string, params any) (R, error) {
	var result R
	asked, err := t.request(ctx, name, method, params)
	if err != nil {
		return result, err
	}
	raw, err := t.await(ctx, asked)
	if err != nil {
		return result, err
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return result, fmt.Errorf("result of %s: %w", method, err)
	}
	return result, nil
}

// request issues an input request with params encoded.
func (t *Task) request(ctx workflow.Context, name, method string, params any) (*question, error) {
	encoded, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", method, name, err)
	}
	return t.issue(ctx, name, signals.InputRequest{Method: method, Params: encoded}), nil
}
