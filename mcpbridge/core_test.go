package mcpbridge_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge"
	"taskbridge/signals"
	"taskbridge/workflows"
)

// TestCore walks through the tasks of MCP 2025-11-25: each subtest is a section of its page on tasks.
func TestCore(t *testing.T) {
	x := newDialects(t)
	for _, section := range []struct {
		name string
		test func(*testing.T, dialects)
	}{
		{"Server Capabilities", coreCapabilities},
		{"Tool-Level Negotiation", coreNegotiation},
		{"Creating Tasks", coreCreating},
		{"Getting Tasks", coreGetting},
		{"Retrieving Task Results", coreRetrieving},
		{"Task Status Notification", coreNotifications},
		{"Listing Tasks", coreListing},
		{"Cancelling Tasks", coreCancelling},
		{"Task ID Requirements", coreIDs},
		{"Task Status Lifecycle", coreLifecycle},
		{"Input Required Status", coreInput},
		{"Input Required Status - undeclared capabilities", coreUndeclared},
		{"TTL and Resource Management", coreTTL},
		{"Associating Task-Related Messages", coreRelatedMessages},
		{"Protocol Errors", coreProtocolErrors},
		{"Task Execution Errors", coreExecutionErrors},
		{"Task Isolation and Access Control", coreIsolation},
	} {
		t.Run(section.name, func(t *testing.T) { section.test(t, x.in(t)) })
	}
}

const (
	coreRelatedKey = "io.modelcontextprotocol/related-task"
	cannotCancel   = "Cannot cancel task: already in terminal status '%s'"
)

// AskModel has the client's model say something, and ends with that.
func AskModel(ctx workflow.Context, _ struct{}) (string, error) {
	task, err := workflows.NewTask(ctx, nil)
	if err != nil {
		return "", err
	}
	return sample(ctx, task, "Say something.")
}

func sample(ctx workflow.Context, task *workflows.Task, prompt string) (string, error) {
	result, err := workflows.Sample(ctx, task, "say", workflows.Sampling{
		Messages:  []workflows.SamplingMessage{{Role: workflows.User, Content: signals.Text(prompt)}},
		MaxTokens: 100,
	})
	if err != nil {
		return "", err
	}
	var said struct{ Text string }
	err = json.Unmarshal(result.Content, &said)
	return said.Text, err
}

// AskRoots asks for the client's roots, and ends with the first.
func AskRoots(ctx workflow.Context, _ struct{}) (string, error) {
	task, err := workflows.NewTask(ctx, nil)
	if err != nil {
		return "", err
	}
	roots, err := workflows.ListRoots(ctx, task)
	if err != nil || len(roots) == 0 {
		return "no roots", err
	}
	return roots[0].URI, nil
}

// Stages shows a status, waits for the client's model, and so on: the client sets the pace.
func Stages(ctx workflow.Context, _ struct{}) (string, error) {
	task, err := workflows.NewTask(ctx, nil)
	if err != nil {
		return "", err
	}
	for stage := 1; stage <= 3; stage++ {
		task.Status(ctx, "stage %d", stage)
		if _, err := sample(ctx, task, fmt.Sprint("Stage ", stage)); err != nil {
			return "", err
		}
	}
	return "staged", nil
}

// coreClient is a client of the tasks of 2025-11-25.
type coreClient struct{ session }

func (c coreClient) in(t testing.TB) coreClient { return coreClient{c.session.in(t)} }

const canBeAsked = `{"elicitation":{},"sampling":{},"roots":{}}`

func (x dialects) core(t testing.TB, capabilities string) coreClient {
	t.Helper()
	return coreClient{openSession(x.in(t).front, november2025, capabilities)}
}

// augment calls a tool with params.task.
func (c coreClient) augment(tool, arguments, task string) response {
	c.t.Helper()
	return c.send("tools/call", map[string]any{"name": tool, "arguments": json.RawMessage(arguments), "task": json.RawMessage(task)})
}

// coreTask is a task as all but tasks/result show it.
type coreTask struct {
	TaskID        string    `json:"taskId"`
	Status        string    `json:"status"`
	StatusMessage string    `json:"statusMessage"`
	CreatedAt     time.Time `json:"createdAt"`
	LastUpdatedAt time.Time `json:"lastUpdatedAt"`
	TTL           *int64    `json:"ttl"`
	PollInterval  int64     `json:"pollInterval"`
}

var (
	coreMembers         = []string{"taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"}
	coreMembersWithText = append(coreMembers[:len(coreMembers):len(coreMembers)], "statusMessage")
)

// assertCoreTask asserts that a task has all members that it must have, and no others.
func assertCoreTask(t testing.TB, task json.RawMessage) {
	t.Helper()
	names := memberNames(t, task)
	assert.Subset(t, names, coreMembers, "%s", task)
	assert.Subset(t, coreMembersWithText, names, "%s", task)
}

// create calls a tool as a task.
func (c coreClient) create(tool, arguments string) coreTask {
	c.t.Helper()
	created := decode[struct{ Task coreTask }](c.t, c.augment(tool, arguments, `{}`)).Task
	require.NotEmpty(c.t, created.TaskID)
	return created
}

