package mcpbridge

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/session"
	"taskbridge/mcpbridge/tasks"
	"taskbridge/signals"
)

const (
	// proposalRelated is the metadata key that ties a message to a task (SEP-1686, 6 "Related Task Metadata").
	proposalRelated = "modelcontextprotocol.io/related-task"
	// proposalDialect is recorded with tasks that were created by it.
	proposalDialect = "SEP-1686"
	// stopTimeout is how long a deletion waits for a cancelled workflow to stop.
	stopTimeout = 30 * time.Second
)

// proposal is the tasks dialect of SEP-1686, as it was proposed, in a conversation.
type proposal struct{ *conversation }

// proposalTask is a Task (SEP-1686, 6 "Data Types").
type proposalTask struct {
	TaskID        string         `json:"taskId"`
	Status        tasks.Status   `json:"status"`
	KeepAlive     int64          `json:"keepAlive"`
	PollFrequency int64          `json:"pollFrequency,omitzero"`
	Error         string         `json:"error,omitzero"`
	Meta          map[string]any `json:"_meta,omitzero"`
}

// The states that SEP-1686 has besides the five.
const (
	submitted tasks.Status = "submitted"
	unknown   tasks.Status = "unknown"
)

func (proposal) wire(task *tasks.Task) proposalTask {
	w := proposalTask{
		TaskID:        task.ID,
		Status:        task.Status,
		KeepAlive:     task.KeepAlive.Milliseconds(),
		PollFrequency: task.PollInterval.Milliseconds(),
	}
	switch {
	case task.CancelRequested:
		w.Status = tasks.Cancelled // at once and for good, whatever its workflow still does (4.3, 4.8)
	case task.Queued && task.Status == tasks.Working:
		w.Status = submitted
	case task.Undetermined:
		w.Status = unknown
	case task.Status == tasks.Failed:
		w.Error = task.Error.Message
	}
	return w
}

// serve answers the requests about tasks.
func (p proposal) serve(ctx context.Context, call *session.Call, params taskParams) ([]byte, *rpc.Error) {
	p.knowsProposal.Store(true)
	switch call.Method {
	case "tasks/get":
		task, err := p.service.Get(ctx, p.owner, *params.TaskID)
		if err != nil {
			return nil, retrieveError(err)
		}
		wire := p.wire(task)
		wire.Meta = related(proposalRelated, task.ID)
		return encode(wire)
	case "tasks/result":
		return p.result(ctx, *params.TaskID)
	case "tasks/list":
		return p.list(ctx, params, func(task *tasks.Task) any { return p.wire(task) })
	case "tasks/delete":
		return p.delete(ctx, *params.TaskID)
	}
	return nil, rpc.Errorf(rpc.CodeMethodNotFound, "%s is not part of SEP-1686: cancel the request that created the task with notifications/cancelled", call.Method)
}

// call starts a task under the client's ID, says so, and answers at the end (SEP-1686, 3.1 and 3.4).
func (p proposal) call(ctx context.Context, call *session.Call, tool *catalog.Tool, params callParams) ([]byte, *rpc.Error) {
	var requested struct {
		TaskID    *string  `json:"taskId"`
		KeepAlive *float64 `json:"keepAlive"`
	}
	if err := json.Unmarshal(params.Meta.Proposal, &requested); err != nil || requested.TaskID == nil || requested.KeepAlive != nil && *requested.KeepAlive < 0 {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "_meta[modelcontextprotocol.io/task] must be an object with taskId, a string, and keepAlive, if any, a number of milliseconds from 0")
	}
	p.knowsProposal.Store(true)
	id := *requested.TaskID
	meta := related(proposalRelated, id)
	if err := checkArguments(tool, stdjson.RawMessage(params.Arguments)); err != nil {
		return encodePlain(toolError("%v", err), nil)
	}
	start := tasks.Start{ID: id, New: true, Tool: tool, Dialect: proposalDialect, KeepAlive: duration(requested.KeepAlive)}
	task, refused, err := p.launch(ctx, call, start, params, meta)
	if errors.Is(err, tasks.ErrExists) {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "Task ID already exists: %s", id)
	}
	if err != nil {
		return nil, taskError(call.Method, err)
	}
	if refused != nil {
		return encodePlain(refused, nil)
	}
	call.Notify("notifications/tasks/created", map[string]any{"_meta": meta})
	encode := func(result *signals.ToolResult) ([]byte, *rpc.Error) { return encodePlain(result, meta) }
	w := p.waiter(call, task.ID, params.Meta.ProgressToken, meta, encode)
	w.abandons = func(cause error) bool {
		return errors.Is(cause, session.ErrCancelled) || errors.As(cause, new(*failedAsking))
	}
	w.unable = func(_ *tasks.Task, capability string) ([]byte, *rpc.Error) {
		return w.refuseToAsk(tool.Name, capability, encode)
	}
	return w.run(ctx)
}

// result is the result of a completed task (SEP-1686, 4.6).
func (p proposal) result(ctx context.Context, taskID string) ([]byte, *rpc.Error) {
	task, err := p.service.Get(ctx, p.owner, taskID)
	if err != nil {
		return nil, retrieveError(err)
	}
	if status := p.wire(task).Status; status != tasks.Completed {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "Cannot retrieve result: Task status is '%s', not 'completed'", status)
	}
	return encodePlain(task.Result, related(proposalRelated, taskID))
}

// delete deletes a task that has ended. When it is acknowledged, the task is gone (SEP-1686, 3.6).
func (p proposal) delete(ctx context.Context, taskID string) ([]byte, *rpc.Error) {
	if err := p.awaitStop(ctx, taskID); err != nil {
		return nil, retrieveError(err)
	}
	if err := p.service.Delete(ctx, p.owner, taskID); err != nil {
		var invalid *tasks.InvalidInputError
		if errors.As(err, &invalid) {
			return nil, rpc.Errorf(rpc.CodeInvalidParams, "Cannot delete task: %v", err)
		}
		return nil, retrieveError(err)
	}
	return encode(map[string]any{"_meta": related(proposalRelated, taskID)})
}

// awaitStop waits for the workflow of a task that is cancelled to its client but has not quite stopped.
func (p proposal) awaitStop(ctx context.Context, taskID string) error {
	waiting, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	for task, err := range p.service.Follow(waiting, p.owner, taskID, 0) {
		if err != nil && waiting.Err() == nil {
			return err
		}
		if err != nil || !task.CancelRequested {
			break
		}
	}
	return ctx.Err()
}
