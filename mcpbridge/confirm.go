package mcpbridge

import (
	"bytes"
	"crypto/sha256"
	stdjson "encoding/json"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/signals"
)

const (
	confirmKey = "confirm"
	// confirmLifetime is how long a person may think about a confirmation.
	confirmLifetime = time.Hour
)

// confirmState travels sealed through the client while a person decides (MCP 2026-07-28, Multi Round-Trip Requests). It
// names the task that the confirmed call will start, so that a repeated or replayed retry starts nothing twice.
type confirmState struct {
	TaskID    string    `json:"taskId"`
	Owner     string    `json:"owner"`
	Tool      string    `json:"tool"`
	Arguments []byte    `json:"arguments"` // digest
	Expires   time.Time `json:"expires"`
}

// confirmRound is what one round of a confirmation leads to: a reply to send, or a task to start.
type confirmRound struct {
	reply   []byte
	taskID  string
	content stdjson.RawMessage
}

// confirm asks a tool's question before anything starts. The first call is answered with the question; the retry brings
// the answer and the sealed state.
func (d *modern) confirm(r *request, tool *catalog.Tool) (confirmRound, *rpc.Error) {
	if !r.declaresForms() {
		return confirmRound{}, missingCapability("elicitation", "form")
	}
	digest, err := argumentsDigest(r.params.Arguments)
	if err != nil {
		return confirmRound{}, rpc.Errorf(rpc.CodeInvalidParams, "params.arguments: %v", err)
	}
	state := confirmState{
		TaskID:    uuid.NewString(),
		Owner:     r.owner,
		Tool:      tool.Name,
		Arguments: digest,
		Expires:   time.Now().Add(confirmLifetime),
	}
	if r.params.RequestState == "" {
		return d.ask(tool, state)
	}
	returned, rpcErr := d.openState(r.params.RequestState, state)
	if rpcErr != nil {
		return confirmRound{}, rpcErr
	}
	response, rpcErr := responseTo(r.params.InputResponses, confirmKey)
	if rpcErr != nil {
		return confirmRound{}, rpcErr
	}
	if response == nil {
		return d.ask(tool, *returned)
	}
	return d.decide(tool, returned, response)
}

// ask replies with the question.
func (d *modern) ask(tool *catalog.Tool, state confirmState) (confirmRound, *rpc.Error) {
	plain, err := json.Marshal(state)
	if err != nil {
		return confirmRound{}, taskError("tools/call", err)
	}
	params, err := json.Marshal(struct {
		Mode            string             `json:"mode"`
		Message         string             `json:"message"`
		RequestedSchema stdjson.RawMessage `json:"requestedSchema"`
	}{"form", tool.Confirm.Message, tool.Confirm.Schema})
	if err != nil {
		return confirmRound{}, taskError("tools/call", err)
	}
	reply, err := json.Marshal(struct {
		ResultType    string                          `json:"resultType"`
		InputRequests map[string]signals.InputRequest `json:"inputRequests"`
		RequestState  string                          `json:"requestState"`
		Meta          jsontext.Value                  `json:"_meta"`
	}{
		ResultType:    "input_required",
		InputRequests: map[string]signals.InputRequest{confirmKey: {Method: signals.MethodElicit, Params: params}},
		RequestState:  d.sealer.Seal(plain),
		Meta:          d.resultMeta,
	})
	if err != nil {
		return confirmRound{}, taskError("tools/call", err)
	}
	return confirmRound{reply: reply}, nil
}

// openState opens sealed state and checks that it was made for this caller, tool and arguments, not too long ago.
func (d *modern) openState(sealed string, expected confirmState) (*confirmState, *rpc.Error) {
	refuse := func(reason string) (*confirmState, *rpc.Error) {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "params.requestState %s: call the tool again without requestState", reason)
	}
	plain, err := d.sealer.Open(sealed)
	if err != nil {
		return refuse("is not one of this server's")
	}
	var state confirmState
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

// decide turns the person's answer into a start, a refusal, or the question once more.
func (d *modern) decide(tool *catalog.Tool, state *confirmState, response stdjson.RawMessage) (confirmRound, *rpc.Error) {
	action, content, err := catalog.DecodeAnswer(response)
	if err != nil {
		return confirmRound{}, rpc.Errorf(rpc.CodeInvalidParams, "params.inputResponses.%s: %v", confirmKey, err)
	}
	if action != "accept" {
		reply, rpcErr := d.encodeResult(toolError("%s was not confirmed (%s); nothing was started", tool.Name, action))
		return confirmRound{reply: reply}, rpcErr
	}
	if content == nil {
		content = stdjson.RawMessage("{}")
	}
	if err := tool.ValidateConfirmation(content); err != nil {
		return confirmRound{}, rpc.Errorf(rpc.CodeInvalidParams, "params.inputResponses.%s.content: %v", confirmKey, err)
	}
	return confirmRound{taskID: state.TaskID, content: content}, nil
}

// responseTo is the response under a key, nil if there is none.
func responseTo(responses jsontext.Value, key string) (stdjson.RawMessage, *rpc.Error) {
	if responses == nil {
		return nil, nil
	}
	var byKey map[string]stdjson.RawMessage
	if err := json.Unmarshal(responses, &byKey); err != nil {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "params.inputResponses must be an object: the response to each input request by its key")
	}
	return byKey[key], nil
}

// argumentsDigest is the same for arguments that differ in white space and member order only. Numbers count as they are
// written, which is how the workflow gets them: what was confirmed must be what runs.
func argumentsDigest(arguments jsontext.Value) ([]byte, error) {
	canonical := bytes.Clone(arguments)
	if len(canonical) == 0 {
		canonical = []byte("{}")
	}
	value := jsontext.Value(canonical)
	if err := value.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	digest := sha256.Sum256(value)
	return digest[:], nil
}
