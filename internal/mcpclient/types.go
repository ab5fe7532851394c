package mcpclient

import (
	"encoding/json"
	"fmt"
	"time"
)

// Error is a JSON-RPC error.
type Error struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string {
	data := ""
	if len(e.Data) > 0 {
		data = ", " + string(e.Data)
	}
	return fmt.Sprintf("%s (JSON-RPC error %d%s)", e.Message, e.Code, data)
}

// CodeInternalError is the code of errors that a repeated request may not meet again.
const CodeInternalError = -32603

// Tool is what a server says about one of its tools.
type Tool struct {
	Name         string          `json:"name"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  struct {
		Title           string `json:"title"`
		ReadOnlyHint    bool   `json:"readOnlyHint"`
		DestructiveHint *bool  `json:"destructiveHint"`
	} `json:"annotations"`
	Execution struct {
		// TaskSupport is required, optional or forbidden; "" if the server does not say.
		TaskSupport string `json:"taskSupport"`
	} `json:"execution"`
	// Raw is the tool as the server sent it.
	Raw json.RawMessage `json:"-"`
}

// Result is a CallToolResult.
type Result struct {
	// Content are content blocks, each an object with a "type".
	Content           []json.RawMessage `json:"content"`
	StructuredContent json.RawMessage   `json:"structuredContent"`
	IsError           bool              `json:"isError"`
	// Raw is the result as the server sent it.
	Raw json.RawMessage `json:"-"`
}

// Status is the state of a task.
type Status string

// The states of a task (MCP Tasks extension, "Task Status").
const (
	Working       Status = "working"
	InputRequired Status = "input_required"
	Completed     Status = "completed"
	Failed        Status = "failed"
	Cancelled     Status = "cancelled"
)

// Terminal reports whether a task in this state stays in it.
func (s Status) Terminal() bool { return s == Completed || s == Failed || s == Cancelled }

// Task is a task at one moment. InputRequests, Result and Error are set by its status, and only by [Client.GetTask].
type Task struct {
	ID             string    `json:"taskId"`
	Status         Status    `json:"status"`
	StatusMessage  string    `json:"statusMessage"`
	CreatedAt      time.Time `json:"createdAt"`
	LastUpdatedAt  time.Time `json:"lastUpdatedAt"`
	TTLMs          *int64    `json:"ttlMs"`
	PollIntervalMs int64     `json:"pollIntervalMs"`
	InputRequests  Requests  `json:"inputRequests"`
	Result         *Result   `json:"result"`
	Error          *Error    `json:"error"`
	// Raw is the task as the server sent it.
	Raw json.RawMessage `json:"-"`
}

// PollInterval is how often the server wants to be asked about the task.
func (t *Task) PollInterval() time.Duration {
	return time.Duration(t.PollIntervalMs) * time.Millisecond
}

// Requests are a server's open input requests by key.
type Requests map[string]Request

// Request is one input request: elicitation/create, sampling/createMessage or roots/list.
type Request struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// Questions is an InputRequiredResult: what a server wants to know before a call starts anything (MCP 2026-07-28, Multi
// Round-Trip Requests).
type Questions struct {
	InputRequests Requests `json:"inputRequests"`
	// RequestState must come back unread with the answers, nil not at all.
	RequestState *string `json:"requestState"`
	// Raw is the result as the server sent it.
	Raw json.RawMessage `json:"-"`
}

// Round is one more attempt of a call, with the answers to the [Questions] of the attempt before.
type Round struct {
	InputResponses map[string]json.RawMessage
	RequestState   *string
}

// Outcome is what a call led to: exactly one of them is not nil.
type Outcome struct {
	Result    *Result
	Task      *Task
	Questions *Questions
}
