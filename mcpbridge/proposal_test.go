package mcpbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"

	"taskbridge/internal/devserver"
	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/workflows"
)

// TestProposal walks through SEP-1686 as it was proposed: each subtest is a section of the document.
func TestProposal(t *testing.T) {
	x := newDialects(t)
	for _, section := range []struct {
		name string
		test func(*testing.T, dialects)
	}{
		{"3.1 Creating Tasks", proposalCreating},
		{"3.2 Getting Tasks", proposalGetting},
		{"3.3 Retrieving Task Results", proposalRetrieving},
		{"3.4 Task Creation Notification", proposalNotification},
		{"3.5 Listing Tasks", proposalListing},
		{"3.6 Deleting Tasks", proposalDeleting},
		{"4.1 Task Support and Handling", proposalSupport},
		{"4.2 Task ID Requirements", proposalIDs},
		{"4.3 Task Status Lifecycle", proposalLifecycle},
		{"4.4 Input Required Status", proposalInput},
		{"4.5 Keep-Alive and Resource Management", proposalKeepAlive},
		{"4.6 Result Retrieval", proposalResults},
		{"4.7 Associating Task-Related Messages", proposalRelatedMessages},
		{"4.8 Task Cancellation", proposalCancellation},
		{"4.9 Task Listing", proposalPages},
		{"4.10 Task Deletion", proposalDeletion},
		{"5 Message Flow", proposalFlow},
		{"6 Data Types", proposalTypes},
		{"7.1 Protocol Errors", proposalProtocolErrors},
		{"7.2 Task Execution Errors", proposalExecutionErrors},
		{"8.1 Task Isolation and Access Control", proposalIsolation},
		{"Rationale - Client-Generated Task IDs", proposalRetry},
	} {
		t.Run(section.name, func(t *testing.T) { section.test(t, x.in(t)) })
	}
}

const (
	proposalTaskKey    = "modelcontextprotocol.io/task"
	proposalRelatedKey = "modelcontextprotocol.io/related-task"

	// Errors of section 7.1.
	notFound         = "Failed to retrieve task: Task not found"
	notCompleted     = "Cannot retrieve result: Task status is '%s', not 'completed'"
	alreadyExists    = "Task ID already exists: %s"
	invalidParams    = -32602
	methodNotFound   = -32601
	internalError    = -32603
	defaultKeepAlive = 30 * time.Minute
)

// dialects is what the tests of all dialects share: a front end with a tool of each kind, and a worker.
type dialects struct {
	front
	temporal client.Client
}

func newDialects(t *testing.T) dialects {
	temporal := testenv.Client(t)
	newWorker(t, temporal, Led, Tidying, Ask, AskTwo, AskModel, AskRoots, Fail, Echo)
	return dialects{newFront(t, temporal, mcpbridge.Options{}, dialectTools(t)...), temporal}
}

// dialectTools are tools of all kinds: workflows on the task queue of the test, one that no worker takes, and a tool that
// is no workflow.
func dialectTools(t testing.TB) []func(*mcpbridge.Bridge) error {
	mode := func(name string, task catalog.TaskMode) func(*catalog.Tool) {
		return func(tool *catalog.Tool) { tool.Name, tool.Task = name, task }
	}
	return []func(*mcpbridge.Bridge) error{
		tool(t, func(tool *catalog.Tool) { tool.Name, tool.Retention = "led", defaultKeepAlive }, Led),
		tool(t, func(tool *catalog.Tool) { tool.Name, tool.TaskQueue = "parked", "nobody" }, Led),
		tool(t, func(tool *catalog.Tool) { tool.Name, tool.Retention = "brief", time.Millisecond }, Led),
		tool(t, func(tool *catalog.Tool) { tool.Name, tool.ExecutionTimeout = "limited", time.Hour }, Led),
		tool(t, mode("required", catalog.TaskRequired), Led),
		tool(t, func(tool *catalog.Tool) {
			tool.Name, tool.Task = "never", catalog.TaskNever
			tool.InputSchema = json.RawMessage(`{"type":"object","properties":{"a":true}}`)
		}, Echo),
		tool(t, func(tool *catalog.Tool) {
			tool.Name, tool.Result = "echo", catalog.ResultMCP
			tool.InputSchema = json.RawMessage(`{"type":"object","properties":{"content":true,"isError":true}}`)
		}, Echo),
		tool(t, named("tidying"), Tidying),
		tool(t, named("ask"), Ask),
		tool(t, named("ask_two"), AskTwo),
		tool(t, named("ask_model"), AskModel),
		tool(t, named("ask_roots"), AskRoots),
		tool(t, named("fail"), Fail),
		plainTool,
	}
}

// plainTool offers a tool that is no workflow.
func plainTool(b *mcpbridge.Bridge) error {
	mcp.AddTool(b.Server(), &mcp.Tool{Name: "plain"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "no workflow"}}}, nil, nil
	})
	return nil
}

// Led does what the test [dialects.order]s: it shows a status, or ends with a result.
func Led(ctx workflow.Context, _ struct{}) (string, error) {
	task, err := workflows.NewTask(ctx, nil)
	if err != nil {
		return "", err
	}
	orders := workflow.GetSignalChannel(ctx, "order")
	for {
		if err := workflow.Await(ctx, func() bool { return orders.Len() > 0 }); err != nil {
			return "", err
		}
		var next order
		orders.Receive(ctx, &next)
		if next.Result != "" {
			return next.Result, nil
		}
		task.Status(ctx, "%s", next.Status)
	}
}

