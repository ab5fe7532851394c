package mcpbridge

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/session"
	"taskbridge/mcpbridge/tasks"
	"taskbridge/signals"
)

const (
	// relatedTask is the metadata key that ties a message to a task (MCP 2025-11-25, Tasks, "Related Task Metadata").
	relatedTask = "io.modelcontextprotocol/related-task"
	// immediateResponse is the metadata key of a text for the model while the task runs (same, "Creating Tasks").
	immediateResponse = "io.modelcontextprotocol/model-immediate-response"
	// pageSize is how many tasks tasks/list returns at once.
	pageSize = 50
)

// core is the tasks dialect of MCP 2025-11-25 in a conversation.
type core struct{ *conversation }

// coreTask is a Task (MCP 2025-11-25, Tasks, "Data Types").
type coreTask struct {
	TaskID        string       `json:"taskId"`
	Status        tasks.Status `json:"status"`
	StatusMessage string       `json:"statusMessage,omitzero"`
	CreatedAt     string       `json:"createdAt"`
	LastUpdatedAt string       `json:"lastUpdatedAt"`
	TTL           *int64       `json:"ttl"`
	PollInterval  int64        `json:"pollInterval,omitzero"`
}

func (c core) wire(task *tasks.Task) coreTask {
	w := coreTask{
		TaskID:        task.ID,
		Status:        task.Status,
		StatusMessage: task.StatusMessage,
		CreatedAt:     timestamp(task.CreatedAt),
		LastUpdatedAt: timestamp(task.UpdatedAt),
		TTL:           milliseconds(task.TTL),
		PollInterval:  task.PollInterval.Milliseconds(),
	}
	switch {
	case task.CancelRequested && task.Status != tasks.Cancelled:
		// Once cancelled, a task stays so whatever its workflow still does ("Task Cancellation").
		w.Status, w.StatusMessage = tasks.Cancelled, "cancelled by request"
	case task.Status == tasks.Completed && task.Result.IsError:
		w.Status, w.StatusMessage = tasks.Failed, firstText(task.Result)
	case task.Status == tasks.InputRequired:
		if capability := c.client.lacksForAny(task.InputRequests); capability != "" {
			w.StatusMessage = strings.TrimPrefix(task.StatusMessage+"; ", "; ") +
				"waits for an answer that this client has not declared it can give (capability " + capability + "): another one must"
		}
	}
	return w
}

// over reports whether a task has ended for this dialect.
func (c core) over(task *tasks.Task) bool { return c.wire(task).Status.Terminal() }

func milliseconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}

// firstText is the first text of a result, as the short reason of a failure.
func firstText(result *signals.ToolResult) string {
	for _, block := range result.Content {
		var text struct{ Type, Text string }
		if stdjson.Unmarshal(block, &text) == nil && text.Type == "text" {
			return text.Text
		}
	}
	return "the tool failed"
}

// serve answers the requests about tasks.
func (c core) serve(ctx context.Context, call *session.Call, params taskParams) ([]byte, *rpc.Error) {
	c.knowsTasks.Store(true)
	switch call.Method {
	case "tasks/get":
		task, err := c.service.Get(ctx, c.owner, *params.TaskID)
		if err != nil {
			return nil, retrieveError(err)
		}
		c.sighted(call.Session, task)
		return encode(c.wire(task))
	case "tasks/result":
		return c.result(ctx, call, *params.TaskID)
	case "tasks/list":
		return c.list(ctx, params, func(task *tasks.Task) any { return c.wire(task) })
	case "tasks/cancel":
		return c.cancel(ctx, *params.TaskID)
	}
	return nil, rpc.Errorf(rpc.CodeMethodNotFound, "%s is not part of MCP %s", call.Method, c.version)
}

// call starts a task.
func (c core) call(ctx context.Context, call *session.Call, tool *catalog.Tool, params callParams) ([]byte, *rpc.Error) {
	if tool == nil || tool.Task == catalog.TaskNever {
		return nil, rpc.Errorf(rpc.CodeMethodNotFound, "tool %s cannot run as a task: call it without params.task", params.Name)
	}
	var requested struct {
		TTL *float64 `json:"ttl"`
	}
	if err := json.Unmarshal(params.Task, &requested); err != nil || requested.TTL != nil && *requested.TTL < 0 {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "params.task must be an object; its ttl, if any, a number of milliseconds from 0")
	}
	c.knowsTasks.Store(true)
	if err := checkArguments(tool, stdjson.RawMessage(params.Arguments)); err != nil {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "%v", err)
	}
	start := tasks.Start{Tool: tool, Dialect: c.version, TTL: duration(requested.TTL)}
	task, refused, err := c.launch(ctx, call, start, params, nil)
	if err != nil {
		return nil, taskError(call.Method, err)
	}
	if refused != nil {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "%s", firstText(refused))
	}
	if errors.Is(context.Cause(ctx), session.ErrCancelled) { // before the client knew of the task
		c.abandon(ctx, c.owner, task.ID)
		return nil, taskError(call.Method, ctx.Err())
	}
	c.watch(call, task, params.Meta.ProgressToken)
	meta := related(relatedTask, task.ID)
	meta[immediateResponse] = fmt.Sprintf("%s runs as task %s. Its result will follow.", tool.Name, task.ID)
	return encode(struct {
		Task coreTask       `json:"task"`
		Meta map[string]any `json:"_meta"`
	}{c.wire(task), meta})
}

// duration reads milliseconds; what no duration can hold is as good as the longest.
func duration(ms *float64) *time.Duration {
	if ms == nil {
		return nil
	}
	const longest = 1 << 40 // milliseconds, about 35 years
	d := time.Duration(min(*ms, longest)) * time.Millisecond
	return &d
}

