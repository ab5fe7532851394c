package mcpbridge

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/tasks"
	"taskbridge/signals"
)

const (
	// modernVersion is the first protocol version without sessions: every request carries its own metadata.
	modernVersion = "2026-07-28"
	// tasksExtension identifies the Tasks extension (SEP-2663) in capabilities.
	tasksExtension = "io.modelcontextprotocol/tasks"
	// extensionDialect is recorded with tasks that were created by it.
	extensionDialect = tasksExtension
)

// modern is the dialect of protocol 2026-07-28 with the Tasks extension. It serves tools/call for tools that are
// workflows, tasks/get, tasks/update and tasks/cancel, and subscriptions/listen. All that a request needs is in the request.
type modern struct {
	*shared
	server   *mcp.Server
	versions []string
	// meta is the _meta of every result, naming the server; resultMeta is the same, encoded.
	meta       map[string]stdjson.RawMessage
	resultMeta jsontext.Value
	ack        []byte
}

func newModern(shared *shared, server *mcp.Server, implementation *mcp.Implementation) (*modern, error) {
	serverInfo, err := json.Marshal(implementation)
	if err != nil {
		return nil, fmt.Errorf("server info: %w", err)
	}
	d := &modern{shared: shared, server: server, versions: mcp.SupportedProtocolVersions()}
	d.meta = map[string]stdjson.RawMessage{"io.modelcontextprotocol/serverInfo": serverInfo}
	if d.resultMeta, err = json.Marshal(d.meta); err != nil {
		return nil, fmt.Errorf("server info: %w", err)
	}
	d.ack, err = json.Marshal(baseResult{"complete", d.resultMeta})
	return d, err
}

// request is one call of the modern dialect.
type request struct {
	id     jsontext.Value // as the client wrote it
	method string
	owner  string
	params requestParams
	raw    jsontext.Value // the params as they came
	header http.Header    // of the HTTP request, if one brought it
	// notify sends a notification that belongs to the request; nil if its client takes none.
	notify func(method string, params any)
}

// requestParams are all members that the requests of this dialect, and the headers that mirror them, need.
type requestParams struct {
	Meta           *requestMeta   `json:"_meta"`
	Name           string         `json:"name"`
	URI            string         `json:"uri"`
	TaskID         *string        `json:"taskId"`
	Arguments      jsontext.Value `json:"arguments"`
	InputResponses jsontext.Value `json:"inputResponses"`
	RequestState   string         `json:"requestState"`
	// Notifications is what a subscription is about.
	Notifications *notificationFilter `json:"notifications"`
}

// requestMeta are the per-request protocol fields (MCP 2026-07-28, Overview, "_meta").
type requestMeta struct {
	ProtocolVersion    string              `json:"io.modelcontextprotocol/protocolVersion"`
	ClientCapabilities *clientCapabilities `json:"io.modelcontextprotocol/clientCapabilities"`
	ProgressToken      jsontext.Value      `json:"progressToken"`
	IdempotencyKey     jsontext.Value      `json:"taskbridge/idempotencyKey"` // catalog.IdempotencyKey
}

func (r *request) client() *clientCapabilities { return r.params.Meta.ClientCapabilities }

func (r *request) declaresTasks() bool { return r.client().extends(tasksExtension) }

// serves reports whether a request is this dialect's own rather than the base protocol's.
func (d *modern) serves(method, toolName string) bool {
	switch method {
	case "tasks/get", "tasks/update", "tasks/cancel", "subscriptions/listen":
		return true
	case "tools/call":
		_, ok := d.tools.get(toolName)
		return ok || d.tools.isCompanion(toolName)
	}
	return false
}

// handle answers a request that the dialect serves with the encoded result.
func (d *modern) handle(ctx context.Context, r *request) ([]byte, *rpc.Error) {
	switch r.method {
	case "tools/call":
		return d.call(ctx, r)
	case "subscriptions/listen":
		return d.listen(ctx, r)
	}
	if !r.declaresTasks() {
		return nil, missingCapability("extensions", tasksExtension)
	}
	if r.params.TaskID == nil {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "params.taskId is missing: %s needs the ID of a task", r.method)
	}
	switch r.method {
	case "tasks/get":
		return d.get(ctx, r)
	case "tasks/update":
		return d.update(ctx, r)
	default:
		return d.acknowledge(r, d.service.Cancel(ctx, r.owner, *r.params.TaskID))
	}
}

