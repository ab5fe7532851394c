package mcpbridge

import (
	"maps"
	"strconv"
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

// wireResult is a CallToolResult, as the answer to tools/call or inside a task: every result names its type.
type wireResult struct {
	ResultType string `json:"resultType"`
	signals.ToolResult
}

// encodeTask is Result & Task (MCP Tasks extension, "Tasks"), with the members that its status brings. They are appended one
// by one, since encoding a struct would take a good part of what a call takes here.
func (d *modern) encodeTask(task *tasks.Task, resultType string, brought []byte) []byte {
	b := make([]byte, 0, 512+len(task.StatusMessage)+len(brought))
	b = append(b, `{"resultType":"`...)
	b = append(b, resultType...)
	b = append(b, `","taskId":`...)
	b = appendQuoted(b, task.ID)
	b = append(b, `,"status":"`...)
	b = append(b, task.Status...)
	b = append(b, '"')
	if task.StatusMessage != "" {
		b = append(b, `,"statusMessage":`...)
		b = appendQuoted(b, task.StatusMessage)
	}
	b = append(b, `,"createdAt":"`...)
	b = append(b, timestamp(task.CreatedAt)...)
	b = append(b, `","lastUpdatedAt":"`...)
	b = append(b, timestamp(task.UpdatedAt)...)
	b = append(b, `","ttlMs":`...)
	if ttl := milliseconds(task.TTL); ttl != nil {
		b = strconv.AppendInt(b, *ttl, 10)
	} else {
		b = append(b, "null"...)
	}
	if interval := task.PollInterval.Milliseconds(); interval != 0 {
		b = append(b, `,"pollIntervalMs":`...)
		b = strconv.AppendInt(b, interval, 10)
	}
	b = append(b, brought...)
	b = append(b, `,"_meta":`...)
	b = append(b, d.resultMeta...)
	return append(b, '}')
}

// appendQuoted appends a JSON string. What is not UTF-8 in it is replaced.
func appendQuoted(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// encodeDetailed is a GetTaskResult: a task with its open requests, its result or its error.
func (d *modern) encodeDetailed(task *tasks.Task) ([]byte, error) {
	if task.Status == tasks.Working {
		return d.encodeTask(task, "complete", nil), nil
	}
	var w struct {
		InputRequests map[string]signals.InputRequest `json:"inputRequests,omitzero"`
		Result        *wireResult                     `json:"result,omitzero"`
		Error         *signals.RPCError               `json:"error,omitzero"`
	}
	w.InputRequests, w.Error = task.InputRequests, task.Error
	if task.Result != nil {
		w.Result = &wireResult{"complete", *task.Result}
	}
	brought, err := json.Marshal(w, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	if brought = brought[1 : len(brought)-1]; len(brought) > 0 {
		brought = append([]byte{','}, brought...)
	}
	return d.encodeTask(task, "complete", brought), nil
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