// about sends a request about a task.
func (c coreClient) about(method, id string) response {
	c.t.Helper()
	return c.startAbout(method, id).response()
}

func (c coreClient) startAbout(method, id string) *sessionCall {
	c.t.Helper()
	return c.start(method, map[string]any{"taskId": id})
}

func (c coreClient) get(id string) coreTask {
	c.t.Helper()
	return decode[coreTask](c.t, c.about("tasks/get", id))
}

// until polls a task until it has a status.
func (c coreClient) until(id, status string) coreTask {
	c.t.Helper()
	var last coreTask
	require.Eventually(c.t, func() bool {
		last = c.get(id)
		return last.Status == status
	}, patience, 20*time.Millisecond, "task is %+v, not %s", &last, status)
	return last
}

func coreCapabilities(t *testing.T, x dialects) {
	for version, want := range map[string]string{
		march2025:    ``,
		june2025:     ``,
		november2025: `{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`,
	} {
		t.Run(version, func(t *testing.T) {
			declared := decode[struct{ Capabilities map[string]json.RawMessage }](t, openSession(x.in(t).front, version, `{}`).initialized).Capabilities
			assert.Contains(t, declared, "tools")
			if want == "" {
				assert.NotContains(t, declared, "tasks")
			} else {
				assert.JSONEq(t, want, string(declared["tasks"]))
			}
		})
	}
}

func coreNegotiation(t *testing.T, x dialects) {
	c := x.core(t, canBeAsked)
	t.Run("tools/list", func(t *testing.T) {
		c := c.in(t)
		list := decode[struct {
			Tools []struct {
				Name      string
				Execution *struct{ TaskSupport string }
			}
		}](t, c.send("tools/list", map[string]any{}))
		support := map[string]string{}
		for _, tool := range list.Tools {
			support[tool.Name] = "none"
			if tool.Execution != nil {
				support[tool.Name] = tool.Execution.TaskSupport
			}
		}
		for tool, want := range map[string]string{"led": "optional", "required": "required", "never": "forbidden", "plain": "none"} {
			assert.Equal(t, want, support[tool], tool)
		}
	})
	t.Run("forbidden", func(t *testing.T) {
		c := c.in(t)
		for _, tool := range []string{"never", "plain"} {
			assertRefused(t, c.augment(tool, `{}`, `{}`), methodNotFound, "")
			answer := c.send("tools/call", map[string]any{"name": tool, "arguments": map[string]any{}})
			assert.False(t, decode[toolResult](t, answer).IsError, "without a task it can be called: %s", answer.Raw)
		}
	})
	t.Run("required", func(t *testing.T) {
		c := c.in(t)
		assertRefused(t, c.send("tools/call", map[string]any{"name": "required", "arguments": map[string]any{}}), methodNotFound, "")
		c.create("required", `{}`)
	})
	t.Run("optional", func(t *testing.T) {
		c := c.in(t)
		id := c.create("echo", `{"content":[{"type":"text","text":"later"}]}`).TaskID
		assert.Equal(t, "later", text(t, c.about("tasks/result", id)))
		assert.Equal(t, "now", text(t, c.send("tools/call", json.RawMessage(`{"name":"echo","arguments":{"content":[{"type":"text","text":"now"}]}}`))))
	})
}

func coreCreating(t *testing.T, x dialects) {
	c := x.core(t, canBeAsked)
	t.Run("CreateTaskResult", func(t *testing.T) {
		c := c.in(t)
		for _, tool := range []string{"led", "parked"} {
			answer := c.augment(tool, `{}`, `{"ttl":60000}`)
			result := decode[map[string]json.RawMessage](t, answer)
			delete(result, "_meta")
			assert.Len(t, result, 1, "no result of the tool: %s", answer.Raw)
			assertCoreTask(t, result["task"])
			var created coreTask
			require.NoError(t, json.Unmarshal(result["task"], &created))
			assert.NotEmpty(t, created.TaskID)
			assert.Equal(t, "working", created.Status, "tasks begin so, even if no worker has taken it")
			assert.WithinDuration(t, time.Now(), created.CreatedAt, time.Minute)
			assert.False(t, created.LastUpdatedAt.Before(created.CreatedAt))
			require.NotNil(t, created.TTL)
			assert.EqualValues(t, 60000, *created.TTL)
			assert.Positive(t, created.PollInterval)
			assert.Equal(t, created.TaskID, c.get(created.TaskID).TaskID, "it can be read at once")
		}
	})
	t.Run("what is no task", func(t *testing.T) {
		c := c.in(t)
		for _, task := range []string{`5`, `"x"`, `[]`, `{"ttl":-1}`, `{"ttl":"60000"}`, `{"ttl":true}`} {
			assertRefused(t, c.augment("led", `{}`, task), invalidParams, "")
		}
	})
	t.Run("arguments that do not fit", func(t *testing.T) {
		c := c.in(t)
		assertRefused(t, c.augment("led", `{"unknown":1}`, `{}`), invalidParams, "")
	})
}