func (d *modern) get(ctx context.Context, r *request) ([]byte, *rpc.Error) {
	task, err := d.service.Get(ctx, r.owner, *r.params.TaskID)
	if err != nil {
		return nil, taskError(r.method, err)
	}
	encoded, err := task.Encoded(extensionDialect, d.encodeDetailed)
	if err != nil {
		return nil, taskError(r.method, err)
	}
	return encoded, nil
}

func (d *modern) update(ctx context.Context, r *request) ([]byte, *rpc.Error) {
	if r.params.InputResponses.Kind() != '{' {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "params.inputResponses must be an object: the response to each input request by its key")
	}
	responses, rpcErr := decodeResponses(r.params.InputResponses)
	if rpcErr != nil {
		return nil, rpcErr
	}
	return d.acknowledge(r, d.service.Answer(ctx, r.owner, *r.params.TaskID, responses))
}

func (d *modern) acknowledge(r *request, err error) ([]byte, *rpc.Error) {
	if err != nil {
		return nil, taskError(r.method, err)
	}
	return d.ack, nil
}

// call runs a tool: as a task if the client can follow one and the tool may be one, else until its end.
func (d *modern) call(ctx context.Context, r *request) ([]byte, *rpc.Error) {
	if d.tools.isCompanion(r.params.Name) && !r.declaresTasks() {
		return d.callCompanion(ctx, r)
	}
	tool, ok := d.tools.get(r.params.Name)
	if !ok {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "unknown tool %q", r.params.Name)
	}
	if tool.Task == catalog.TaskRequired && !r.declaresTasks() {
		return nil, missingCapability("extensions", tasksExtension)
	}
	arguments := stdjson.RawMessage(r.params.Arguments)
	if err := checkArguments(tool, arguments); err != nil {
		return d.encodeResult(toolError("%v", err))
	}
	state, rpcErr := d.returnedState(r)
	if rpcErr != nil {
		return nil, rpcErr
	}
	if state != nil && state.Running {
		return d.resume(ctx, r, state, d.untilEnd(r, tool, state.TaskID))
	}
	start := tasks.Start{Tool: tool, Dialect: extensionDialect}
	call := given{arguments: arguments, idempotencyKey: r.params.Meta.IdempotencyKey}
	if tool.Confirm != nil {
		round, rpcErr := d.confirm(r, tool, state)
		if rpcErr != nil || round.reply != nil {
			return round.reply, rpcErr
		}
		start.ID, call.confirmed = round.taskID, round.content
	}
	task, err := d.start(ctx, r.owner, start, call)
	if refused := refusal(err); refused != nil {
		return d.encodeResult(refused)
	}
	if err != nil {
		return nil, taskError(r.method, err)
	}
	if !r.declaresTasks() || tool.Task == catalog.TaskNever {
		return d.untilEnd(r, tool, task.ID).run(ctx)
	}
	if ctx.Err() != nil { // the client has gone, and does not know the task
		d.abandon(ctx, r.owner, task.ID)
		return nil, taskError(r.method, ctx.Err())
	}
	return d.handOut(ctx, r.owner, tool, task)
}

// handOut gives the client a task, or its result at once if it is quick enough for the tool's inlineWait.
func (d *modern) handOut(ctx context.Context, owner string, tool *catalog.Tool, task *tasks.Task) ([]byte, *rpc.Error) {
	if tool.InlineWait > 0 {
		waiting, cancel := context.WithTimeout(ctx, tool.InlineWait)
		defer cancel()
		if now, err := d.service.Await(waiting, owner, task.ID); err == nil && now.Status == tasks.Completed {
			return d.encodeResult(now.Result)
		}
	}
	return d.encodeTask(task, "task", nil), nil
}

