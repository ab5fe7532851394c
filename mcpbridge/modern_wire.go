package mcpbridge

import (
	"maps"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/tasks"
	"taskbridge/signals"
)

// baseResult is what every result of the modern dialect has.
type baseResult struct {
	ResultType string         `json:"resultType"`
	Meta       jsontext.Value `json:"_meta,omitzero"`
}

// wireTask is Result & Task, with the members of its status (MCP Tasks extension, "Tasks").
type wireTask struct {
	ResultType     string                          `json:"resultType"`
	TaskID         string                          `json:"taskId"`
	Status         tasks.Status                    `json:"status"`
	StatusMessage  string                          `json:"statusMessage,omitzero"`
	CreatedAt      string                          `json:"createdAt"`
	LastUpdatedAt  string                          `json:"lastUpdatedAt"`
	TTLMs          *int64                          `json:"ttlMs"`
	PollIntervalMs int64                           `json:"pollIntervalMs,omitzero"`
	InputRequests  map[string]signals.InputRequest `json:"inputRequests,omitzero"`
	Result         *wireResult                     `json:"result,omitzero"`
	Error          *signals.RPCError               `json:"error,omitzero"`
	Meta           jsontext.Value                  `json:"_meta,omitzero"`
}

// wireResult is a CallToolResult, as the answer to tools/call or inside a task: every result names its type.
type wireResult struct {
	ResultType string `json:"resultType"`
	signals.ToolResult
}

// wireTask is a task's metadata; [modern.encodeDetailed] adds what its status brings.
func (d *modern) wireTask(task *tasks.Task, resultType string) wireTask {
	return wireTask{
		ResultType:     resultType,
		TaskID:         task.ID,
		Status:         task.Status,
		StatusMessage:  task.StatusMessage,
		CreatedAt:      timestamp(task.CreatedAt),
		LastUpdatedAt:  timestamp(task.UpdatedAt),
		TTLMs:          milliseconds(task.TTL),
		PollIntervalMs: task.PollInterval.Milliseconds(),
		Meta:           d.resultMeta,
	}
}

// encodeDetailed is a GetTaskResult: a task with its open requests, its result or its error.
func (d *modern) encodeDetailed(task *tasks.Task) ([]byte, error) {
	w := d.wireTask(task, "complete")
	w.InputRequests, w.Error = task.InputRequests, task.Error
	if task.Result != nil {
		w.Result = &wireResult{"complete", *task.Result}
	}
	return json.Marshal(w, json.Deterministic(true))
}

// encodeResult is a CallToolResult as the direct answer to tools/call.
func (d *modern) encodeResult(result *signals.ToolResult) ([]byte, *rpc.Error) {
	whole := *result
	whole.Meta = maps.Clone(d.meta)
	maps.Copy(whole.Meta, result.Meta)
	encoded, err := json.Marshal(wireResult{"complete", whole}, json.Deterministic(true))
	if err != nil {
		return nil, taskError("tools/call", err)
	}
	return encoded, nil
}

// dataOf is the data member of a workflow's JSON-RPC error, nil if it has none.
func dataOf(err *signals.RPCError) any {
	if err.Data == nil {
		return nil
	}
	return err.Data
}

// timestamp is a time in ISO 8601 with milliseconds, in UTC.
func timestamp(t time.Time) string {
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