type order struct{ Status, Result string }

// Tidying needs a while to clean up when it is cancelled: until the test orders it to end. It then completes.
func Tidying(ctx workflow.Context, _ struct{}) (string, error) {
	_ = workflow.Await(ctx, func() bool { return false })
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	var last order
	workflow.GetSignalChannel(ctx, "order").Receive(ctx, &last)
	return last.Result, nil
}

// AskTwo has two questions open at once.
func AskTwo(ctx workflow.Context, _ struct{}) (string, error) {
	task, err := workflows.NewTask(ctx, nil)
	if err != nil {
		return "", err
	}
	var colors []string
	var pending []*workflows.Pending[Form]
	for _, name := range []string{"first", "second"} {
		question, err := workflows.Ask[Form](ctx, task, workflows.Question{Name: name, Message: "The " + name + " color?"})
		if err != nil {
			return "", err
		}
		pending = append(pending, question)
	}
	for _, question := range pending {
		answer, err := question.Get(ctx)
		if err != nil {
			return "", err
		}
		colors = append(colors, answer.Content.Color)
	}
	return strings.Join(colors, " and "), nil
}

// in is the same as seen from a subtest.
func (x dialects) in(t testing.TB) dialects {
	x.t = t
	return x
}

// order tells a workflow what to do.
func (x dialects) order(t testing.TB, taskID string, o order) {
	t.Helper()
	require.NoError(t, x.temporal.SignalWorkflow(t.Context(), "mcp:anonymous:"+taskID, "", "order", o))
}

// runID is the run of a task's workflow.
func (x dialects) runID(t testing.TB, taskID string) string {
	t.Helper()
	description, err := x.temporal.DescribeWorkflow(t.Context(), "mcp:anonymous:"+taskID, "")
	require.NoError(t, err)
	return description.WorkflowExecution.RunID
}

// ownNamespace makes a Temporal namespace for a test that lists tasks, so that it meets none but its own.
func ownNamespace(t testing.TB) (client.Client, string) {
	t.Helper()
	name := "list-" + uuid.NewString()
	_, err := testenv.Client(t).WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	temporal, err := client.Dial(client.Options{HostPort: testenv.Temporal(t).Address(), Namespace: name, Logger: testenv.QuietLogger()})
	require.NoError(t, err)
	t.Cleanup(temporal.Close)
	require.Eventually(t, func() bool {
		_, err := temporal.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{})
		return err == nil
	}, patience, 100*time.Millisecond)
	return temporal, name
}

// newListDialects is [newDialects] in a namespace of its own, with a second front end.
func newListDialects(t *testing.T) (x dialects, other front) {
	t.Helper()
	temporal, namespace := ownNamespace(t)
	newWorker(t, temporal, Led)
	options := mcpbridge.Options{Namespace: namespace}
	return dialects{newFront(t, temporal, options, dialectTools(t)...), temporal}, newFront(t, temporal, options, dialectTools(t)...)
}

// proposer is a client of the proposal.
type proposer struct{ session }

func (p proposer) in(t testing.TB) proposer { return proposer{p.session.in(t)} }

// proposer opens a session that answers no questions by itself.
func (x dialects) proposer(t testing.TB, version string) proposer {
	t.Helper()
	return proposer{openSession(x.in(t).front, version, canBeAsked)}
}

// each runs a test in sessions of the versions that the proposal can be spoken in.
func (x dialects) each(t *testing.T, test func(*testing.T, proposer)) {
	for _, version := range []string{june2025, november2025} {
		t.Run(version, func(t *testing.T) { test(t, x.proposer(t, version)) })
	}
}

// augment calls a tool as a task (section 3.1).
func (p proposer) augment(tool, arguments string, task any) *sessionCall {
	p.t.Helper()
	return p.start("tools/call", map[string]any{
		"name": tool, "arguments": json.RawMessage(arguments), "_meta": map[string]any{proposalTaskKey: task},
	})
}

// begin calls a tool as a task with a new ID and waits until it may be read (section 3.4).
func (p proposer) begin(tool, arguments string) (id string, call *sessionCall) {
	p.t.Helper()
	id = uuid.NewString()
	call = p.augment(tool, arguments, map[string]any{"taskId": id, "keepAlive": 60000})
	require.Equal(p.t, "notifications/tasks/created", call.next().Method)
	return id, call
}

// about sends a request about a task (sections 3.2, 3.3 and 3.6).
func (p proposer) about(method, id string) response {
	p.t.Helper()
	return p.startAbout(method, id).response()
}

func (p proposer) startAbout(method, id string) *sessionCall {
	p.t.Helper()
	return p.start(method, map[string]any{"taskId": id, "_meta": map[string]any{proposalRelatedKey: map[string]any{"taskId": id}}})
}

// proposalTask is a task as tasks/get and tasks/list show it (section 6).
type proposalTask struct {
	TaskID        string `json:"taskId"`
	Status        string `json:"status"`
	KeepAlive     *int64 `json:"keepAlive"`
	PollFrequency int64  `json:"pollFrequency"`
	Error         string `json:"error"`
}

func (p proposer) get(id string) proposalTask {
	p.t.Helper()
	return decode[proposalTask](p.t, p.about("tasks/get", id))
}

// until polls a task until it has a status.
func (p proposer) until(id, status string) proposalTask {
	p.t.Helper()
	var last proposalTask
	require.Eventually(p.t, func() bool {
		last = p.get(id)
		return last.Status == status
	}, patience, 20*time.Millisecond, "task is %+v, not %s", &last, status)
	return last
}

