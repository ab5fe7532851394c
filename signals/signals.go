// Package signals is the contract between the taskbridge front end and the workflows it starts: the names and JSON
// payloads that both sides must agree on. It depends on the standard library only, so that a workflow in any Go program
// can import it and a workflow in any other language can copy it; docs/contract.md documents the same JSON.
//
// The contract is versioned. A change that an older peer would misread raises [Version]; adding an optional member does
// not.
package signals

import (
	"encoding/json"
	"fmt"
	"time"
)

// Version is the contract's version, the "v" member of every payload that has one.
const Version = 1

// Names by which the front end and a workflow know each other's messages.
const (
	// InputSignal carries an [Input] to a workflow: answers to its open input requests.
	InputSignal = "mcp.task.input"
	// StateMemo is the memo key under which a workflow upserts its [TaskState].
	StateMemo = "mcp.task"
	// MetaMemo is the memo key under which the front end stores a task's [Meta] when it starts the workflow.
	MetaMemo = "mcp.meta"
	// StateQuery answers with the live [TaskState]. Optional for a workflow to implement.
	StateQuery = "mcp.task.state"
	// RPCErrorType is the application error type that makes a task fail with exactly the [RPCError] in its details.
	RPCErrorType = "mcp.RPCError"
)

// TaskState is what a workflow says about itself, as memo [StateMemo] and as the answer to [StateQuery].
type TaskState struct {
	Version int `json:"v"`
	// StatusMessage is one line for a person or a model: what the workflow is doing now.
	StatusMessage string `json:"statusMessage,omitempty"`
	// InputRequests are all the questions the workflow is waiting on, by key. A key is never used twice in the life of
	// a task. A task with open input requests is input_required.
	InputRequests map[string]InputRequest `json:"inputRequests,omitempty"`
	// Progress is how far the workflow has come, if it can tell.
	Progress *Progress `json:"progress,omitempty"`
	// UpdatedAt is the workflow's time at the last change.
	UpdatedAt time.Time `json:"updatedAt"`
}

// Progress counts the steps of a task, in whatever unit the workflow likes. Done does not decrease.
type Progress struct {
	Done float64 `json:"done"`
	// Total is 0 as long as nobody knows.
	Total float64 `json:"total,omitzero"`
}

// InputRequest is a request that the MCP client is asked to fulfil: elicitation/create, sampling/createMessage or
// roots/list (MCP 2026-07-28, Multi Round-Trip Requests, "InputRequests").
type InputRequest struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitzero"`
}

// Methods an [InputRequest] may have.
const (
	MethodElicit    = "elicitation/create"
	MethodSample    = "sampling/createMessage"
	MethodListRoots = "roots/list"
)

// Input is the payload of [InputSignal]: for each key the result of that input request. A workflow ignores keys that it
// never issued; the first answer to a key wins.
type Input struct {
	Responses map[string]json.RawMessage `json:"responses"`
}

// Meta is what the front end records about a task at its start, as memo [MetaMemo]. It is all that any front end needs
// to answer for the task, whatever its own catalog says by then. Workflows must leave it alone.
type Meta struct {
	Version int    `json:"v"`
	Tool    string `json:"tool"`
	// CreatedAt stays that of the first run across continue-as-new.
	CreatedAt time.Time `json:"createdAt"`
	// RetentionMs is for how long after its end the task can be read.
	RetentionMs int64 `json:"retentionMs"`
	// TTLMs is for how long after CreatedAt the client wants to read the task, if it asked for that. It replaces
	// RetentionMs, but neither ends nor hides a task that is not yet over.
	TTLMs          *int64 `json:"ttlMs,omitempty"`
	PollIntervalMs int64  `json:"pollIntervalMs"`
	// Result says how the workflow's result becomes a CallToolResult: auto, text, json or mcp.
	Result string `json:"result,omitempty"`
	// ResultPath is a JSON Pointer (RFC 6901) to the part of the workflow's result that counts; empty for all of it.
	ResultPath string `json:"resultPath,omitempty"`
	// ArgumentsDigest tells the arguments of a call apart that has an idempotency key.
	ArgumentsDigest string `json:"argumentsDigest,omitempty"`
	// Cancel says what tasks/cancel does: request (cooperative) or terminate.
	Cancel string `json:"cancel,omitempty"`
	// Dialect names the protocol era in which the task was created.
	Dialect string `json:"dialect"`
}

// Heartbeat is the heartbeat detail by which an activity reports progress inside one step. While the activity runs, its
// StatusMessage is shown instead of the workflow's own. It costs no history.
type Heartbeat struct {
	Version       int    `json:"v"`
	StatusMessage string `json:"statusMessage"`
}

// ToolResult is a workflow result in CallToolResult form (MCP 2026-07-28, "CallToolResult"), passed on as it is for
// tools declared with result mode mcp.
type ToolResult struct {
	// Content blocks, each a JSON object with a "type"; see [Text].
	Content []json.RawMessage `json:"content"`
	// StructuredContent is any JSON value; it should match the tool's output schema, if there is one.
	StructuredContent json.RawMessage `json:"structuredContent,omitzero"`
	// IsError says that the tool ran and failed; the content tells why.
	IsError bool                       `json:"isError,omitzero"`
	Meta    map[string]json.RawMessage `json:"_meta,omitempty"`
}

// Text is a text content block.
func Text(text string) json.RawMessage {
	block, err := json.Marshal(map[string]string{"type": "text", "text": text})
	if err != nil { // strings always encode
		panic(err)
	}
	return block
}

// RPCError is a JSON-RPC error object. A workflow that fails with it (application error type [RPCErrorType]) makes its
// task fail with exactly this error.
type RPCError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitzero"`
}

func (e *RPCError) Error() string {
	return fmt.Sprintf("JSON-RPC error %d: %s", e.Code, e.Message)
}