func coreGetting(t *testing.T, x dialects) {
	c := x.core(t, canBeAsked)
	created := c.create("led", `{}`)
	x.order(t, created.TaskID, order{Status: "half way"})
	var got response
	require.Eventually(t, func() bool {
		got = c.about("tasks/get", created.TaskID)
		return decode[coreTask](t, got).StatusMessage == "half way"
	}, patience, 20*time.Millisecond)
	assertCoreTask(t, got.Result)
	now := decode[coreTask](t, got)
	assert.Equal(t, "working", now.Status)
	assert.Equal(t, created.CreatedAt, now.CreatedAt)
	assert.False(t, now.LastUpdatedAt.Before(created.LastUpdatedAt))

	other := c.create("parked", `{}`).TaskID
	got = c.send("tasks/get", map[string]any{
		"taskId": created.TaskID, "_meta": map[string]any{coreRelatedKey: map[string]any{"taskId": other}},
	})
	assert.Equal(t, created.TaskID, decode[coreTask](t, got).TaskID, "the parameter counts, not the metadata")

	x.order(t, created.TaskID, order{Result: "done"})
	done := c.until(created.TaskID, "completed")
	assert.Equal(t, created.CreatedAt, done.CreatedAt)
	assert.Equal(t, done, c.get(created.TaskID))
}

func coreRetrieving(t *testing.T, x dialects) {
	c := x.core(t, canBeAsked)
	id := c.create("led", `{}`).TaskID
	waiting := []*sessionCall{c.startAbout("tasks/result", id), x.core(t, canBeAsked).startAbout("tasks/result", id)}
	assert.Equal(t, "working", c.get(id).Status)
	for _, call := range waiting {
		assert.False(t, call.isAnswered(), "it blocks")
	}
	x.order(t, id, order{Result: "done"})
	for _, call := range append(waiting, c.startAbout("tasks/result", id)) {
		answer := call.response()
		assert.Equal(t, "done", text(t, answer))
		assert.Equal(t, id, relatedTask(t, answer.Result, coreRelatedKey))
		assert.NotContains(t, answer.Raw, "resultType", "no words of a later dialect")
	}
	assert.Equal(t, "completed", c.get(id).Status)
}

func coreNotifications(t *testing.T, x dialects) {
	c, other := x.core(t, canBeAsked), x.core(t, canBeAsked)
	pushed, pushedToOther := c.listen(), other.listen()
	of := func(id, status string) func(wireMessage) bool {
		return func(m wireMessage) bool {
			var now coreTask
			return m.Method == "notifications/tasks/status" && json.Unmarshal(m.Params, &now) == nil && now.TaskID == id && now.Status == status
		}
	}
	id := c.create("ask", `{}`).TaskID
	asking := pushed.find("notice of input_required", of(id, "input_required"))
	assert.Nil(t, asking.ID)
	call := c.startAbout("tasks/result", id)
	c.reply(call.await("elicitation/create"), answered("red"))
	completed := pushed.find("notice of completed", of(id, "completed"))
	for _, notice := range []wireMessage{asking, completed} {
		assertCoreTask(t, notice.Params) // without metadata, too
	}

	theirs := other.create("fail", `{"how":"result"}`).TaskID
	pushedToOther.find("notice of failed", of(theirs, "failed"))
	for _, message := range pushedToOther.received() {
		assert.NotContains(t, string(message.Params), id, "tasks of other sessions are not pushed")
	}
}

func coreListing(t *testing.T, _ dialects) {
	x, other := newListDialects(t)
	c, reader := x.core(t, canBeAsked), dialects{other, x.temporal}.core(t, canBeAsked)
	const many = 70 // more than fit on a page
	created := map[string]bool{}
	for range many {
		id := c.create("parked", `{}`).TaskID
		created[id] = true
	}
	tasks, _ := listAll(c.session)
	assert.Len(t, tasks, many, "all that tasks/get would show, at once")
	for i, id := range idsOf(t, tasks) {
		assert.True(t, created[id], "%s is listed once and was created here", id)
		delete(created, id)
		assertCoreTask(t, tasks[i])
	}
	var pages int
	require.Eventually(t, func() bool { // another front end may see new tasks a little later
		tasks, pages = listAll(reader.session)
		return len(tasks) >= many
	}, patience, 500*time.Millisecond)
	assert.Len(t, tasks, many)
	assert.Greater(t, pages, 1, "not all at once")

	id := c.create("led", `{}`).TaskID
	x.order(t, id, order{Result: "done"})
	done := c.until(id, "completed")
	tasks, _ = listAll(c.session)
	for i, listed := range idsOf(t, tasks) {
		if listed == id {
			var now coreTask
			require.NoError(t, json.Unmarshal(tasks[i], &now))
			assert.Equal(t, done, now, "the same as tasks/get shows")
		}
	}
}

