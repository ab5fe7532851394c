package mcpbridge

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/seal"
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
// workflows, and tasks/get, tasks/update and tasks/cancel. All that a request needs is in the request.
type modern struct {
	service *tasks.Service
	tools   *toolSet
	sealer  *seal.Sealer
	// meta is the _meta of every result, naming the server; resultMeta is the same, encoded.
	meta       map[string]stdjson.RawMessage
	resultMeta jsontext.Value
	ack        []byte
}

func newModern(service *tasks.Service, tools *toolSet, sealer *seal.Sealer, server *mcp.Implementation) (*modern, error) {
	serverInfo, err := json.Marshal(server)
	if err != nil {
		return nil, fmt.Errorf("server info: %w", err)
	}
	d := &modern{service: service, tools: tools, sealer: sealer}
	d.meta = map[string]stdjson.RawMessage{"io.modelcontextprotocol/serverInfo": serverInfo}
	if d.resultMeta, err = json.Marshal(d.meta); err != nil {
		return nil, fmt.Errorf("server info: %w", err)
	}
	d.ack, err = json.Marshal(baseResult{"complete", d.resultMeta})
	return d, err
}

// request is one call of the modern dialect.
type request struct {
	method string
	owner  string
	params requestParams
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
}

// requestMeta are the per-request protocol fields (MCP 2026-07-28, Overview, "_meta").
type requestMeta struct {
	ProtocolVersion    string              `json:"io.modelcontextprotocol/protocolVersion"`
	ClientCapabilities *clientCapabilities `json:"io.modelcontextprotocol/clientCapabilities"`
}

type clientCapabilities struct {
	Extensions  map[string]jsontext.Value `json:"extensions"`
	Elicitation *struct {
		Form *struct{} `json:"form"`
		URL  *struct{} `json:"url"`
	} `json:"elicitation"`
}

func (r *request) declaresTasks() bool {
	_, ok := r.params.Meta.ClientCapabilities.Extensions[tasksExtension]
	return ok
}

// declaresForms reports whether the client shows forms: elicitation without modes means form mode.
func (r *request) declaresForms() bool {
	elicitation := r.params.Meta.ClientCapabilities.Elicitation
	return elicitation != nil && (elicitation.Form != nil || elicitation.URL == nil)
}

// serves reports whether a request is this dialect's own rather than the base protocol's.
func (d *modern) serves(method, toolName string) bool {
	switch method {
	case "tasks/get", "tasks/update", "tasks/cancel":
		return true
	case "tools/call":
		_, ok := d.tools.get(toolName)
		return ok
	}
	return false
}

// handle answers a request that the dialect serves with the encoded result.
func (d *modern) handle(ctx context.Context, r *request) ([]byte, *rpc.Error) {
	if r.method == "tools/call" {
		return d.call(ctx, r)
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
	var responses map[string]stdjson.RawMessage
	if err := json.Unmarshal(r.params.InputResponses, &responses); err != nil {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "params.inputResponses: %v", err)
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
	tool, ok := d.tools.get(r.params.Name)
	if !ok {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "unknown tool %q", r.params.Name)
	}
	if tool.Task == catalog.TaskRequired && !r.declaresTasks() {
		return nil, missingCapability("extensions", tasksExtension)
	}
	arguments := stdjson.RawMessage(r.params.Arguments)
	if err := tasks.CheckSize("arguments", arguments); err != nil { // before work that grows with it
		return d.encodeResult(toolError("%v", err))
	}
	if err := tool.ValidateArguments(arguments); err != nil {
		return d.encodeResult(toolError("%v", err))
	}
	start := tasks.Start{Tool: tool, Dialect: extensionDialect}
	var confirmed stdjson.RawMessage
	if tool.Confirm != nil {
		round, rpcErr := d.confirm(r, tool)
		if rpcErr != nil || round.reply != nil {
			return round.reply, rpcErr
		}
		start.ID, confirmed = round.taskID, round.content
	}
	var err error
	if start.Arguments, err = tool.WorkflowArguments(arguments, confirmed); err != nil {
		return d.encodeResult(toolError("%v", err))
	}
	task, err := d.service.Create(ctx, r.owner, start)
	var invalid *tasks.InvalidInputError
	if errors.As(err, &invalid) {
		return d.encodeResult(toolError("%v", err))
	}
	if err != nil {
		return nil, taskError(r.method, err)
	}
	if !r.declaresTasks() || tool.Task == catalog.TaskNever {
		return d.finish(ctx, r.owner, task.ID)
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
	encoded, err := json.Marshal(d.wireTask(task, "task"))
	if err != nil {
		return nil, taskError("tools/call", err)
	}
	return encoded, nil
}

// finish follows a task to its end for a client that knows no tasks. If the client goes away, the workflow is cancelled.
func (d *modern) finish(ctx context.Context, owner, id string) ([]byte, *rpc.Error) {
	now, err := d.service.Await(ctx, owner, id)
	if err != nil {
		d.abandon(ctx, owner, id)
		return nil, taskError("tools/call", err)
	}
	switch now.Status {
	case tasks.Completed:
		return d.encodeResult(now.Result)
	case tasks.Failed:
		return nil, &rpc.Error{Code: now.Error.Code, Message: now.Error.Message, Data: dataOf(now.Error)}
	case tasks.InputRequired:
		d.abandon(ctx, owner, id)
		return d.encodeResult(toolError("the tool asked for input, which only a task can get (extension %s), and this call was not made as one; the workflow was cancelled", tasksExtension))
	default:
		return d.encodeResult(toolError("the tool's workflow was %s", now.StatusMessage))
	}
}

// abandon cancels a task that nobody can follow, even if the request is over.
func (d *modern) abandon(ctx context.Context, owner, id string) {
	const enough = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), enough)
	defer cancel()
	// The task goes on if Temporal cannot be reached now; its execution timeout is what ends it then.
	_ = d.service.Cancel(ctx, owner, id)
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
