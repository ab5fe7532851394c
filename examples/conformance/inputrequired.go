package main

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A dialogue is a tool or prompt that asks, round by round, and then replies.
type dialogue struct {
	name, description string
	argument          string // its one argument, a string; empty if it takes none
	rounds            func(argument string) []round
	reply             func(answers map[string]string) string
	stateful          bool // answers count only along with the state that came with their questions
	lenient           bool // leaves out what the client cannot answer instead of failing
	seal              sealer
}

// A round is what a dialogue asks at once. Keys are unique over all rounds of a dialogue.
type round map[string]question

// A question is one input request of SEP-2322.
type question struct {
	capability string // what the client must have declared: elicitation, sampling or roots
	request    func() mcp.InputRequest
	read       func(mcp.InputResponse) (answer string, ok bool)
}

// turn is what happens next in a dialogue: a round to ask with the state to hand out, or else all answers.
type turn struct {
	ask     mcp.InputRequestMap
	state   string
	answers map[string]string
}

func (d dialogue) tool() *mcp.Tool {
	schema := map[string]any{"type": "object"}
	if d.argument != "" {
		schema["properties"] = map[string]any{d.argument: map[string]any{"type": "string"}}
		schema["required"] = []string{d.argument}
	}
	return &mcp.Tool{Name: d.name, Description: d.description, InputSchema: schema}
}

func (d dialogue) call(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	var args map[string]any
	if len(req.Params.Arguments) > 0 {
		if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
			return nil, invalidParams("arguments must be an object: " + err.Error())
		}
	}
	argument, ok := args[d.argument].(string)
	if d.argument != "" && !ok {
		return nil, invalidParams("argument " + d.argument + " must be a string")
	}
	next, err := d.next(argument, req.ClientCapabilities(), req.Params.InputResponses, req.Params.RequestState)
	if err != nil {
		return nil, err
	}
	if next.ask != nil {
		return &mcp.CallToolResult{Content: []mcp.Content{}, InputRequests: next.ask, RequestState: next.state}, nil
	}
	return textResult(d.reply(next.answers)), nil
}

func (d dialogue) prompt(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	next, err := d.next("", req.ClientCapabilities(), req.Params.InputResponses, req.Params.RequestState)
	if err != nil {
		return nil, err
	}
	if next.ask != nil {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}, InputRequests: next.ask, RequestState: next.state}, nil
	}
	return prompt(text(d.reply(next.answers)))(ctx, req)
}

func (d dialogue) next(
	argument string, can *mcp.ClientCapabilities, responses mcp.InputResponseMap, state string,
) (turn, error) {
	answers := map[string]string{}
	if state != "" {
		earlier, err := d.seal.open(d.name, state)
		if err != nil {
			return turn{}, invalidParams("requestState: " + err.Error())
		}
		maps.Copy(answers, earlier)
	} else if d.stateful {
		responses = nil
	}
	for _, r := range d.rounds(argument) {
		ask, err := r.open(can, responses, answers, d.lenient)
		if err != nil {
			return turn{}, err
		}
		if len(ask) > 0 {
			return turn{ask: ask, state: d.state(answers)}, nil
		}
	}
	return turn{answers: answers}, nil
}

func (d dialogue) state(answers map[string]string) string {
	if !d.stateful {
		return ""
	}
	return d.seal.close(d.name, answers)
}

// open moves valid responses to the answers and returns the questions which are still open.
func (r round) open(
	can *mcp.ClientCapabilities, responses mcp.InputResponseMap, answers map[string]string, lenient bool,
) (mcp.InputRequestMap, error) {
	ask := mcp.InputRequestMap{}
	for key, q := range r {
		if _, done := answers[key]; done {
			continue
		}
		if answer, ok := q.read(responses[key]); ok {
			answers[key] = answer
			continue
		}
		switch {
		case declares(can, q.capability):
			ask[key] = q.request()
		case !lenient:
			return nil, missingCapability(q.capability)
		}
	}
	return ask, nil
}

func missingCapability(name string) error {
	data, err := json.Marshal(map[string]any{"requiredCapabilities": map[string]any{name: struct{}{}}})
	if err != nil {
		return err
	}
	return &jsonrpc.Error{
		Code:    mcp.CodeMissingRequiredClientCapabilities,
		Message: "the client must declare the capability " + name,
		Data:    data,
	}
}

func invalidParams(message string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
}