func coreCancelling(t *testing.T, x dialects) {
	c := x.core(t, canBeAsked)
	for name, test := range map[string]struct{ tool, status string }{
		"that works":                     {"led", "working"},
		"that waits for input":           {"ask", "input_required"},
		"that no worker has taken":       {"parked", "working"},
		"that needs a while to clean up": {"tidying", "working"},
	} {
		t.Run("a task "+name, func(t *testing.T) {
			c := c.in(t)
			id := c.create(test.tool, `{}`).TaskID
			c.until(id, test.status)
			waiting := c.startAbout("tasks/result", id)
			answer := c.about("tasks/cancel", id)
			assertCoreTask(t, answer.Result)
			assert.Equal(t, "cancelled", decode[coreTask](t, answer).Status, "before the response")
			assert.Equal(t, "cancelled", c.get(id).Status)
			assertRefused(t, c.about("tasks/cancel", id), invalidParams, fmt.Sprintf(cannotCancel, "cancelled"))
			assertCancelled(t, waiting.response())

			if test.tool == "tidying" {
				x.order(t, id, order{Result: "done anyway"})
				require.NoError(t, x.temporal.GetWorkflow(t.Context(), "mcp:anonymous:"+id, "").Get(t.Context(), nil))
			}
			assert.Equal(t, "cancelled", c.get(id).Status, "it stays so")
			assertCancelled(t, c.about("tasks/result", id))
		})
	}
	t.Run("a task that has ended", func(t *testing.T) {
		c := c.in(t)
		for arguments, status := range map[string]string{`{"how":"rpc"}`: "failed", `{"how":"result"}`: "failed"} {
			id := c.create("fail", arguments).TaskID
			c.until(id, status)
			assertRefused(t, c.about("tasks/cancel", id), invalidParams, fmt.Sprintf(cannotCancel, status))
		}
		id := c.create("echo", `{"content":[]}`).TaskID
		done := c.until(id, "completed")
		assertRefused(t, c.about("tasks/cancel", id), invalidParams, "Cannot cancel task: already in terminal status 'completed'")
		assert.Equal(t, done, c.get(id))
	})
}

// assertCancelled asserts the result of a cancelled task: an error of one kind or the other.
func assertCancelled(t testing.TB, r response) {
	t.Helper()
	if r.Error == nil {
		errorText(t, r)
	}
}

func coreIDs(t *testing.T, x dialects) {
	c := x.core(t, canBeAsked)
	seen := map[string]bool{}
	for range 20 {
		id := c.create("parked", `{}`).TaskID
		assert.GreaterOrEqual(t, len(id), 22, "122 bits do not fit into %s", id)
		seen[id] = true
	}
	assert.Len(t, seen, 20)
	id := uuid.NewString()
	created := decode[struct{ Task coreTask }](t, c.augment("parked", `{}`, fmt.Sprintf(`{"taskId":%q}`, id))).Task
	assert.NotEqual(t, id, created.TaskID, "the receiver makes the ID")
}

// corePaths are the valid transitions.
var corePaths = map[string][]string{
	"working":        {"input_required", "completed", "failed", "cancelled"},
	"input_required": {"working", "completed", "failed", "cancelled"},
}

func coreLifecycle(t *testing.T, x dialects) {
	c := x.core(t, canBeAsked)
	c.onRequest(func(wireMessage) any { return answered("blue") })
	created := c.create("ask_two", `{}`)
	seen := []string{created.Status}
	waiting := c.startAbout("tasks/result", created.TaskID)
	require.Eventually(t, func() bool {
		status := c.get(created.TaskID).Status
		if last := seen[len(seen)-1]; status != last {
			assert.Contains(t, corePaths[last], status, "after %v", seen)
			seen = append(seen, status)
		}
		return status == "completed"
	}, patience, time.Millisecond, "%v", &seen)
	assert.Equal(t, "blue and blue", text(t, waiting.response()))
	assert.Equal(t, "completed", c.get(created.TaskID).Status)
}

// inputs are the three kinds of input that a workflow can ask for.
var inputs = []struct {
	tool, method, contains string
	reply                  any
	result                 string
}{
	{"ask", "elicitation/create", `"message":"Which color?"`, answered("red"), "red"},
	{"ask_model", "sampling/createMessage", `"maxTokens":100`, map[string]any{
		"role": "assistant", "model": "scripted", "content": map[string]any{"type": "text", "text": "well said"},
	}, "well said"},
	{"ask_roots", "roots/list", ``, map[string]any{"roots": []any{map[string]any{"uri": "file:///home"}}}, "file:///home"},
}

