package mcpbridge

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/session"
	"taskbridge/mcpbridge/tasks"
	"taskbridge/signals"
)

// versionWithTasks is the protocol revision whose core has tasks.
const versionWithTasks = "2025-11-25"

// legacyVersions are the protocol revisions whose clients open a session, newest first.
func legacyVersions() []string {
	return slices.DeleteFunc(mcp.SupportedProtocolVersions(), func(version string) bool { return version >= modernVersion })
}

// conversation is the dialect of one session: plain calls (this file), the tasks of 2025-11-25 (core.go), and those of
// SEP-1686 as it was proposed (proposal.go). A client speaks whichever it likes; nothing needs to be configured.
type conversation struct {
	*shared
	owner string
	// listable says that the owner's tasks may be listed: only when nobody else can be the owner.
	listable bool
	// watches bounds the tasks whose changes are pushed, over all sessions.
	watches   chan struct{}
	questions questions

	// What the client said when it opened the session.
	version string
	client  *clientCapabilities
	// knowsTasks and knowsProposal are set once the client has used them.
	knowsTasks, knowsProposal atomic.Bool
}

// callParams are all members of a tools/call in a session.
type callParams struct {
	Meta struct {
		ProgressToken  jsontext.Value `json:"progressToken"`
		IdempotencyKey jsontext.Value `json:"taskbridge/idempotencyKey"` // catalog.IdempotencyKey
		Proposal       jsontext.Value `json:"modelcontextprotocol.io/task"`
	} `json:"_meta"`
	Name      string         `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
	Task      jsontext.Value `json:"task"`
}

// taskParams are all members of the requests about tasks.
type taskParams struct {
	Meta struct {
		Proposal jsontext.Value `json:"modelcontextprotocol.io/related-task"`
	} `json:"_meta"`
	TaskID *string `json:"taskId"`
	Cursor *string `json:"cursor"`
}

// Serves implements [session.Dialect].
func (c *conversation) Serves(call *session.Call) bool {
	switch call.Method {
	case "initialize":
		return c.opened(call) != nil
	case "tools/call":
		var params callParams
		if c.client == nil || call.DecodeParams(&params) != nil { // the base protocol says what is wrong
			return false
		}
		_, ours := c.tools.get(params.Name)
		return ours || c.tools.isCompanion(params.Name) || params.Task != nil && c.hasTasks()
	case "tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/delete":
		return c.client != nil
	}
	return false
}

// opened remembers what the client says when it opens the session, which it does once. The error says what of it cannot be
// read.
func (c *conversation) opened(call *session.Call) *rpc.Error {
	var params struct {
		ProtocolVersion string              `json:"protocolVersion"`
		Capabilities    *clientCapabilities `json:"capabilities"`
	}
	if rpcErr := call.DecodeParams(&params); rpcErr != nil || c.client != nil {
		return rpcErr
	}
	c.version = params.ProtocolVersion
	if versions := legacyVersions(); !slices.Contains(versions, c.version) {
		c.version = versions[0]
	}
	if c.client = params.Capabilities; c.client == nil {
		c.client = &clientCapabilities{}
	}
	c.knowsTasks.Store(c.client.Tasks != nil)
	return nil
}

// hasTasks reports whether the session's protocol has tasks in its core.
func (c *conversation) hasTasks() bool { return c.version >= versionWithTasks }

// Serve implements [session.Dialect].
func (c *conversation) Serve(ctx context.Context, call *session.Call) ([]byte, *rpc.Error) {
	switch call.Method {
	case "initialize":
		return nil, c.opened(call)
	case "tools/call":
		return c.call(ctx, call)
	}
	var params taskParams
	if rpcErr := call.DecodeParams(&params); rpcErr != nil {
		return nil, rpcErr
	}
	if call.Method != "tasks/list" && params.TaskID == nil {
		return nil, rpc.Errorf(rpc.CodeInvalidParams, "params.taskId is missing: %s needs the ID of a task", call.Method)
	}
	if params.Meta.Proposal != nil || !c.hasTasks() || c.knowsProposal.Load() && !c.knowsTasks.Load() {
		return proposal{c}.serve(ctx, call, params)
	}
	return core{c}.serve(ctx, call, params)
}

// call runs a tool: as the kind of task that the client asks for, or until its end.
func (c *conversation) call(ctx context.Context, call *session.Call) ([]byte, *rpc.Error) {
	var params callParams
	if rpcErr := call.DecodeParams(&params); rpcErr != nil {
		return nil, rpcErr
	}
	tool, ok := c.tools.get(params.Name)
	switch {
	case ok && params.Meta.Proposal != nil && tool.Task != catalog.TaskNever:
		return proposal{c}.call(ctx, call, tool, params)
	case params.Task != nil && c.hasTasks():
		return core{c}.call(ctx, call, tool, params)
	case ok:
		return c.plain(ctx, call, tool, params)
	}
	return c.callCompanion(ctx, call, params)
}

// plain runs a tool to its end for a call without a task. The workflow is cancelled if the client cancels the call or
// ends the session; that its connection breaks is no reason (MCP 2025-11-25, Streamable HTTP, "Sending Messages").
func (c *conversation) plain(ctx context.Context, call *session.Call, tool *catalog.Tool, params callParams) ([]byte, *rpc.Error) {
	if tool.Task == catalog.TaskRequired {
		how := "its client must speak MCP " + versionWithTasks + " or later"
		if c.hasTasks() {
			how = "call it with params.task"
		}
		return nil, rpc.Errorf(rpc.CodeMethodNotFound, "tool %s runs as a task only: %s", tool.Name, how)
	}
	if err := checkArguments(tool, stdjson.RawMessage(params.Arguments)); err != nil {
		return encodePlain(toolError("%v", err), nil)
	}
	task, refused, err := c.launch(ctx, call, tasks.Start{Tool: tool, Dialect: c.version}, params, nil)
	if refused = cmp.Or(refused, refusal(err)); refused != nil {
		return encodePlain(refused, nil)
	}
	if err != nil {
		return nil, taskError(call.Method, err)
	}
	encode := func(result *signals.ToolResult) ([]byte, *rpc.Error) { return encodePlain(result, nil) }
	w := c.waiter(call, task.ID, params.Meta.ProgressToken, nil, encode)
	w.abandons = func(cause error) bool {
		return !errors.Is(cause, session.ErrShutdown)
	}
	w.unable = func(_ *tasks.Task, capability string) ([]byte, *rpc.Error) {
		return w.refuseToAsk(tool.Name, capability, encode)
	}
	if tool.Fallback == catalog.FallbackHandoff {
		w.atMost = tool.HandoffAfter
		w.unable = func(task *tasks.Task, _ string) ([]byte, *rpc.Error) { return w.handOver(task) }
	}
	return w.run(ctx)
}

// launch asks a tool's confirmation, if it has one, and starts the task, or returns the result that says why nothing was
// confirmed. Arguments must have been checked.
func (c *conversation) launch(ctx context.Context, call *session.Call, start tasks.Start, params callParams, meta map[string]any) (*tasks.Task, *signals.ToolResult, error) {
	given := given{arguments: stdjson.RawMessage(params.Arguments), idempotencyKey: params.Meta.IdempotencyKey}
	if start.Tool.Confirm != nil {
		content, refused, err := c.confirm(ctx, call, start.Tool, meta)
		if refused != nil || err != nil {
			return nil, refused, err
		}
		given.confirmed = content
	}
	task, err := c.start(ctx, c.owner, start, given)
	return task, nil, err
}

// waiter waits for a task's result, and puts the task's questions to the client meanwhile. What it sends has this
// metadata.
func (c *conversation) waiter(call *session.Call, taskID string, token jsontext.Value, meta map[string]any, encode func(*signals.ToolResult) ([]byte, *rpc.Error)) *waiter {
	handOver := func(task *tasks.Task) ([]byte, *rpc.Error) { return encode(handedOver(task)) }
	return &waiter{
		shared: c.shared, owner: c.owner, taskID: taskID, client: c.client,
		progress: newProgress(token, call.Notify, meta),
		ask: func(ctx context.Context, task *tasks.Task, fail func(*rpc.Error)) ([]byte, *rpc.Error) {
			carrier{c, ctx, call, meta, fail}.ask(task)
			return nil, nil
		},
		seen:     c.questions.settle,
		unable:   func(task *tasks.Task, _ string) ([]byte, *rpc.Error) { return handOver(task) },
		result:   func(task *tasks.Task) ([]byte, *rpc.Error) { return outcome(task, encode) },
		handOver: handOver,
		failed:   func(err error) ([]byte, *rpc.Error) { return nil, taskError(call.Method, err) },
		abandons: func(error) bool { return false },
	}
}

// callCompanion serves the tools by which clients without tasks go on with one.
func (c *conversation) callCompanion(ctx context.Context, call *session.Call, params callParams) ([]byte, *rpc.Error) {
	companion, err := decodeCompanion(params.Name, params.Arguments)
	if err != nil {
		return encodePlain(toolError("%v", err), nil)
	}
	if params.Name != catalog.CompanionWait {
		return encodePlain(c.runCompanion(ctx, c.owner, companion), nil)
	}
	w := c.waiter(call, companion.TaskID, params.Meta.ProgressToken, nil, func(result *signals.ToolResult) ([]byte, *rpc.Error) {
		return encodePlain(result, nil)
	})
	w.atMost = companion.patience()
	w.failed = func(err error) ([]byte, *rpc.Error) {
		return encodePlain(toolError("%s", taskError(params.Name, err).Message), nil)
	}
	return w.run(ctx)
}

// encodePlain is a CallToolResult of the eras with sessions, with this metadata besides its own.
func encodePlain(result *signals.ToolResult, meta map[string]any) ([]byte, *rpc.Error) {
	whole := struct {
		Content           []stdjson.RawMessage `json:"content"`
		StructuredContent stdjson.RawMessage   `json:"structuredContent,omitzero"`
		IsError           bool                 `json:"isError"`
		Meta              map[string]any       `json:"_meta,omitempty"`
	}{result.Content, result.StructuredContent, result.IsError, maps.Clone(meta)}
	for name, value := range result.Meta {
		if whole.Meta == nil {
			whole.Meta = map[string]any{}
		}
		whole.Meta[name] = value
	}
	encoded, err := json.Marshal(whole, json.Deterministic(true))
	if err != nil {
		return nil, taskError("tools/call", err)
	}
	return encoded, nil
}
