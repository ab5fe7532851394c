package mcpbridge

import (
	"bytes"
	stdjson "encoding/json"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/tasks"
	"taskbridge/signals"
)

const (
	confirmKey = "confirm"
	// confirmLifetime is how long a person may think about a confirmation, runningLifetime how long about what a running
	// workflow asks.
	confirmLifetime = time.Hour
	runningLifetime = 24 * time.Hour
)

// callState travels sealed through the client while a person decides (MCP 2026-07-28, Multi Round-Trip Requests). It
// names the task that the call has started, or will start once confirmed, so that a repeated or replayed retry starts
// nothing twice.
type callState struct {
	TaskID    string    `json:"taskId"`
	Running   bool      `json:"running,omitzero"` // the task has been started
	Owner     string    `json:"owner"`
	Tool      string    `json:"tool"`
	Arguments []byte    `json:"arguments"` // digest
	Expires   time.Time `json:"expires"`
	Told      told      `json:"told,omitzero"` // of the task's progress
}

// newState is the state of a call.
func newState(r *request, taskID string, lifetime time.Duration) (*callState, *rpc.Error) {
	digest, err := tasks.ArgumentsDigest(stdjson.RawMessage(r.params.Arguments))
	if err != nil {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "params.arguments: %v", err)
	}
	return &callState{TaskID: taskID, Owner: r.owner, Tool: r.params.Name, Arguments: digest, Expires: time.Now().Add(lifetime)}, nil
}

// confirmRound is what one round of a confirmation leads to: a reply to send, or a task to start.
type confirmRound struct {
	reply   []byte
	taskID  string
	content stdjson.RawMessage
}

// confirm asks a tool's question before anything starts. The first call is answered with the question; the retry brings
// the answer and the sealed state.
func (d *modern) confirm(r *request, tool *catalog.Tool, state *callState) (confirmRound, *rpc.Error) {
	if !r.client().showsForms() {
		return confirmRound{}, missingCapability("elicitation", "form")
	}
	question := map[string]signals.InputRequest{confirmKey: confirmation(tool)}
	if state == nil {
		state, rpcErr := newState(r, uuid.NewString(), confirmLifetime)
		if rpcErr != nil {
			return confirmRound{}, rpcErr
		}
		return d.confirmRound(question, state)
	}
	responses, rpcErr := decodeResponses(r.params.InputResponses)
	if rpcErr != nil {
		return confirmRound{}, rpcErr
	}
	response, answered := responses[confirmKey]
	if !answered {
		return d.confirmRound(question, state)
	}
	content, refusal, rpcErr := decide(tool, response)
	if rpcErr != nil {
		return confirmRound{}, rpcErr
	}
	if refusal != nil {
		reply, rpcErr := d.encodeResult(refusal)
		return confirmRound{reply: reply}, rpcErr
	}
	return confirmRound{taskID: state.TaskID, content: content}, nil
}

func (d *modern) confirmRound(question map[string]signals.InputRequest, state *callState) (confirmRound, *rpc.Error) {
	reply, rpcErr := d.encodeQuestions(question, state)
	return confirmRound{reply: reply}, rpcErr
}

// askMidway ends a round with what the running workflow asks. The retry goes on where this round ends.
func (d *modern) askMidway(r *request, task *tasks.Task, progress *progress) ([]byte, *rpc.Error) {
	state, rpcErr := newState(r, task.ID, runningLifetime)
	if rpcErr != nil {
		return nil, rpcErr
	}
	state.Running = true
	if progress != nil {
		state.Told = progress.told
	}
	return d.encodeQuestions(task.InputRequests, state)
}

// encodeQuestions is an InputRequiredResult.
func (d *modern) encodeQuestions(requests map[string]signals.InputRequest, state *callState) ([]byte, *rpc.Error) {
	plain, err := json.Marshal(state)
	if err != nil {
		return nil, taskError("tools/call", err)
	}
	reply, err := json.Marshal(struct {
		ResultType    string                          `json:"resultType"`
		InputRequests map[string]signals.InputRequest `json:"inputRequests"`
		RequestState  string                          `json:"requestState"`
		Meta          jsontext.Value                  `json:"_meta"`
	}{
		ResultType:    "input_required",
		InputRequests: requests,
		RequestState:  d.sealer.Seal(plain),
		Meta:          d.resultMeta,
	}, json.Deterministic(true))
	if err != nil {
		return nil, taskError("tools/call", err)
	}
	return reply, nil
}

// returnedState opens the state that a retry brings back, and checks that it was made for this caller, tool and
// arguments, not too long ago. It is nil if the call brings none.
func (d *modern) returnedState(r *request) (*callState, *rpc.Error) {
	if r.params.RequestState == "" {
		return nil, nil
	}
	refuse := func(reason string) (*callState, *rpc.Error) {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "params.requestState %s: call the tool again without requestState", reason)
	}
	expected, rpcErr := newState(r, "", 0)
	if rpcErr != nil {
		return nil, rpcErr
	}
	plain, err := d.sealer.Open(r.params.RequestState)
	if err != nil {
		return refuse("is not one of this server's")
	}
	var state callState
	if err := json.Unmarshal(plain, &state); err != nil {
		return refuse("cannot be read")
	}
	if state.Owner != expected.Owner || state.Tool != expected.Tool || !bytes.Equal(state.Arguments, expected.Arguments) {
		return refuse("belongs to another call")
	}
	if time.Now().After(state.Expires) {
		return refuse("has expired")
	}
	return &state, nil
}

// confirmation is the question that a tool asks before anything starts.
func confirmation(tool *catalog.Tool) signals.InputRequest {
	params, err := json.Marshal(struct {
		Mode            string             `json:"mode"`
		Message         string             `json:"message"`
		RequestedSchema stdjson.RawMessage `json:"requestedSchema"`
	}{"form", tool.Confirm.Message, tool.Confirm.Schema})
	if err != nil { // the catalog has checked the schema
		panic(err)
	}
	return signals.InputRequest{Method: signals.MethodElicit, Params: params}
}

// decide reads a person's answer to a confirmation: what was confirmed, or the result that says that nothing was.
func decide(tool *catalog.Tool, response stdjson.RawMessage) (content stdjson.RawMessage, refusal *signals.ToolResult, rpcErr *rpc.Error) {
	action, content, err := catalog.DecodeAnswer(response)
	if err != nil {
		return nil, nil, rpc.Errorf(rpc.CodeInvalidParams, "params.inputResponses.%s: %v", confirmKey, err)
	}
	if action != "accept" {
		return nil, toolError("%s was not confirmed (%s); nothing was started", tool.Name, action), nil
	}
	if content == nil {
		content = stdjson.RawMessage("{}")
	}
	if err := tool.ValidateConfirmation(content); err != nil {
		return nil, nil, rpc.Errorf(rpc.CodeInvalidParams, "params.inputResponses.%s.content: %v", confirmKey, err)
	}
	return content, nil, nil
}

// decodeResponses reads the responses to input requests by their keys; nothing if there are none.
func decodeResponses(responses jsontext.Value) (map[string]stdjson.RawMessage, *rpc.Error) {
	if responses == nil {
		return nil, nil
	}
	var byKey map[string]stdjson.RawMessage
	if err := json.Unmarshal(responses, &byKey); err != nil {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "params.inputResponses must be an object: the response to each input request by its key")
	}
	return byKey, nil
}