func coreInput(t *testing.T, x dialects) {
	for _, input := range inputs {
		t.Run(input.method, func(t *testing.T) {
			c := x.core(t, canBeAsked)
			id := c.create(input.tool, `{}`).TaskID
			c.until(id, "input_required")
			call := c.startAbout("tasks/result", id)
			request := call.await(input.method)
			assert.Equal(t, id, relatedTask(t, request.Params, coreRelatedKey))
			assert.Contains(t, string(request.Params), input.contains)
			assert.Equal(t, "input_required", c.get(id).Status)
			c.reply(request, input.reply)
			answer := call.response()
			assert.Equal(t, input.result, text(t, answer))
			assert.Equal(t, id, relatedTask(t, answer.Result, coreRelatedKey))
			assert.Equal(t, "completed", c.get(id).Status)
		})
	}
	t.Run("several waiters, one question", func(t *testing.T) {
		c := x.core(t, canBeAsked)
		id := c.create("ask", `{}`).TaskID
		var waiting []*sessionCall
		for range 4 {
			waiting = append(waiting, c.startAbout("tasks/result", id))
		}
		questions := func() (asked []wireMessage) {
			for _, call := range waiting {
				for _, message := range call.received() {
					if message.Method == "elicitation/create" {
						asked = append(asked, message)
					}
				}
			}
			return asked
		}
		require.Eventually(t, func() bool { return len(questions()) > 0 }, patience, 20*time.Millisecond)
		waiting = append(waiting, c.startAbout("tasks/result", id))
		c.reply(questions()[0], answered("red"))
		for _, call := range waiting {
			assert.Equal(t, "red", text(t, call.response()))
		}
		assert.Len(t, questions(), 1)
	})
	t.Run("two questions at once", func(t *testing.T) {
		c := x.core(t, canBeAsked)
		id := c.create("ask_two", `{}`).TaskID
		call := c.startAbout("tasks/result", id)
		first, second := call.await("elicitation/create"), call.await("elicitation/create")
		c.reply(second, answered("blue"))
		x.in(t).until(id, func(now task) bool { return len(now.InputRequests) == 1 })
		assert.Equal(t, "input_required", c.get(id).Status)
		c.reply(first, answered("red"))
		assert.Equal(t, "red and blue", text(t, call.response()))
	})
	t.Run("the client closes the stream and answers", func(t *testing.T) {
		c := x.core(t, canBeAsked)
		id := c.create("ask", `{}`).TaskID
		call := c.startAbout("tasks/result", id)
		question := call.await("elicitation/create")
		call.abort()
		call.endsUnanswered()
		assert.Equal(t, "input_required", c.get(id).Status)
		c.reply(question, answered("red"))
		c.until(id, "completed")
		assert.Equal(t, "red", text(t, c.about("tasks/result", id)))
	})
	t.Run("a client that only polls is asked as well", func(t *testing.T) {
		c := x.core(t, canBeAsked)
		id := c.create("ask", `{}`).TaskID
		pushed := c.listen()
		c.until(id, "input_required")
		for range 3 {
			assert.Equal(t, "input_required", c.get(id).Status)
		}
		question := pushed.await("elicitation/create")
		assert.Equal(t, id, relatedTask(t, question.Params, coreRelatedKey))
		call := c.startAbout("tasks/result", id)
		c.get(id)
		c.reply(question, answered("red"))
		assert.Equal(t, "red", text(t, call.response()))
		for _, message := range call.received() {
			assert.NotEqual(t, "elicitation/create", message.Method, "once is enough")
		}
	})
	t.Run("the client comes back in another session", func(t *testing.T) {
		first := x.core(t, canBeAsked)
		id := first.create("ask", `{}`).TaskID
		first.startAbout("tasks/result", id).await("elicitation/create")
		first.close()
		c := x.core(t, canBeAsked)
		call := c.startAbout("tasks/result", id)
		c.reply(call.await("elicitation/create"), answered("red"))
		assert.Equal(t, "red", text(t, call.response()))
	})
}

func coreUndeclared(t *testing.T, x dialects) {
	for _, input := range inputs {
		capability, _, _ := strings.Cut(input.method, "/")
		t.Run(capability, func(t *testing.T) {
			c := x.core(t, `{}`)
			pushed := c.listen()
			id := c.create(input.tool, `{}`).TaskID
			c.until(id, "input_required")
			call := c.startAbout("tasks/result", id)
			for range 4 {
				now := c.get(id)
				assert.Equal(t, "input_required", now.Status)
				assert.Contains(t, now.StatusMessage, capability, "it says what the client lacks")
			}

			able := x.core(t, canBeAsked)
			able.onRequest(func(wireMessage) any { return input.reply })
			assert.Equal(t, input.result, text(t, able.about("tasks/result", id)), "another client can answer")
			assert.Equal(t, input.result, text(t, call.response()), "it blocks until the task has ended")
			for _, message := range append(call.received(), pushed.received()...) {
				assert.Nil(t, message.ID, "asked %s", message.Method)
			}
		})
	}
}

func coreTTL(t *testing.T, x dialects) {
	c := x.core(t, canBeAsked)
	for name, test := range map[string]struct {
		tool, task string
		most       time.Duration
	}{
		"as asked for":                                     {"led", `{"ttl":60000}`, time.Minute},
		"as asked for, with a timeout":                     {"limited", `{"ttl":60000}`, time.Minute},
		"as long as it can run and the namespace keeps it": {"limited", `{"ttl":31536000000}`, 25 * time.Hour},
		"a number that no duration can hold":               {"limited", `{"ttl":1e300}`, 25 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			c := c.in(t)
			created := decode[struct{ Task coreTask }](t, c.augment(test.tool, `{}`, test.task)).Task
			require.NotNil(t, created.TTL)
			assert.Positive(t, *created.TTL)
			assert.LessOrEqual(t, *created.TTL, test.most.Milliseconds())
			if test.most == time.Minute {
				assert.Equal(t, test.most.Milliseconds(), *created.TTL)
			}
			assert.Equal(t, created.TTL, c.get(created.TaskID).TTL)
		})
	}
	t.Run("by default", func(t *testing.T) {
		c := c.in(t)
		assert.Nil(t, c.create("led", `{}`).TTL, "nothing ends it while it runs")
		require.NotNil(t, c.create("limited", `{}`).TTL)
	})
	t.Run("over", func(t *testing.T) {
		c := c.in(t)
		id := c.create("brief", `{}`).TaskID
		x.order(t, id, order{Result: "done"})
		require.Eventually(t, func() bool { return c.about("tasks/get", id).Error != nil }, patience, 20*time.Millisecond)
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
			assertRefused(t, c.about(method, id), invalidParams, notFound)
		}
	})
}