// list walks through all pages.
func (p proposer) list() (tasks []json.RawMessage, pages int) {
	p.t.Helper()
	return listAll(p.session)
}

// listAll walks through all pages of tasks/list.
func listAll(s session) (tasks []json.RawMessage, pages int) {
	s.t.Helper()
	for params := map[string]any{}; ; {
		answer := s.send("tasks/list", params)
		page := decode[struct {
			Tasks      []json.RawMessage
			NextCursor *string
		}](s.t, answer)
		require.NotNil(s.t, page.Tasks, answer.Raw)
		tasks, pages = append(tasks, page.Tasks...), pages+1
		if page.NextCursor == nil {
			return tasks, pages
		}
		params["cursor"] = *page.NextCursor
	}
}

// idsOf are the IDs of listed tasks.
func idsOf(t testing.TB, tasks []json.RawMessage) []string {
	t.Helper()
	ids := make([]string, len(tasks))
	for i, raw := range tasks {
		var task struct{ TaskID string }
		require.NoError(t, json.Unmarshal(raw, &task))
		ids[i] = task.TaskID
	}
	return ids
}

// proposalMeta is the metadata of a message that belongs to a task.
func proposalMeta(id string) string {
	return fmt.Sprintf(`{%q:{"taskId":%q}}`, proposalRelatedKey, id)
}

func answered(color string) map[string]any {
	return map[string]any{"action": "accept", "content": map[string]any{"color": color}}
}

func proposalCreating(t *testing.T, x dialects) {
	x.each(t, func(t *testing.T, p proposer) {
		id := uuid.NewString()
		call := p.augment("led", `{}`, map[string]any{"taskId": id, "keepAlive": 60000})
		assert.Equal(t, "notifications/tasks/created", call.next().Method)
		now := p.get(id)
		assert.Equal(t, id, now.TaskID)
		require.NotNil(t, now.KeepAlive)
		assert.EqualValues(t, 60000, *now.KeepAlive)

		x.order(t, id, order{Result: "led to the end"})
		assert.Equal(t, "led to the end", text(t, call.response()), "the request itself is still answered")
		p.until(id, "completed")
	})
	t.Run("keepAlive may be left out", func(t *testing.T) {
		p := x.proposer(t, june2025)
		id := uuid.NewString()
		call := p.augment("parked", `{}`, map[string]any{"taskId": id})
		call.await("notifications/tasks/created")
		assert.Equal(t, id, p.get(id).TaskID)
	})
	t.Run("a tool that must run as a task", func(t *testing.T) {
		p := x.proposer(t, june2025)
		id, call := p.begin("required", `{}`)
		x.order(t, id, order{Result: "done"})
		assert.Equal(t, "done", text(t, call.response()))
	})
	t.Run("arguments that do not fit start nothing", func(t *testing.T) {
		p := x.proposer(t, june2025)
		id := uuid.NewString()
		call := p.augment("led", `{"unknown":1}`, map[string]any{"taskId": id})
		assert.Contains(t, errorText(t, call.response()), "unknown")
		assert.Empty(t, call.received())
		assertRefused(t, p.about("tasks/get", id), invalidParams, notFound)
	})
	t.Run("what is no task", func(t *testing.T) {
		p := x.proposer(t, june2025)
		for _, task := range []string{`"x"`, `[]`, `5`, `{}`} {
			call := p.augment("led", `{}`, json.RawMessage(task))
			assertRefused(t, call.response(), invalidParams, "")
			assert.Empty(t, call.received(), task)
		}
	})
}

func proposalGetting(t *testing.T, x dialects) {
	x.each(t, func(t *testing.T, p proposer) {
		id, _ := p.begin("parked", `{}`)
		got := p.about("tasks/get", id)
		poll := decode[proposalTask](t, got).PollFrequency
		assert.Positive(t, poll)
		assert.JSONEq(t, fmt.Sprintf(`{"taskId":%q,"keepAlive":60000,"pollFrequency":%d,"status":"submitted","_meta":%s}`, id, poll, proposalMeta(id)), string(got.Result))
	})
	t.Run("without metadata", func(t *testing.T) {
		p := x.proposer(t, june2025)
		id, _ := p.begin("parked", `{}`)
		got := p.send("tasks/get", map[string]any{"taskId": id})
		assert.JSONEq(t, string(p.about("tasks/get", id).Result), string(got.Result))
	})
}

func proposalRetrieving(t *testing.T, x dialects) {
	const content = `[{"type":"text","text":"Current weather in New York:\nTemperature: 72°F\nConditions: Partly cloudy"}]`
	x.each(t, func(t *testing.T, p proposer) {
		id, call := p.begin("echo", `{"content":`+content+`,"isError":false}`)
		direct := call.response()
		assert.JSONEq(t, fmt.Sprintf(`{"content":%s,"isError":false,"_meta":%s}`, content, proposalMeta(id)), string(direct.Result))
		for range 2 {
			assert.JSONEq(t, string(direct.Result), string(p.about("tasks/result", id).Result))
		}
	})
}

