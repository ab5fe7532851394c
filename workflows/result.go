package workflows

import (
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"

	"taskbridge/signals"
)

// TextResult is a successful tool result of one text block.
func TextResult(format string, args ...any) *signals.ToolResult {
	return &signals.ToolResult{Content: []json.RawMessage{signals.Text(fmt.Sprintf(format, args...))}}
}

// ErrorResult is the result of a tool that ran and failed; the text tells the model why.
func ErrorResult(format string, args ...any) *signals.ToolResult {
	result := TextResult(format, args...)
	result.IsError = true
	return result
}

// RPCError ends the task as failed with exactly this JSON-RPC error. data may be nil. For a tool that ran and failed
// return an ordinary error or an [ErrorResult] instead (MCP Tasks, "Task Execution Errors").
func RPCError(code int64, message string, data any) error {
	rpcError := signals.RPCError{Code: code, Message: message}
	if data != nil {
		encoded, err := json.Marshal(data)
		if err != nil {
			return errors.Join(fmt.Errorf("data of JSON-RPC error %d: %w", code, err), &rpcError)
		}
		rpcError.Data = encoded
	}
	return temporal.NewApplicationErrorWithOptions(message, signals.RPCErrorType, temporal.ApplicationErrorOptions{
		NonRetryable: true,
		Details:      []any{rpcError},
	})
}