func coreRelatedMessages(t *testing.T, x dialects) {
	c := x.core(t, canBeAsked)
	pushed := c.listen()
	answer := c.send("tools/call", json.RawMessage(`{"name":"led","arguments":{},"task":{},"_meta":{"progressToken":"p-1"}}`))
	id := decode[struct{ Task coreTask }](t, answer).Task.TaskID
	x.order(t, id, order{Status: "half way"})
	progress := pushed.find("progress", func(m wireMessage) bool {
		return m.Method == "notifications/progress" && strings.Contains(string(m.Params), `"half way"`)
	})
	assert.Contains(t, string(progress.Params), `"progressToken":"p-1"`, "it remains valid after the CreateTaskResult")
	assert.Equal(t, id, relatedTask(t, progress.Params, coreRelatedKey))
	for _, answer := range []response{c.about("tasks/get", id), c.about("tasks/cancel", id)} {
		assert.Empty(t, relatedTask(t, answer.Result, coreRelatedKey), "the ID is there already")
	}
}

func coreProtocolErrors(t *testing.T, x dialects) {
	c := x.core(t, canBeAsked)
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
		for _, id := range []string{uuid.NewString(), "", "naïve", strings.Repeat("x", 5000)} {
			assertRefused(t, c.about(method, id), invalidParams, notFound)
		}
		for _, params := range []string{`{}`, `{"taskId":5}`, `{"taskId":null}`, `{"taskid":"x"}`} {
			assertRefused(t, c.send(method, json.RawMessage(params)), invalidParams, "")
		}
		assertRefused(t, c.send(method, nil), invalidParams, "")
	}
	for _, cursor := range []any{"nonsense", "", "AAAA", 5, map[string]any{}} {
		assertRefused(t, c.send("tasks/list", map[string]any{"cursor": cursor}), invalidParams, "")
	}
}

func coreExecutionErrors(t *testing.T, x dialects) {
	c := x.core(t, canBeAsked)
	t.Run("of the request", func(t *testing.T) {
		c := c.in(t)
		id := c.create("fail", `{"how":"rpc"}`).TaskID
		assert.Contains(t, c.until(id, "failed").StatusMessage, "told to break")
		answer := c.about("tasks/result", id)
		assertRefused(t, answer, -31999, "told to break")
		assert.JSONEq(t, `{"number":9007199254740993}`, string(answer.Error.Data))
		assert.Contains(t, answer.Raw, "9007199254740993", "every digit")
	})
	for _, how := range []string{"result", "typed", "plain"} {
		t.Run("of the tool: "+how, func(t *testing.T) {
			c := c.in(t)
			id := c.create("fail", fmt.Sprintf(`{"how":%q}`, how)).TaskID
			assert.Contains(t, c.until(id, "failed").StatusMessage, "told to fail")
			answer := c.about("tasks/result", id)
			assert.Equal(t, "told to fail", errorText(t, answer))
			assert.Equal(t, id, relatedTask(t, answer.Result, coreRelatedKey))
		})
	}
}

func coreIsolation(t *testing.T, x dialects) {
	c := x.core(t, canBeAsked)
	secret := uuid.NewString()
	run, err := x.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "mcp:somebody:" + secret, TaskQueue: "nobody"}, Led, struct{}{})
	require.NoError(t, err)
	for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
		want := c.about(method, uuid.NewString()).Error
		for _, id := range []string{secret, "somebody:" + secret, "mcp:somebody:" + secret} {
			assert.Equal(t, want, c.about(method, id).Error, "%s of %s", method, id)
		}
	}
	description, err := x.temporal.DescribeWorkflow(t.Context(), run.GetID(), "")
	require.NoError(t, err)
	assert.False(t, description.RawResponse.GetWorkflowExtendedInfo().GetCancelRequested())
}

// TestCallsInSessions are calls without a task: they are answered with the tool's result, whatever the version.
func TestCallsInSessions(t *testing.T) {
	temporal := testenv.Client(t)
	newWorker(t, temporal, Led, Tidying, Ask, AskTwo, AskModel, AskRoots, Stages, Fail, Echo)
	x := dialects{newFront(t, temporal, mcpbridge.Options{}, append(dialectTools(t), tool(t, named("stages"), Stages))...), temporal}
	for _, version := range []string{march2025, june2025, november2025} {
		t.Run(version, func(t *testing.T) {
			s := openSession(x.in(t).front, version, canBeAsked)
			t.Run("result", func(t *testing.T) { plainResults(t, s.in(t)) })
			t.Run("progress", func(t *testing.T) { plainProgress(t, s.in(t)) })
			if version != november2025 {
				t.Run("task", func(t *testing.T) { plainWithTask(t, s.in(t)) })
			}
			for _, input := range inputs {
				t.Run(input.method, func(t *testing.T) {
					s := s.in(t)
					call := s.start("tools/call", map[string]any{"name": input.tool, "arguments": map[string]any{}})
					request := call.await(input.method)
					assert.Contains(t, string(request.Params), input.contains)
					assert.False(t, call.isAnswered())
					s.reply(request, input.reply)
					assert.Equal(t, input.result, text(t, call.response()))
				})
				t.Run(input.method+" undeclared", func(t *testing.T) {
					call := openSession(x.in(t).front, version, `{}`).start("tools/call", map[string]any{"name": input.tool, "arguments": map[string]any{}})
					capability, _, _ := strings.Cut(input.method, "/")
					assert.Contains(t, errorText(t, call.response()), capability)
					assert.Empty(t, call.received(), "it is not asked")
				})
			}
		})
	}
}