// related is metadata that ties a message to a task.
func related(key, taskID string) map[string]any {
	return map[string]any{key: map[string]string{"taskId": taskID}}
}

// result waits for a task's result, and has the client answer its questions meanwhile.
func (c core) result(ctx context.Context, call *session.Call, taskID string) ([]byte, *rpc.Error) {
	if _, err := c.service.Get(ctx, c.owner, taskID); err != nil { // which knows when its time is over
		return nil, retrieveError(err)
	}
	meta := related(relatedTask, taskID)
	w := c.waiter(call, taskID, nil, meta, func(result *signals.ToolResult) ([]byte, *rpc.Error) {
		return encodePlain(result, meta)
	})
	w.over = c.over
	whole := w.result
	w.result = func(task *tasks.Task) ([]byte, *rpc.Error) {
		if wire := c.wire(task); wire.Status == tasks.Cancelled {
			return encodePlain(toolError("the task was %s", wire.StatusMessage), meta)
		}
		return whole(task)
	}
	// The result is what the client waits for, come what may ("Result Retrieval"); another one may give the answer.
	w.unable = func(*tasks.Task, string) ([]byte, *rpc.Error) { return nil, nil }
	w.ask = func(ctx context.Context, task *tasks.Task, _ func(*rpc.Error)) ([]byte, *rpc.Error) {
		carrier{c.conversation, ctx, call, meta, c.logRefusal(task)}.ask(task)
		return nil, nil
	}
	w.failed = func(err error) ([]byte, *rpc.Error) { return nil, retrieveError(err) }
	call.EndIfUnread()
	return w.run(ctx)
}

// cancel cancels a task that has not ended.
func (c core) cancel(ctx context.Context, taskID string) ([]byte, *rpc.Error) {
	task, err := c.service.Get(ctx, c.owner, taskID)
	if err != nil {
		return nil, retrieveError(err)
	}
	if wire := c.wire(task); wire.Status.Terminal() {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "Cannot cancel task: already in terminal status '%s'", wire.Status)
	}
	if err := c.service.Cancel(ctx, c.owner, taskID); err != nil {
		return nil, retrieveError(err)
	}
	if task, err = c.service.Get(ctx, c.owner, taskID); err != nil {
		return nil, retrieveError(err)
	}
	wire := c.wire(task)
	if wire.Status != tasks.Cancelled { // it ended first
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "Cannot cancel task: already in terminal status '%s'", wire.Status)
	}
	return encode(wire)
}

// watch pushes a task's changes to the client that created it, and its progress if the client asked for that, as far as
// watches are free. Clients must not rely on it ("Task Notifications").
func (c core) watch(call *session.Call, task *tasks.Task, token jsontext.Value) {
	select {
	case c.watches <- struct{}{}:
	default:
		return
	}
	notify := call.Session.Notify
	progress := newProgress(token, notify, related(relatedTask, task.ID))
	ctx := call.Session.Context()
	go func() {
		defer func() { <-c.watches }()
		last := c.wire(task)
		for task, err := range c.service.Follow(ctx, c.owner, task.ID, 0) {
			if err != nil {
				return
			}
			now := c.wire(task)
			if now.Status.Terminal() { // after which nothing more is said
				notify("notifications/tasks/status", now)
				return
			}
			if call.Session.Listening() { // it is of no use later
				progress.report(task)
			}
			if now.Status != last.Status || now.StatusMessage != last.StatusMessage {
				notify("notifications/tasks/status", now)
			}
			last = now
		}
	}()
}

// list is a page of the caller's tasks, newest first.
func (c *conversation) list(ctx context.Context, params taskParams, wire func(*tasks.Task) any) ([]byte, *rpc.Error) {
	if !c.listable {
		return nil, rpc.Errorf(rpc.CodeMethodNotFound, "tasks/list is not offered here: this server cannot tell its callers apart")
	}
	page, rpcErr := c.openCursor(params.Cursor)
	if rpcErr != nil {
		return nil, rpcErr
	}
	found, next, err := c.service.List(ctx, c.owner, page, pageSize)
	if err != nil {
		return nil, taskError("tasks/list", err)
	}
	result := struct {
		Tasks      []any  `json:"tasks"`
		NextCursor string `json:"nextCursor,omitzero"`
	}{Tasks: make([]any, len(found))}
	for i, task := range found {
		result.Tasks[i] = wire(task)
	}
	if len(next) > 0 {
		plain, err := json.Marshal(cursor{c.owner, next})
		if err != nil {
			return nil, taskError("tasks/list", err)
		}
		result.NextCursor = c.sealer.Seal(plain)
	}
	return encode(result)
}

// cursor is where a list goes on. It is sealed: a client can neither read nor make one.
type cursor struct {
	Owner string `json:"owner"`
	Page  []byte `json:"page"`
}

func (c *conversation) openCursor(sealed *string) ([]byte, *rpc.Error) {
	if sealed == nil {
		return nil, nil
	}
	var at cursor
	plain, err := c.sealer.Open(*sealed)
	if err != nil || json.Unmarshal(plain, &at) != nil || at.Owner != c.owner {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "params.cursor is not one of this server's: pass a nextCursor as it came, or none for the first page")
	}
	return at.Page, nil
}

// retrieveError is an error about a task in the words of 2025-11-25 and SEP-1686.
func retrieveError(err error) *rpc.Error {
	wire := taskError("tasks", err)
	if wire.Code == rpc.CodeInvalidParams {
		wire.Message = "Failed to retrieve task: Task not found"
	}
	return wire
}

func encode(result any) ([]byte, *rpc.Error) {
	encoded, err := json.Marshal(result, json.Deterministic(true))
	if err != nil {
		return nil, rpc.Errorf(rpc.CodeInternalError, "encode the result: %v", err)
	}
	return encoded, nil
}
