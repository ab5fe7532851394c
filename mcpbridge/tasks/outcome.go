package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/signals"
)

const (
	codeInternalError = -32603
	// historyService is the identity by which the Temporal server itself terminates a workflow.
	historyService = "history-service"
)

// outcome reads the event that closed a task's workflow and fills in status, result and error.
func (s *Service) outcome(ctx context.Context, task *Task, workflow string, meta signals.Meta) error {
	event, err := s.closeEvent(ctx, workflow, task.runID)
	if err != nil {
		return err
	}
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		result := event.GetWorkflowExecutionCompletedEventAttributes().GetResult()
		task.complete(s.toolResult(result, catalog.ResultMode(meta.Result)))
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		task.complete(s.failure(event.GetWorkflowExecutionFailedEventAttributes().GetFailure()))
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		task.fail("the workflow did not finish within its execution timeout")
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		task.Status, task.StatusMessage = Cancelled, "cancelled"
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED:
		task.terminated(event.GetWorkflowExecutionTerminatedEventAttributes())
	case enumspb.EVENT_TYPE_UNSPECIFIED:
		task.Undetermined = true
		task.fail("the workflow has ended, but Temporal has lost the event that says how")
	default:
		task.Undetermined = true
		task.fail(fmt.Sprintf("the workflow ended in an unexpected way: %s", event.GetEventType()))
	}
	return nil
}

// closeEvent is the event that closed a run, nil if Temporal has lost it.
func (s *Service) closeEvent(ctx context.Context, workflow, runID string) (*historypb.HistoryEvent, error) {
	ctx, cancel := unbroken(ctx)
	defer cancel()
	events := s.temporal.GetWorkflowHistory(ctx, workflow, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	if !events.HasNext() {
		return nil, nil
	}
	event, err := events.Next()
	var (
		gone *serviceerror.NotFound
		lost *serviceerror.DataLoss
	)
	switch {
	case errors.As(err, &gone):
		// Deleted a moment ago, if the run itself is gone too.
		_, err = s.describe(ctx, workflow)
		return nil, err
	case errors.As(err, &lost):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read close event: %w", unavailable(err))
	}
	return event, nil
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

// failure maps a failed workflow: a JSON-RPC error raised on purpose is returned as error; anything else means that the
// tool ran and failed, which is a result (MCP Tasks extension, "Task Execution Errors").
func (s *Service) failure(failure *failurepb.Failure) (*signals.ToolResult, error) {
	message := failure.GetMessage()
	var application *temporal.ApplicationError
	for err := s.failures.FailureToError(failure); errors.As(err, &application); err = application.Unwrap() {
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
func (s *Service) toolResult(payloads *commonpb.Payloads, mode catalog.ResultMode) (*signals.ToolResult, error) {
	value, err := s.value(payloads)
	if err != nil {
		return nil, err
	}
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

// value is the JSON of a workflow's first result, nil if it has none. Bytes that are not JSON become a JSON string.
func (s *Service) value(payloads *commonpb.Payloads) (json.RawMessage, error) {
	if len(payloads.GetPayloads()) == 0 {
		return nil, nil
	}
	payload := payloads.GetPayloads()[0]
	var value json.RawMessage
	if err := s.data.FromPayload(payload, &value); err == nil && json.Valid(value) {
		return bytes.TrimSpace(value), nil
	}
	var raw []byte
	if err := s.data.FromPayload(payload, &raw); err != nil {
		return nil, fmt.Errorf("result of the workflow: %w", err)
	}
	if utf8.Valid(raw) {
		return json.Marshal(string(raw))
	}
	return json.Marshal(raw)
}