func plainResults(t *testing.T, s session) {
	call := func(tool, arguments string) response {
		return s.send("tools/call", map[string]any{"name": tool, "arguments": json.RawMessage(arguments)})
	}
	assert.Equal(t, "fine", text(t, call("echo", `{"content":[{"type":"text","text":"fine"}]}`)))
	assert.Equal(t, "no workflow", text(t, call("plain", `{}`)))
	assert.Equal(t, "told to fail", errorText(t, call("fail", `{"how":"result"}`)))
	assert.Contains(t, errorText(t, call("led", `{"unknown":1}`)), "unknown")
	broken := call("fail", `{"how":"rpc"}`)
	assertRefused(t, broken, -31999, "told to break")
	assert.Contains(t, broken.Raw, "9007199254740993", "every digit")
	assertRefused(t, call("required", `{}`), methodNotFound, "")
	assertRefused(t, call("nonsense", `{}`), invalidParams, "")
}

// plainProgress: each message of the workflow is a notification, and each has a higher progress than the one before.
func plainProgress(t *testing.T, s session) {
	for _, token := range []string{`"text"`, `7`} {
		call := s.start("tools/call", map[string]any{
			"name": "stages", "arguments": map[string]any{}, "_meta": map[string]any{"progressToken": json.RawMessage(token)},
		})
		for stage := 1; stage <= 3; stage++ {
			message := fmt.Sprintf(`"message":"stage %d"`, stage)
			call.find("progress of "+message, func(m wireMessage) bool {
				return m.Method == "notifications/progress" && strings.Contains(string(m.Params), message)
			})
			s.reply(call.await("sampling/createMessage"), map[string]any{
				"role": "assistant", "model": "scripted", "content": map[string]any{"type": "text", "text": "on"},
			})
		}
		assert.Equal(t, "staged", text(t, call.response()))
		last := -1.0
		for _, message := range call.received() {
			if message.Method != "notifications/progress" {
				continue
			}
			var now struct {
				ProgressToken json.RawMessage
				Progress      *float64
			}
			require.NoError(t, json.Unmarshal(message.Params, &now))
			assert.Equal(t, token, string(now.ProgressToken))
			require.NotNil(t, now.Progress, "%s", message.Params)
			assert.Greater(t, *now.Progress, last, "%s", call)
			last = *now.Progress
		}
	}
	s.onRequest(func(wireMessage) any {
		return map[string]any{"role": "assistant", "model": "scripted", "content": map[string]any{"type": "text", "text": "on"}}
	})
	defer s.onRequest(nil)
	silent := s.start("tools/call", map[string]any{"name": "stages", "arguments": map[string]any{}})
	assert.Equal(t, "staged", text(t, silent.response()))
	for _, message := range silent.received() {
		assert.NotEqual(t, "notifications/progress", message.Method, "nobody asked for it")
	}
}

// plainWithTask: versions without tasks know no params.task.
func plainWithTask(t *testing.T, s session) {
	assert.Equal(t, "now", text(t, s.send("tools/call", json.RawMessage(`{"name":"echo","arguments":{"content":[{"type":"text","text":"now"}]},"task":{"ttl":60000}}`))))
	assertRefused(t, s.send("tools/call", json.RawMessage(`{"name":"required","arguments":{},"task":{}}`)), methodNotFound, "")
}

// TestCancelledCallInASession: a client that no longer wants the result of a call without a task ends its workflow.
func TestCancelledCallInASession(t *testing.T) {
	temporal := testenv.Client(t)
	newWorker(t, temporal, Led)
	f := newFront(t, temporal, mcpbridge.Options{}, tool(t, named("led"), Led))
	count := func(status string) int64 {
		response, err := temporal.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
			Query: fmt.Sprintf("TaskQueue = %q AND ExecutionStatus = %q", t.Name(), status),
		})
		require.NoError(t, err)
		return response.GetCount()
	}
	before := count("Canceled")
	s := openSession(f, june2025, `{}`)
	call := s.start("tools/call", map[string]any{"name": "led", "arguments": map[string]any{}})
	require.Eventually(t, func() bool { return count("Running") == 1 }, patience, 200*time.Millisecond)
	s.cancel(call)
	call.endsUnanswered()
	require.Eventually(t, func() bool { return count("Canceled") == before+1 }, patience, 200*time.Millisecond)
}