func proposalNotification(t *testing.T, x dialects) {
	x.each(t, func(t *testing.T, p proposer) {
		id := uuid.NewString()
		call := p.augment("ask", `{}`, map[string]any{"taskId": id})
		created := call.next()
		assert.Equal(t, "notifications/tasks/created", created.Method, "it is the first message")
		assert.Nil(t, created.ID)
		assert.JSONEq(t, fmt.Sprintf(`{"_meta":%s}`, proposalMeta(id)), string(created.Params))

		elsewhere := x
		elsewhere.front = newFront(t, x.temporal, mcpbridge.Options{})
		for _, other := range []proposer{p, x.proposer(t, p.version), elsewhere.proposer(t, june2025)} {
			assert.Equal(t, id, other.get(id).TaskID, "found from any connection and front end")
		}
		p.reply(call.await("elicitation/create"), answered("red"))
		call.response()
		for _, message := range call.received()[1:] {
			assert.NotEqual(t, "notifications/tasks/created", message.Method, "it is sent once")
		}
	})
}

func proposalListing(t *testing.T, _ dialects) {
	x, _ := newListDialects(t)
	x.each(t, func(t *testing.T, p proposer) {
		id, call := p.begin("led", `{}`)
		tasks, _ := p.list()
		require.Contains(t, idsOf(t, tasks), id, "at once")
		for _, task := range tasks {
			assert.ElementsMatch(t, []string{"taskId", "status", "keepAlive", "pollFrequency"}, memberNames(t, task), "%s", task)
		}
		x.order(t, id, order{Result: "done"})
		call.response()
		tasks, _ = p.list()
		var listed proposalTask
		for i, listedID := range idsOf(t, tasks) {
			if listedID == id {
				require.NoError(t, json.Unmarshal(tasks[i], &listed))
			}
		}
		assert.Equal(t, "completed", listed.Status)
		assert.Equal(t, p.get(id), listed, "the same as tasks/get shows")
	})
}

// The deletions of 3.6 and 4.10 run beside the other sections and at the same time: Temporal takes half a minute for one.

func proposalDeleting(t *testing.T, _ dialects) {
	t.Parallel()
	x, other := newListDialects(t)
	x.each(t, func(t *testing.T, p proposer) {
		t.Parallel()
		id, call := p.begin("led", `{}`)
		x.order(t, id, order{Result: "secret"})
		call.response()
		p.until(id, "completed")

		assert.JSONEq(t, fmt.Sprintf(`{"_meta":%s}`, proposalMeta(id)), string(p.about("tasks/delete", id).Result))
		assertRefused(t, p.about("tasks/get", id), invalidParams, notFound)
		assertRefused(t, p.about("tasks/result", id), invalidParams, "")
		tasks, _ := p.list()
		assert.NotContains(t, idsOf(t, tasks), id)

		other := dialects{other, x.temporal}.proposer(t, june2025)
		assertRefused(t, other.about("tasks/get", id), invalidParams, notFound)
	})
}

func proposalSupport(t *testing.T, x dialects) {
	x.each(t, func(t *testing.T, p proposer) {
		for _, test := range []struct{ name, method, params, result string }{
			{"ping", "ping", `{}`, `{}`},
			{"a request that is no call", "tools/list", `{}`, `"tools"`},
			{"a tool that is no workflow", "tools/call", `{"name":"plain","arguments":{}}`, "no workflow"},
			{"a tool that is never a task", "tools/call", `{"name":"never","arguments":{"a":1}}`, `"structuredContent":{"a":1}`},
		} {
			t.Run(test.name, func(t *testing.T) {
				p := p.in(t)
				id := uuid.NewString()
				var params map[string]any
				require.NoError(t, json.Unmarshal([]byte(test.params), &params))
				params["_meta"] = map[string]any{proposalTaskKey: map[string]any{"taskId": id}}
				call := p.start(test.method, params)
				answer := call.response()
				assert.Nil(t, answer.Error, answer.Raw)
				assert.Contains(t, string(answer.Result), test.result)
				assert.Empty(t, call.received(), "no task was created")
				assertRefused(t, p.about("tasks/get", id), invalidParams, notFound)
			})
		}
	})
}

func proposalIDs(t *testing.T, x dialects) {
	p := x.proposer(t, june2025)
	t.Run("any printable ASCII", func(t *testing.T) {
		p := p.in(t)
		unique := uuid.NewString()
		for _, id := range []string{
			unique, "a b " + unique, "a:b:" + unique, "../" + unique, `"quoted" 'twice' ` + unique, "100%_*" + unique, `back\slash` + unique,
			strings.Repeat("x", 256-len(unique)) + unique,
		} {
			call := p.augment("parked", `{}`, map[string]any{"taskId": id})
			require.Equal(t, "notifications/tasks/created", call.next().Method, id)
			assert.Equal(t, id, p.get(id).TaskID)
		}
	})
	t.Run("invalid", func(t *testing.T) {
		p := p.in(t)
		for name, id := range map[string]any{
			"empty": "", "a number": 5, "null": nil, "an object": map[string]any{}, "too long": strings.Repeat("x", 257), "not ASCII": "naïve", "a line break": "a\nb",
		} {
			call := p.augment("parked", `{}`, map[string]any{"taskId": id})
			assertRefused(t, call.response(), invalidParams, "")
			assert.Empty(t, call.received(), name)
		}
	})
	t.Run("unique", func(t *testing.T) {
		p := p.in(t)
		id, call := p.begin("led", `{}`)
		run := x.runID(t, id)
		other := x.proposer(t, november2025)
		for _, again := range []*sessionCall{
			p.augment("led", `{}`, map[string]any{"taskId": id}),
			other.augment("parked", `{}`, map[string]any{"taskId": id}),
		} {
			assertRefused(t, again.response(), invalidParams, fmt.Sprintf(alreadyExists, id))
			assert.Empty(t, again.received())
		}
		assert.Equal(t, run, x.runID(t, id), "nothing was started twice")
		x.order(t, id, order{Result: "the first"})
		assert.Equal(t, "the first", text(t, call.response()))
		p.until(id, "completed")
		assertRefused(t, p.augment("led", `{}`, map[string]any{"taskId": id}).response(), invalidParams, fmt.Sprintf(alreadyExists, id))
	})
	t.Run("unique in a race", func(t *testing.T) {
		id := uuid.NewString()
		var calls []*sessionCall
		for range 4 {
			calls = append(calls, x.proposer(t, june2025).augment("led", `{}`, map[string]any{"taskId": id}))
		}
		p := p.in(t)
		require.Eventually(t, func() bool { return p.about("tasks/get", id).Error == nil }, patience, 20*time.Millisecond)
		x.order(t, id, order{Result: "the winner"})
		winners := 0
		for _, call := range calls {
			if answer := call.response(); answer.Error != nil {
				assertRefused(t, answer, invalidParams, fmt.Sprintf(alreadyExists, id))
				continue
			}
			winners++
		}
		assert.Equal(t, 1, winners)
	})
}