// untilEnd waits for the result of a task on behalf of a client that gets no task. If the client goes away, the workflow
// is cancelled (MCP 2026-07-28, Streamable HTTP, "Cancellation").
func (d *modern) untilEnd(r *request, tool *catalog.Tool, taskID string) *waiter {
	w := d.waiter(r, taskID)
	w.abandons = func(error) bool { return true }
	w.unable = func(_ *tasks.Task, capability string) ([]byte, *rpc.Error) {
		return w.refuseToAsk(tool.Name, capability, d.encodeResult)
	}
	if tool.Fallback == catalog.FallbackHandoff && !r.declaresTasks() {
		w.atMost = tool.HandoffAfter
		w.unable = func(task *tasks.Task, _ string) ([]byte, *rpc.Error) { return w.handOver(task) }
	}
	return w
}

// waiter waits for a task's result as long as the call lasts.
func (d *modern) waiter(r *request, taskID string) *waiter {
	progress := newProgress(r.params.Meta.ProgressToken, r.notify, nil)
	return &waiter{
		shared: d.shared, owner: r.owner, taskID: taskID, client: r.client(), progress: progress,
		ask: func(_ context.Context, task *tasks.Task, _ func(*rpc.Error)) ([]byte, *rpc.Error) {
			return d.askMidway(r, task, progress)
		},
		unable:   func(task *tasks.Task, _ string) ([]byte, *rpc.Error) { return d.encodeResult(handedOver(task)) },
		result:   func(task *tasks.Task) ([]byte, *rpc.Error) { return outcome(task, d.encodeResult) },
		handOver: func(task *tasks.Task) ([]byte, *rpc.Error) { return d.encodeResult(handedOver(task)) },
		failed:   func(err error) ([]byte, *rpc.Error) { return nil, taskError(r.method, err) },
		abandons: func(error) bool { return false },
	}
}

// resume takes the answers to questions that a running workflow asked through an earlier round, and waits on. Answers to
// questions that are not open any more, as in a round sent twice, are ignored.
func (d *modern) resume(ctx context.Context, r *request, state *callState, w *waiter) ([]byte, *rpc.Error) {
	responses, rpcErr := decodeResponses(r.params.InputResponses)
	if rpcErr != nil {
		return nil, rpcErr
	}
	if err := d.service.Answer(ctx, r.owner, state.TaskID, responses); err != nil {
		return nil, taskError(r.method, err)
	}
	w.progress.resume(state.Told)
	return w.run(ctx)
}

// callCompanion serves the tools by which clients without tasks go on with one.
func (d *modern) callCompanion(ctx context.Context, r *request) ([]byte, *rpc.Error) {
	state, rpcErr := d.returnedState(r)
	if rpcErr != nil {
		return nil, rpcErr
	}
	call, err := decodeCompanion(r.params.Name, r.params.Arguments)
	if err != nil {
		return d.encodeResult(toolError("%v", err))
	}
	if r.params.Name != catalog.CompanionWait {
		return d.encodeResult(d.runCompanion(ctx, r.owner, call))
	}
	w := d.waiter(r, call.TaskID)
	w.atMost = call.patience()
	w.failed = func(err error) ([]byte, *rpc.Error) {
		return d.encodeResult(toolError("%s", taskError(call.tool, err).Message))
	}
	if state != nil && state.Running && state.TaskID == call.TaskID {
		return d.resume(ctx, r, state, w)
	}
	return w.run(ctx)
}

func toolError(format string, args ...any) *signals.ToolResult {
	return &signals.ToolResult{Content: []stdjson.RawMessage{signals.Text(fmt.Sprintf(format, args...))}, IsError: true}
}

// missingCapability is the error for a request that needs a capability its client did not declare.
func missingCapability(kind, name string) *rpc.Error {
	return &rpc.Error{
		Code:    rpc.CodeMissingCapability,
		Message: fmt.Sprintf("missing required client capability: %s.%s", kind, name),
		Data:    map[string]any{"requiredCapabilities": map[string]any{kind: map[string]any{name: struct{}{}}}},
	}
}

// taskError is where errors of the task service become JSON-RPC errors.
func taskError(method string, err error) *rpc.Error {
	var invalid *tasks.InvalidInputError
	switch {
	case errors.Is(err, tasks.ErrNotFound):
		return rpc.Errorf(rpc.CodeInvalidParams, "%s: task not found: the ID is wrong, or the task has expired", method)
	case errors.As(err, &invalid):
		return rpc.Errorf(rpc.CodeInvalidParams, "%s: %v", method, err)
	default:
		return rpc.Errorf(rpc.CodeInternalError, "%s: %v", method, err)
	}
}