// TestInterplay creates tasks in each dialect and reads them in all, through another front end: it is one task, in the
// words of each.
func TestInterplay(t *testing.T) {
	x := newDialects(t)
	reader := dialects{newFront(t, x.temporal, mcpbridge.Options{}), x.temporal}
	core, proposed := reader.core(t, canBeAsked), reader.proposer(t, june2025)
	for name, create := range map[string]func(t *testing.T, tool, arguments string) (id string){
		"extension": func(t *testing.T, tool, arguments string) string { return x.in(t).create(tool, arguments).TaskID },
		"core": func(t *testing.T, tool, arguments string) string {
			return x.core(t, canBeAsked).create(tool, arguments).TaskID
		},
		"SEP-1686": func(t *testing.T, tool, arguments string) string {
			id, _ := x.proposer(t, june2025).begin(tool, arguments)
			return id
		},
	} {
		for _, test := range []struct {
			name, tool, arguments     string
			extension, core, proposal string
			then                      func(t *testing.T, id string)
		}{
			{name: "no worker", tool: "parked", arguments: `{}`, extension: "working", core: "working", proposal: "submitted"},
			{name: "at work", tool: "led", arguments: `{}`, extension: "working", core: "working", proposal: "working", then: func(t *testing.T, id string) {
				x.order(t, id, order{Status: "at work"})
				x.in(t).until(id, func(now task) bool { return now.StatusMessage == "at work" })
			}},
			{name: "asking", tool: "ask", arguments: `{}`, extension: "input_required", core: "input_required", proposal: "input_required"},
			{name: "done", tool: "led", arguments: `{}`, extension: "completed", core: "completed", proposal: "completed", then: func(t *testing.T, id string) {
				x.order(t, id, order{Result: "done"})
			}},
			{name: "the tool failed", tool: "fail", arguments: `{"how":"result"}`, extension: "completed", core: "failed", proposal: "completed"},
			{name: "the request failed", tool: "fail", arguments: `{"how":"rpc"}`, extension: "failed", core: "failed", proposal: "failed"},
			{name: "cancelled", tool: "led", arguments: `{}`, extension: "cancelled", core: "cancelled", proposal: "cancelled", then: func(t *testing.T, id string) {
				decode[struct{}](t, x.in(t).send("tasks/cancel", map[string]any{"taskId": id}))
			}},
		} {
			t.Run(name+"/"+test.name, func(t *testing.T) {
				id := create(t, test.tool, test.arguments)
				if test.then != nil {
					test.then(t, id)
				}
				shown := reader.in(t).untilStatus(id, test.extension)
				core, proposed := core.in(t), proposed.in(t)
				assert.Equal(t, id, shown.TaskID)
				assert.Equal(t, test.core, core.get(id).Status)
				assert.WithinDuration(t, shown.CreatedAt, core.get(id).CreatedAt, 0)
				assert.Equal(t, test.proposal, proposed.get(id).Status)
				switch test.name {
				case "done":
					assert.JSONEq(t, `{"resultType":"complete","content":[{"type":"text","text":"done"}]}`, string(shown.Result))
					assert.Equal(t, "done", text(t, core.about("tasks/result", id)))
					assert.Equal(t, "done", text(t, proposed.about("tasks/result", id)))
				case "the tool failed":
					assert.Contains(t, string(shown.Result), `"isError":true`)
					assert.Equal(t, "told to fail", errorText(t, core.about("tasks/result", id)))
					assert.Equal(t, "told to fail", errorText(t, proposed.about("tasks/result", id)))
				case "the request failed":
					assert.Contains(t, string(shown.Error), "-31999")
					assertRefused(t, core.about("tasks/result", id), -31999, "told to break")
					assert.Contains(t, proposed.get(id).Error, "told to break")
				}
			})
		}
	}
}

// TestQuestionAnsweredElsewhere: whoever waits for a task goes on when the question is answered in another dialect.
func TestQuestionAnsweredElsewhere(t *testing.T) {
	x := newDialects(t)
	t.Run("by the extension", func(t *testing.T) {
		c := x.core(t, canBeAsked)
		id := c.create("ask", `{}`).TaskID
		call := c.startAbout("tasks/result", id)
		question := call.await("elicitation/create")
		decode[struct{}](t, x.in(t).update(id, `{"color-1":{"action":"accept","content":{"color":"blue"}}}`))
		withdrawn := call.await("notifications/cancelled")
		assert.Contains(t, string(withdrawn.Params), `"requestId":`+string(question.ID))
		assert.Equal(t, "blue", text(t, call.response()))
	})
	t.Run("in core, of a task of SEP-1686", func(t *testing.T) {
		p, c := x.proposer(t, june2025), x.core(t, canBeAsked)
		id, call := p.begin("ask", `{}`)
		call.await("elicitation/create")
		elsewhere := c.startAbout("tasks/result", id)
		c.reply(elsewhere.await("elicitation/create"), answered("green"))
		assert.Equal(t, "green", text(t, elsewhere.response()))
		assert.Equal(t, "green", text(t, call.response()))
	})
	t.Run("in SEP-1686, of a task that core waits for", func(t *testing.T) {
		p, c := x.proposer(t, june2025), x.core(t, canBeAsked)
		id, call := p.begin("ask", `{}`)
		waiting := c.startAbout("tasks/result", id)
		waiting.await("elicitation/create")
		p.reply(call.await("elicitation/create"), answered("yellow"))
		assert.Equal(t, "yellow", text(t, call.response()))
		assert.Equal(t, "yellow", text(t, waiting.response()))
	})
}