// proposalPaths are the valid transitions of section 4.3.
var proposalPaths = map[string][]string{
	"submitted":      {"working", "input_required", "completed", "failed", "cancelled", "unknown"},
	"working":        {"input_required", "completed", "failed", "cancelled", "unknown"},
	"input_required": {"working", "completed", "failed", "cancelled", "unknown"},
}

func proposalLifecycle(t *testing.T, x dialects) {
	t.Run("submitted until a worker comes", func(t *testing.T) {
		f := newFront(t, x.temporal, mcpbridge.Options{}, tool(t, named("late"), Ask))
		p := dialects{f, x.temporal}.proposer(t, june2025)
		p.onRequest(func(wireMessage) any { return answered("blue") })
		id, call := p.begin("late", `{}`)
		seen := []string{p.get(id).Status}
		assert.Equal(t, "submitted", seen[0])
		x.in(t).until(id, func(now task) bool { return strings.Contains(now.StatusMessage, "waiting for a worker") })
		assert.Equal(t, "submitted", p.get(id).Status)

		newWorker(t, x.temporal, Ask)
		require.Eventually(t, func() bool {
			status := p.get(id).Status
			if last := seen[len(seen)-1]; status != last {
				assert.Contains(t, proposalPaths[last], status, "after %v", seen)
				seen = append(seen, status)
			}
			return status == "completed"
		}, patience, time.Millisecond, "%v", &seen)
		assert.Equal(t, "blue", text(t, call.response()))
		assert.Equal(t, "completed", p.get(id).Status, "terminal states stay")
	})
	t.Run("working once a worker has taken it, even if none is left", func(t *testing.T) {
		f := newFront(t, x.temporal, mcpbridge.Options{}, tool(t, named("left"), Led))
		p := dialects{f, x.temporal}.proposer(t, june2025)
		worker := newWorker(t, x.temporal, Led)
		id, _ := p.begin("left", `{}`)
		p.until(id, "working")
		worker.Stop()
		x.order(t, id, order{Status: "for nobody"})
		assert.Equal(t, "working", p.get(id).Status)
	})
}

func proposalInput(t *testing.T, x dialects) {
	x.each(t, func(t *testing.T, p proposer) {
		id, call := p.begin("ask", `{}`)
		question := call.await("elicitation/create")
		assert.Equal(t, id, relatedTask(t, question.Params, proposalRelatedKey))
		assert.Contains(t, string(question.Params), `"message":"Which color?"`)
		assert.Contains(t, string(question.Params), `"requestedSchema":{`)
		assert.Equal(t, "input_required", p.get(id).Status)

		p.reply(question, answered("green"))
		assert.Equal(t, "green", text(t, call.response()))
		p.until(id, "completed")
	})
	t.Run("until all questions are answered", func(t *testing.T) {
		p := x.proposer(t, june2025)
		id, call := p.begin("ask_two", `{}`)
		first, second := call.await("elicitation/create"), call.await("elicitation/create")
		assert.Contains(t, string(first.Params), "first")
		assert.Contains(t, string(second.Params), "second")
		p.reply(first, answered("red"))
		x.in(t).until(id, func(now task) bool { return len(now.InputRequests) == 1 })
		assert.Equal(t, "input_required", p.get(id).Status)
		p.reply(second, answered("blue"))
		assert.Equal(t, "red and blue", text(t, call.response()))
		assert.Equal(t, "completed", p.get(id).Status)
	})
	t.Run("a decline is an answer", func(t *testing.T) {
		p := x.proposer(t, june2025)
		p.onRequest(func(wireMessage) any { return map[string]any{"action": "decline"} })
		_, call := p.begin("ask", `{}`)
		assert.Equal(t, "decline", text(t, call.response()))
	})
}

