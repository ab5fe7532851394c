package tasks

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/temporal"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/signals"
)

const (
	codeInternalError = -32603
	// historyService is the identity by which the Temporal server itself terminates a workflow.
	historyService = "history-service"
)

// close fills in what a task's workflow has closed with: times, status, result and error. The event is nil if Temporal has
// lost it.
func (t *Task) close(at time.Time, event *historypb.HistoryEvent) {
	t.UpdatedAt, t.TTL = at, t.in.closedTTL(at, t.meta)
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		result := event.GetWorkflowExecutionCompletedEventAttributes().GetResult()
		t.complete(t.in.toolResult(result, t.meta))
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		t.complete(t.in.failed(event.GetWorkflowExecutionFailedEventAttributes().GetFailure()))
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		t.fail("the workflow did not finish within its execution timeout")
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		t.Status, t.StatusMessage = Cancelled, "cancelled"
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		t.terminated(event.GetWorkflowExecutionTerminatedEventAttributes())
	case enumspb.EVENT_TYPE_UNSPECIFIED:
		t.Undetermined = true
		t.fail("the workflow has ended, but Temporal has lost the event that says how")
	default:
		t.Undetermined = true
		t.fail(fmt.Sprintf("the workflow ended in an unexpected way: %s", event.GetEventType()))
	}
}

// complete ends a task with a result, or with the JSON-RPC error that came instead.
func (t *Task) complete(result *signals.ToolResult, err error) {
	if err == nil {
		t.Status, t.Result = Completed, result
		return
	}
	rpcError := &signals.RPCError{Code: codeInternalError, Message: err.Error()}
	errors.As(err, &rpcError)
	t.Status, t.Error, t.StatusMessage = Failed, rpcError, rpcError.Message
}

func (t *Task) fail(reason string) {
	t.complete(nil, errors.New(reason))
}

func (t *Task) terminated(by *historypb.WorkflowExecutionTerminatedEventAttributes) {
	reason := by.GetReason()
	if by.GetIdentity() == historyService {
		t.fail("Temporal ended the workflow: " + reason)
		return
	}
	if reason == "" {
		reason = "no reason given"
	}
	t.Status, t.StatusMessage = Cancelled, "terminated: "+reason
	t.CancelRequested = t.CancelRequested || reason == cancelReason
}

// failed maps a failed workflow: a JSON-RPC error raised on purpose is returned as error; anything else means that the
// tool ran and failed, which is a result (MCP Tasks extension, "Task Execution Errors").
func (n *namespace) failed(failure *failurepb.Failure) (*signals.ToolResult, error) {
	message, err := n.failure(failure)
	var application *temporal.ApplicationError
	for ; errors.As(err, &application); err = application.Unwrap() {
		if application.Type() == signals.RPCErrorType {
			return nil, rpcErrorOf(application)
		}
		if failure.GetApplicationFailureInfo() == nil { // an activity or a child workflow failed, and this is why
			message = application.Message()
			break
		}
	}
	return &signals.ToolResult{Content: []json.RawMessage{signals.Text(message)}, IsError: true}, nil
}

// rpcErrorOf is the JSON-RPC error in an application error's details.
func rpcErrorOf(application *temporal.ApplicationError) *signals.RPCError {
	rpcError := &signals.RPCError{Code: codeInternalError, Message: application.Message()}
	if !application.HasDetails() {
		return rpcError
	}
	if err := application.Details(rpcError); err != nil {
		rpcError.Message = fmt.Sprintf("%s (its details cannot be read: %v)", application.Message(), err)
	}
	return rpcError
}

// toolResult turns a workflow's result into a CallToolResult as the tool's result mode says. Values pass through as the
// JSON that the workflow wrote, so numbers keep every digit.
func (n *namespace) toolResult(payloads *commonpb.Payloads, meta signals.Meta) (*signals.ToolResult, error) {
	value, err := n.result(payloads)
	if err == nil {
		value, err = part(value, jsontext.Pointer(meta.ResultPath))
	}
	if err != nil {
		return nil, fmt.Errorf("result of the workflow: %w", err)
	}
	mode := catalog.ResultMode(meta.Result)
	if mode == catalog.ResultMCP {
		return passedOn(value)
	}
	if len(value) == 0 || string(value) == "null" {
		return &signals.ToolResult{Content: []json.RawMessage{}}, nil
	}
	text := string(value)
	isObject := value[0] == '{'
	if value[0] == '"' {
		if err := json.Unmarshal(value, &text); err != nil {
			return nil, fmt.Errorf("result of the workflow: %w", err)
		}
	}
	result := &signals.ToolResult{Content: []json.RawMessage{signals.Text(text)}}
	if mode == catalog.ResultJSON || mode != catalog.ResultText && isObject {
		result.StructuredContent = value
	}
	return result, nil
}

// passedOn is a result that already is in CallToolResult form.
func passedOn(value json.RawMessage) (*signals.ToolResult, error) {
	var result signals.ToolResult
	if err := json.Unmarshal(value, &result); err != nil {
		return nil, fmt.Errorf("the tool's result mode is mcp but the workflow's result is not in CallToolResult form: %w", err)
	}
	if result.Content == nil && result.StructuredContent == nil {
		return nil, errors.New("the tool's result mode is mcp but the workflow's result has neither content nor structuredContent")
	}
	if result.Content == nil {
		result.Content = []json.RawMessage{}
	}
	return &result, nil
}

// result is the JSON of a workflow's first result, nil if it has none.
func (n *namespace) result(payloads *commonpb.Payloads) (json.RawMessage, error) {
	if len(payloads.GetPayloads()) == 0 {
		return nil, nil
	}
	return n.value(payloads.GetPayloads()[0])
}

// part is the part of a JSON value that a pointer leads to, byte for byte.
func part(value json.RawMessage, pointer jsontext.Pointer) (json.RawMessage, error) {
	for token := range pointer.Tokens() {
		below, found := child(value, token)
		if !found {
			return nil, fmt.Errorf("nothing is at %q of the tool's resultPath %s", token, pointer)
		}
		value = below
	}
	return value, nil
}

func child(value json.RawMessage, name string) (below json.RawMessage, found bool) {
	var object map[string]json.RawMessage
	if json.Unmarshal(value, &object) == nil {
		below, found = object[name]
		return below, found
	}
	var list []json.RawMessage
	i, err := strconv.Atoi(name)
	if err != nil || json.Unmarshal(value, &list) != nil || i < 0 || i >= len(list) {
		return nil, false
	}
	return list[i], true
}