func proposalKeepAlive(t *testing.T, x dialects) {
	description, err := x.temporal.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: "default"})
	require.NoError(t, err)
	kept := description.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	for name, test := range map[string]struct {
		task string
		want time.Duration
	}{
		"what the tool says by default":      {`{"taskId":%q}`, defaultKeepAlive},
		"less than the tool says":            {`{"taskId":%q,"keepAlive":60000}`, time.Minute},
		"more than the tool says":            {`{"taskId":%q,"keepAlive":7200000}`, 2 * time.Hour},
		"no more than the namespace keeps":   {`{"taskId":%q,"keepAlive":8640000000}`, kept},
		"a number that no duration can hold": {`{"taskId":%q,"keepAlive":1e300}`, kept},
		"nothing":                            {`{"taskId":%q,"keepAlive":0}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := x.proposer(t, june2025)
			id := uuid.NewString()
			call := p.augment("led", `{}`, json.RawMessage(fmt.Sprintf(test.task, id)))
			call.await("notifications/tasks/created")
			now := p.get(id)
			require.NotNil(t, now.KeepAlive)
			assert.EqualValues(t, test.want.Milliseconds(), *now.KeepAlive)
			x.order(t, id, order{Result: "done"})
			assert.Equal(t, "done", text(t, call.response()), "however short it is kept")
		})
	}
	t.Run("invalid", func(t *testing.T) {
		p := x.proposer(t, june2025)
		for _, keepAlive := range []string{`-1`, `"60000"`, `true`, `{}`, `[]`} {
			id := uuid.NewString()
			call := p.augment("led", `{}`, map[string]any{"taskId": id, "keepAlive": json.RawMessage(keepAlive)})
			assertRefused(t, call.response(), invalidParams, "")
			assert.Empty(t, call.received(), keepAlive)
			assertRefused(t, p.about("tasks/get", id), invalidParams, notFound)
		}
	})
	t.Run("over", func(t *testing.T) {
		p := x.proposer(t, june2025)
		id := uuid.NewString()
		call := p.augment("led", `{}`, map[string]any{"taskId": id, "keepAlive": 0})
		call.await("notifications/tasks/created")
		x.order(t, id, order{Result: "done"})
		call.response()
		require.Eventually(t, func() bool { return p.about("tasks/get", id).Error != nil }, patience, 20*time.Millisecond)
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/delete"} {
			assertRefused(t, p.about(method, id), invalidParams, notFound)
		}
	})
}

func proposalResults(t *testing.T, x dialects) {
	x.each(t, func(t *testing.T, p proposer) {
		for _, test := range []struct{ status, tool, arguments string }{
			{"submitted", "parked", `{}`},
			{"working", "led", `{}`},
			{"input_required", "ask", `{}`},
			{"failed", "fail", `{"how":"rpc"}`},
		} {
			id, _ := p.begin(test.tool, test.arguments)
			p.until(id, test.status)
			assertRefused(t, p.about("tasks/result", id), invalidParams, fmt.Sprintf(notCompleted, test.status))
		}
		id, call := p.begin("led", `{}`)
		p.until(id, "working")
		p.cancel(call)
		p.until(id, "cancelled")
		assertRefused(t, p.about("tasks/result", id), invalidParams, fmt.Sprintf(notCompleted, "cancelled"))
	})
	t.Run("as often as wanted, from anywhere", func(t *testing.T) {
		p := x.proposer(t, june2025)
		id, call := p.begin("led", `{}`)
		x.order(t, id, order{Result: "same"})
		call.response()
		for _, reader := range []proposer{p, p, x.proposer(t, june2025), x.proposer(t, november2025)} {
			assert.Equal(t, "same", text(t, reader.about("tasks/result", id)))
		}
	})
}

func proposalRelatedMessages(t *testing.T, x dialects) {
	x.each(t, func(t *testing.T, p proposer) {
		id := uuid.NewString()
		call := p.start("tools/call", map[string]any{"name": "led", "arguments": map[string]any{}, "_meta": map[string]any{
			proposalTaskKey: map[string]any{"taskId": id}, "progressToken": "p-1",
		}})
		call.await("notifications/tasks/created")
		x.order(t, id, order{Status: "half way"})
		call.find("progress", func(m wireMessage) bool {
			return m.Method == "notifications/progress" && strings.Contains(string(m.Params), `"half way"`)
		})
		x.order(t, id, order{Result: "done"})
		answers := []response{call.response(), p.about("tasks/get", id), p.about("tasks/result", id)}
		for _, message := range call.received() {
			assert.Equal(t, id, relatedTask(t, message.Params, proposalRelatedKey), "%s %s", message.Method, message.Params)
		}
		for _, answer := range answers {
			assert.Equal(t, id, relatedTask(t, answer.Result, proposalRelatedKey), answer.Raw)
			assert.NotContains(t, answer.Raw, "io.modelcontextprotocol/", "no words of a later dialect")
		}
	})
}

func proposalCancellation(t *testing.T, x dialects) {
	x.each(t, func(t *testing.T, p proposer) {
		id, call := p.begin("led", `{}`)
		p.until(id, "working")
		p.cancel(call)
		p.until(id, "cancelled")
		call.endsUnanswered()
	})
	t.Run("while input is required", func(t *testing.T) {
		p := x.proposer(t, june2025)
		id, call := p.begin("ask", `{}`)
		question := call.await("elicitation/create")
		p.cancel(call)
		p.until(id, "cancelled")
		p.replyLate(question, answered("red"))
		call.endsUnanswered()
		assert.Equal(t, "cancelled", p.get(id).Status, "a late answer is disregarded")
	})
	for name, tool := range map[string]string{"that no worker has taken": "parked", "that needs a while to clean up": "tidying"} {
		t.Run("of a task "+name, func(t *testing.T) {
			p := x.proposer(t, june2025)
			id, call := p.begin(tool, `{}`)
			p.cancel(call)
			p.until(id, "cancelled")
			call.endsUnanswered()
			if tool == "tidying" {
				x.order(t, id, order{Result: "done anyway"})
				require.NoError(t, x.temporal.GetWorkflow(t.Context(), "mcp:anonymous:"+id, "").Get(t.Context(), nil))
				assert.Equal(t, "cancelled", p.get(id).Status, "terminal states stay")
			}
		})
	}
	t.Run("after the end it is ignored", func(t *testing.T) {
		p := x.proposer(t, june2025)
		id, call := p.begin("led", `{}`)
		x.order(t, id, order{Result: "done"})
		call.response()
		p.cancel(call)
		assert.Equal(t, "completed", p.get(id).Status)
		assert.Equal(t, "done", text(t, p.about("tasks/result", id)))
	})
	t.Run("of another session's request is ignored", func(t *testing.T) {
		p, other := x.proposer(t, june2025), x.proposer(t, june2025)
		id, call := p.begin("led", `{}`)
		other.cancel(call)
		assert.Contains(t, []string{"submitted", "working"}, other.get(id).Status)
		x.order(t, id, order{Result: "done"})
		assert.Equal(t, "done", text(t, call.response()))
	})
}

func proposalPages(t *testing.T, _ dialects) {
	x, other := newListDialects(t)
	p, reader := x.proposer(t, june2025), dialects{other, x.temporal}.proposer(t, june2025)
	const many = 70 // more than fit on a page
	created := map[string]bool{}
	var calls []*sessionCall
	for range many {
		id := uuid.NewString()
		calls = append(calls, p.augment("parked", `{}`, map[string]any{"taskId": id}))
		created[id] = true
	}
	for _, call := range calls {
		call.await("notifications/tasks/created")
	}
	tasks, _ := p.list()
	assert.Len(t, tasks, many, "all that tasks/get would show, at once")
	for _, id := range idsOf(t, tasks) {
		assert.True(t, created[id], "%s is listed once and was created here", id)
		delete(created, id)
	}

	// Through another front end a new task may be seen a little later.
	var pages int
	require.Eventually(t, func() bool {
		tasks, pages = reader.list()
		return len(tasks) >= many
	}, patience, 500*time.Millisecond)
	assert.Len(t, tasks, many)
	assert.Greater(t, pages, 1, "not all at once")
	for _, cursor := range []any{"nonsense", "", "AAAA", 5, map[string]any{}} {
		assertRefused(t, reader.send("tasks/list", map[string]any{"cursor": cursor}), invalidParams, "")
	}
}

func proposalDeletion(t *testing.T, x dialects) {
	t.Parallel()
	p := x.proposer(t, june2025)
	t.Run("live tasks are refused", func(t *testing.T) {
		p := p.in(t)
		id, call := p.begin("led", `{}`)
		assertRefused(t, p.about("tasks/delete", id), invalidParams, "")
		x.order(t, id, order{Result: "unharmed"})
		assert.Equal(t, "unharmed", text(t, call.response()))
	})
	t.Run("unknown tasks", func(t *testing.T) {
		assertRefused(t, p.in(t).about("tasks/delete", uuid.NewString()), invalidParams, notFound)
	})
	t.Run("tasks that have ended", func(t *testing.T) {
		p := p.in(t)
		completed, _ := p.begin("fail", `{"how":"result"}`)
		failed, _ := p.begin("fail", `{"how":"rpc"}`)
		cancelled, call := p.begin("led", `{}`)
		p.until(cancelled, "working")
		p.cancel(call)
		var deletions []*sessionCall
		ended := map[string]string{completed: "completed", failed: "failed", cancelled: "cancelled"}
		for id, status := range ended {
			p.until(id, status)
			deletions = append(deletions, p.startAbout("tasks/delete", id))
		}
		for _, deletion := range deletions {
			answer := deletion.response()
			assert.Nil(t, answer.Error, answer.Raw)
		}
		for id := range ended {
			assertRefused(t, p.about("tasks/get", id), invalidParams, notFound)
			assertRefused(t, p.about("tasks/delete", id), invalidParams, notFound)
		}
	})
}

// proposalFlow is a task's whole life in one conversation.
func proposalFlow(t *testing.T, x dialects) {
	x.each(t, func(t *testing.T, p proposer) {
		id, call := p.begin("ask", `{}`)
		p.until(id, "input_required")
		p.reply(call.await("elicitation/create"), answered("red"))
		p.until(id, "completed")
		assert.Equal(t, "red", text(t, p.about("tasks/result", id)))
		assert.Equal(t, "red", text(t, call.response()))
	})
}

func proposalTypes(t *testing.T, x dialects) {
	x.each(t, func(t *testing.T, p proposer) {
		for _, test := range []struct {
			status, tool, arguments string
			members                 []string
		}{
			{"submitted", "parked", `{}`, nil},
			{"working", "led", `{}`, nil},
			{"input_required", "ask", `{}`, nil},
			{"completed", "fail", `{"how":"result"}`, nil},
			{"failed", "fail", `{"how":"rpc"}`, []string{"error"}},
		} {
			id, _ := p.begin(test.tool, test.arguments)
			p.until(id, test.status)
			got := p.about("tasks/get", id)
			assert.ElementsMatch(t, append([]string{"taskId", "status", "keepAlive", "pollFrequency", "_meta"}, test.members...), memberNames(t, got.Result), got.Raw)
			types := decode[map[string]any](t, got)
			assert.IsType(t, "", types["taskId"])
			assert.IsType(t, 0.0, types["keepAlive"])
			assert.IsType(t, 0.0, types["pollFrequency"])
		}
	})
}

func proposalProtocolErrors(t *testing.T, x dialects) {
	x.each(t, func(t *testing.T, p proposer) {
		t.Run("task not found", func(t *testing.T) {
			p := p.in(t)
			for _, id := range []string{uuid.NewString(), "", "naïve", strings.Repeat("x", 5000)} {
				for _, method := range []string{"tasks/get", "tasks/result", "tasks/delete"} {
					assertRefused(t, p.about(method, id), invalidParams, notFound)
				}
			}
		})
		t.Run("invalid task ID", func(t *testing.T) {
			p := p.in(t)
			for _, method := range []string{"tasks/get", "tasks/result", "tasks/delete"} {
				for _, params := range []string{`{}`, `{"taskId":5}`, `{"taskId":null}`, `{"taskid":"x"}`} {
					assertRefused(t, p.send(method, json.RawMessage(params)), invalidParams, "")
				}
				assertRefused(t, p.send(method, nil), invalidParams, "")
			}
		})
		t.Run("result requested for incomplete task", func(t *testing.T) {
			p := p.in(t)
			id, _ := p.begin("led", `{}`)
			p.until(id, "working")
			assertRefused(t, p.about("tasks/result", id), invalidParams, "Cannot retrieve result: Task status is 'working', not 'completed'")
		})
		t.Run("duplicate task ID", func(t *testing.T) {
			p := p.in(t)
			id, _ := p.begin("parked", `{}`)
			assertRefused(t, p.augment("parked", `{}`, map[string]any{"taskId": id}).response(), invalidParams, "Task ID already exists: "+id)
		})
	})
	t.Run("task expired", func(t *testing.T) {
		p := x.proposer(t, june2025)
		id := uuid.NewString()
		call := p.augment("fail", `{"how":"result"}`, map[string]any{"taskId": id, "keepAlive": 1})
		call.response()
		require.Eventually(t, func() bool { return p.about("tasks/get", id).Error != nil }, patience, 20*time.Millisecond)
		assertRefused(t, p.about("tasks/get", id), invalidParams, notFound)
	})
	t.Run("invalid cursor", func(t *testing.T) {
		assertRefused(t, x.proposer(t, june2025).send("tasks/list", map[string]any{"cursor": "invalid"}), invalidParams, "")
	})
	t.Run("internal error", func(t *testing.T) {
		server, err := devserver.Start(t.Context(), devserver.Options{NoUI: true, Log: os.Stderr})
		require.NoError(t, err)
		temporal, err := client.Dial(client.Options{HostPort: server.Address(), Logger: testenv.QuietLogger()})
		require.NoError(t, err)
		t.Cleanup(temporal.Close)
		p := dialects{newFront(t, temporal, mcpbridge.Options{}, dialectTools(t)...), temporal}.proposer(t, june2025)
		id, call := p.begin("parked", `{}`)
		require.NoError(t, server.Stop())
		assertRefused(t, p.about("tasks/get", id), internalError, "")
		assert.False(t, call.isAnswered(), "what Temporal has is not lost while it is away")
	})
}

func proposalExecutionErrors(t *testing.T, x dialects) {
	x.each(t, func(t *testing.T, p proposer) {
		t.Run("of the request", func(t *testing.T) {
			p := p.in(t)
			id, call := p.begin("fail", `{"how":"rpc"}`)
			answer := call.response()
			assertRefused(t, answer, -31999, "told to break")
			assert.JSONEq(t, `{"number":9007199254740993}`, string(answer.Error.Data))
			assert.Contains(t, answer.Raw, "9007199254740993", "every digit")
			failed := p.until(id, "failed")
			assert.Contains(t, failed.Error, "told to break")
		})
		for _, how := range []string{"result", "typed", "plain"} {
			t.Run("of the tool: "+how, func(t *testing.T) {
				p := p.in(t)
				id, call := p.begin("fail", fmt.Sprintf(`{"how":%q}`, how))
				answer := call.response()
				assert.Equal(t, "told to fail", errorText(t, answer))
				assert.Empty(t, p.until(id, "completed").Error)
				assert.JSONEq(t, string(answer.Result), string(p.about("tasks/result", id).Result))
			})
		}
	})
}

// proposalIsolation addresses workflows that are none of the caller's tasks: they are as unknown as those that do not
// exist.
func proposalIsolation(t *testing.T, _ dialects) {
	x, _ := newListDialects(t)
	secret := uuid.NewString()
	for _, id := range []string{"mcp:somebody:" + secret, "payroll-" + secret} {
		_, err := x.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: "nobody"}, Led, struct{}{})
		require.NoError(t, err)
	}
	x.each(t, func(t *testing.T, p proposer) {
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/delete"} {
			want := p.about(method, uuid.NewString()).Error
			for _, id := range []string{
				secret, "somebody:" + secret, "../somebody:" + secret, "mcp:somebody:" + secret, ":mcp:somebody:" + secret, "payroll-" + secret,
			} {
				assert.Equal(t, want, p.about(method, id).Error, "%s of %s", method, id)
			}
		}
	})
	tasks, _ := x.proposer(t, june2025).list()
	assert.Empty(t, tasks)
}

// proposalRetry is a client that loses its connection before it has an answer: it finds out by the ID.
func proposalRetry(t *testing.T, x dialects) {
	x.each(t, func(t *testing.T, p proposer) {
		id, call := p.begin("led", `{}`)
		call.abort()
		call.endsUnanswered()
		again := x.proposer(t, p.version)
		assertRefused(t, again.augment("led", `{}`, map[string]any{"taskId": id}).response(), invalidParams, fmt.Sprintf(alreadyExists, id))
		x.order(t, id, order{Result: "not lost"})
		again.until(id, "completed")
		assert.Equal(t, "not lost", text(t, again.about("tasks/result", id)))
	})
}
