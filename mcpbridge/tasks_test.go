package mcpbridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge"
	"taskbridge/mcpbridge/catalog"
)

func TestTaskRunsToItsResult(t *testing.T) {
	temporal := testenv.Client(t)
	newWorker(t, temporal, Sleep)
	f := newFront(t, temporal, mcpbridge.Options{}, tool(t, named("sleep"), Sleep))

	created := f.create("sleep", `{"seconds":0.5}`)
	assert.Equal(t, "working", created.Status)
	assert.Nil(t, created.TTLMs, "no execution timeout, so no limit while it runs")
	assert.EqualValues(t, 1000, created.PollIntervalMs)
	assert.WithinDuration(t, time.Now(), created.CreatedAt, time.Minute)
	assert.Empty(t, created.Result)

	working := f.until(created.TaskID, func(now task) bool { return now.StatusMessage == "sleeping" })
	assert.Equal(t, "complete", working.ResultType)
	assert.Equal(t, "working", working.Status)
	assert.Equal(t, created.CreatedAt, working.CreatedAt)

	done := f.untilStatus(created.TaskID, "completed")
	assert.JSONEq(t, `{"resultType":"complete","content":[{"type":"text","text":"slept"}]}`, string(done.Result))
	assert.Equal(t, created.CreatedAt, done.CreatedAt)
	require.NotNil(t, done.TTLMs)
	assert.InDelta(t, (24 * time.Hour).Milliseconds(), *done.TTLMs, 20_000, "time to close and retention")
	assert.Equal(t, done, f.get(created.TaskID), "a finished task never changes")
}

func TestLiveTTLIsExecutionTimeoutAndRetention(t *testing.T) {
	temporal := testenv.Client(t)
	f := newFront(t, temporal, mcpbridge.Options{}, tool(t, func(tool *catalog.Tool) {
		tool.Name, tool.ExecutionTimeout, tool.Retention = "sleep", time.Hour, 30*time.Minute
	}, Sleep))
	created := f.create("sleep", `{"seconds":1}`)
	require.NotNil(t, created.TTLMs)
	assert.EqualValues(t, 90*60*1000, *created.TTLMs)
	assert.Equal(t, created.TTLMs, f.get(created.TaskID).TTLMs)
}

func TestExpiredTaskIsNotFound(t *testing.T) {
	temporal := testenv.Client(t)
	newWorker(t, temporal, Echo)
	f := newFront(t, temporal, mcpbridge.Options{}, tool(t, func(tool *catalog.Tool) {
		tool.Name, tool.InputSchema, tool.Retention = "echo", json.RawMessage(`{"type":"object"}`), time.Second
	}, Echo))
	id := f.create("echo", `{}`).TaskID
	f.untilStatus(id, "completed")
	require.Eventually(t, func() bool {
		return f.send("tasks/get", map[string]any{"taskId": id}).Error != nil
	}, 10*time.Second, 100*time.Millisecond)
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		answer := f.send(method, map[string]any{"taskId": id, "inputResponses": map[string]any{}})
		assertError(t, answer, http.StatusOK, -32602, "task not found")
	}
}

func TestQuestionIsAskedAndAnswered(t *testing.T) {
	temporal := testenv.Client(t)
	newWorker(t, temporal, Ask)
	f := newFront(t, temporal, mcpbridge.Options{}, tool(t, named("ask"), Ask))
	id := f.create("ask", `{}`).TaskID

	asking := f.untilStatus(id, "input_required")
	require.Contains(t, asking.InputRequests, "color-1")
	assert.JSONEq(t, `{"method":"elicitation/create","params":{"mode":"form","message":"Which color?","requestedSchema":{
		"type":"object","properties":{"color":{"type":"string"},"count":{"type":"integer"}},"required":["color"]}}}`,
		string(asking.InputRequests["color-1"]))

	for _, refused := range []struct{ responses, message string }{
		{`{"color-1":5}`, "is not a JSON object"},
		{`{"color-1":{}}`, `has no "action"`},
		{`{"color-1":{"action":"maybe"}}`, `action "maybe" is not accept, decline or cancel`},
		{`{"color-1":{"action":"accept"}}`, `no "content"`},
		{`{"color-1":{"action":"accept","content":{"count":1}}}`, "color"},
		{`{"color-1":{"action":"accept","content":{"color":7}}}`, "color"},
		{`{"color-1":{"action":"accept","content":{"color":"red","COLOR":"blue"}}}`, `did you mean "color"?`},
		{`{"color-1":{"action":"accept","content":{"color":"` + strings.Repeat("x", 3<<20) + `"}}}`, "Temporal takes at most 2097152"},
		{`[]`, "must be an object"},
		{`null`, "must be an object"},
	} {
		assertError(t, f.update(id, refused.responses), http.StatusOK, -32602, refused.message)
	}
	assert.Equal(t, "input_required", f.get(id).Status, "nothing refused was sent")

	assert.JSONEq(t, `"complete"`, string(decode[map[string]json.RawMessage](t, f.update(id, `{"other-9":{"action":"accept"}}`))["resultType"]),
		"unknown keys are acknowledged and ignored")
	decode[struct{}](t, f.update(id, `{"color-1":{"action":"accept","content":{"color":"blue"}}}`))
	assert.Empty(t, f.get(id).InputRequests, "an acknowledged answer is visible at once")
	decode[struct{}](t, f.update(id, `{"color-1":{"action":"accept","content":{"color":"red"}}}`))
	done := f.untilStatus(id, "completed")
	assert.JSONEq(t, `{"resultType":"complete","content":[{"type":"text","text":"blue"}]}`, string(done.Result), "the first answer wins")
	decode[struct{}](t, f.update(id, `{"color-1":{"action":"decline"}}`))
}

func TestDeclineAndCancelOfAQuestionAreTold(t *testing.T) {
	temporal := testenv.Client(t)
	newWorker(t, temporal, Ask)
	f := newFront(t, temporal, mcpbridge.Options{}, tool(t, named("ask"), Ask))
	for _, action := range []string{"decline", "cancel"} {
		id := f.create("ask", `{}`).TaskID
		f.untilStatus(id, "input_required")
		decode[struct{}](t, f.update(id, fmt.Sprintf(`{"color-1":{"action":%q}}`, action)))
		assert.Contains(t, string(f.untilStatus(id, "completed").Result), action)
	}
}

func TestQuestionsContinueAsNew(t *testing.T) {
	temporal := testenv.Client(t)
	newWorker(t, temporal, Again)
	f := newFront(t, temporal, mcpbridge.Options{}, tool(t, func(tool *catalog.Tool) {
		tool.Name, tool.InputSchema = "again", json.RawMessage(`{"type":"object","properties":{"runs":{"type":"integer"}}}`)
	}, Again))
	created := f.create("again", `{"runs":3}`)
	for run := 1; run <= 3; run++ {
		key := fmt.Sprintf("color-%d", run)
		asking := f.until(created.TaskID, func(now task) bool { return now.InputRequests[key] != nil })
		assert.Equal(t, created.CreatedAt, asking.CreatedAt, "that of the first run")
		decode[struct{}](t, f.update(created.TaskID, fmt.Sprintf(`{%q:{"action":"accept","content":{"color":"%d"}}}`, key, run)))
	}
	assert.Contains(t, string(f.untilStatus(created.TaskID, "completed").Result), "123")
}

func TestOutcomes(t *testing.T) {
	temporal := testenv.Client(t)
	newWorker(t, temporal, Fail)
	f := newFront(t, temporal, mcpbridge.Options{}, tool(t, named("fail"), Fail))
	for how, want := range map[string]struct{ status, content string }{
		"result": {"completed", `{"resultType":"complete","content":[{"type":"text","text":"told to fail"}],"isError":true}`},
		"typed":  {"completed", `{"resultType":"complete","content":[{"type":"text","text":"told to fail"}],"isError":true}`},
		"plain":  {"completed", `{"resultType":"complete","content":[{"type":"text","text":"told to fail"}],"isError":true}`},
		"rpc":    {"failed", `{"code":-31999,"message":"told to break","data":{"number":9007199254740993}}`},
	} {
		t.Run(how, func(t *testing.T) {
			id := f.create("fail", fmt.Sprintf(`{"how":%q}`, how)).TaskID
			done := f.untilStatus(id, want.status)
			content := string(done.Result) + string(done.Error)
			assert.JSONEq(t, want.content, content)
			if how == "rpc" {
				assert.Contains(t, content, "9007199254740993", "every digit")
				assert.Equal(t, "told to break", done.StatusMessage)
			}
		})
	}
}

func TestTimeoutAndTermination(t *testing.T) {
	temporal := testenv.Client(t)
	f := newFront(t, temporal, mcpbridge.Options{},
		tool(t, func(tool *catalog.Tool) { tool.Name, tool.ExecutionTimeout = "short", time.Second }, Sleep),
		tool(t, named("long"), Sleep))
	short, long := f.create("short", `{"seconds":60}`), f.create("long", `{"seconds":60}`)
	require.NoError(t, temporal.TerminateWorkflow(t.Context(), "mcp:anonymous:"+long.TaskID, "", "maintenance"))

	stopped := f.untilStatus(long.TaskID, "cancelled")
	assert.Equal(t, "terminated: maintenance", stopped.StatusMessage)
	late := f.untilStatus(short.TaskID, "failed")
	assert.JSONEq(t, `{"code":-32603,"message":"the workflow did not finish within its execution timeout"}`, string(late.Error))
}

func TestCancel(t *testing.T) {
	temporal := testenv.Client(t)
	newWorker(t, temporal, Sleep, Stubborn)
	f := newFront(t, temporal, mcpbridge.Options{},
		tool(t, named("sleep"), Sleep),
		tool(t, func(tool *catalog.Tool) { tool.Name, tool.Cancel = "stubborn", catalog.CancelTerminate }, Stubborn))
	for _, name := range []string{"sleep", "stubborn"} {
		id := f.create(name, map[string]string{"sleep": `{"seconds":60}`, "stubborn": `{}`}[name]).TaskID
		f.untilStatus(id, "working")
		ack := decode[map[string]json.RawMessage](t, f.send("tasks/cancel", map[string]any{"taskId": id}))
		assert.JSONEq(t, `"complete"`, string(ack["resultType"]))
		assert.NotContains(t, ack, "status")
		ended := f.untilStatus(id, "cancelled")
		decode[struct{}](t, f.send("tasks/cancel", map[string]any{"taskId": id}))
		assert.Equal(t, ended, f.get(id), "cancelling an ended task changes nothing")
	}
}

func TestResultsComeOutAsTheyWentIn(t *testing.T) {
	temporal := testenv.Client(t)
	newWorker(t, temporal, Echo)
	var modes []func(*mcpbridge.Bridge) error
	for _, mode := range []catalog.ResultMode{catalog.ResultAuto, catalog.ResultText, catalog.ResultJSON, catalog.ResultMCP} {
		modes = append(modes, tool(t, func(tool *catalog.Tool) {
			tool.Name, tool.Result = string(mode), mode
			tool.InputSchema, tool.Arguments, tool.Positional = json.RawMessage(`{"type":"object","properties":{"value":true}}`), catalog.ArgumentsPositional, []string{"value"}
		}, Echo))
	}
	f := newFront(t, temporal, mcpbridge.Options{}, modes...)
	const object = `{"big":12345678901234567890,"text":"<é>","z":null,"a":1.50}`
	for _, test := range []struct{ mode, value, want string }{
		{"auto", `"plain"`, `{"resultType":"complete","content":[{"type":"text","text":"plain"}]}`},
		{"auto", `12345678901234567890`, `{"resultType":"complete","content":[{"type":"text","text":"12345678901234567890"}]}`},
		{"auto", `[1,2]`, `{"resultType":"complete","content":[{"type":"text","text":"[1,2]"}]}`},
		{"auto", `{}`, `{"resultType":"complete","content":[{"type":"text","text":"{}"}],"structuredContent":{}}`},
		{"json", `""`, `{"resultType":"complete","content":[{"type":"text","text":""}],"structuredContent":""}`},
		{"auto", `null`, `{"resultType":"complete","content":[]}`},
		{"text", `{"a":1}`, `{"resultType":"complete","content":[{"type":"text","text":"{\"a\":1}"}]}`},
		{"json", `[1,2]`, `{"resultType":"complete","content":[{"type":"text","text":"[1,2]"}],"structuredContent":[1,2]}`},
		{"mcp", `{"structuredContent":{"a":1}}`, `{"resultType":"complete","content":[],"structuredContent":{"a":1}}`},
		{"mcp", `{"content":[{"type":"text","text":"x"}],"isError":true,"_meta":{"a/b":1}}`, `{"resultType":"complete","content":[{"type":"text","text":"x"}],"isError":true,"_meta":{"a/b":1}}`},
	} {
		id := f.create(test.mode, fmt.Sprintf(`{"value":%s}`, test.value)).TaskID
		assert.JSONEq(t, test.want, string(f.untilStatus(id, "completed").Result), "%s of %s", test.mode, test.value)
	}
	structured := f.untilStatus(f.create("auto", fmt.Sprintf(`{"value":%s}`, object)).TaskID, "completed")
	assert.Contains(t, string(structured.Result), `"big":12345678901234567890`)
	assert.Contains(t, string(structured.Result), `"a":1.50`)

	wrong := f.untilStatus(f.create("mcp", `{"value":"text"}`).TaskID, "failed")
	assert.Contains(t, string(wrong.Error), "not in CallToolResult form")
}

func TestWithoutAWorkerTheTaskSaysWhatItWaitsFor(t *testing.T) {
	temporal := testenv.Client(t)
	f := newFront(t, temporal, mcpbridge.Options{}, tool(t, named("sleep"), Sleep))
	id := f.create("sleep", `{"seconds":0}`).TaskID
	begin := time.Now()
	assert.Equal(t, "working", f.get(id).Status)
	assert.Less(t, time.Since(begin), time.Second, "no worker is needed for the answer")
	f.until(id, func(now task) bool {
		return now.StatusMessage == "waiting for a worker on task queue "+t.Name()
	})
	newWorker(t, temporal, Sleep)
	f.untilStatus(id, "completed")
}

func TestFailingWorkflowTaskIsTold(t *testing.T) {
	temporal := testenv.Client(t)
	f := newFront(t, temporal, mcpbridge.Options{}, tool(t, func(tool *catalog.Tool) {
		tool.Name, tool.Workflow = "unknown", "NotRegistered"
	}, Sleep))
	newWorker(t, temporal, Echo)
	id := f.create("unknown", `{"seconds":0}`).TaskID
	f.until(id, func(now task) bool { return strings.Contains(now.StatusMessage, "workflow task is failing (attempt ") })
	decode[struct{}](t, f.send("tasks/cancel", map[string]any{"taskId": id}))
}

// TestTwoFrontEndsAreOne creates tasks on one front end and reads, answers and cancels them on the other, in turns. Most
// have no worker: what is tested is that what one front end acknowledged the other knows.
func TestTwoFrontEndsAreOne(t *testing.T) {
	temporal := testenv.Client(t)
	newWorker(t, temporal, Ask)
	ask := tool(t, named("ask"), Ask)
	park := tool(t, func(tool *catalog.Tool) { tool.Name, tool.TaskQueue = "park", "nobody" }, Ask)
	fronts := []front{
		newFront(t, temporal, mcpbridge.Options{}, ask, park),
		newFront(t, testenv.Client(t), mcpbridge.Options{}, ask, park),
	}
	const rounds, clients = 1000, 8
	for client := range clients {
		t.Run(fmt.Sprint("client ", client), func(t *testing.T) {
			t.Parallel()
			here, there := fronts[0], fronts[1]
			here.t, there.t = t, t
			for i := range rounds / clients {
				id := here.create("park", `{}`).TaskID
				assert.Equal(t, id, there.get(id).TaskID)
				decode[struct{}](t, there.send("tasks/cancel", map[string]any{"taskId": id}))
				assert.Equal(t, "working", here.get(id).Status, "nobody is there to be cancelled")
				if i%10 == 0 {
					id := here.create("ask", `{}`).TaskID
					here.untilStatus(id, "input_required")
					decode[struct{}](t, there.update(id, `{"color-1":{"action":"accept","content":{"color":"green"}}}`))
					assert.Contains(t, string(here.untilStatus(id, "completed").Result), "green")
				}
				here, there = there, here
			}
		})
	}
}

func TestWorkflowKeepsItsMemoOfTheStart(t *testing.T) {
	temporal := testenv.Client(t)
	f := newFront(t, temporal, mcpbridge.Options{}, tool(t, named("sleep"), Sleep))
	id := f.create("sleep", `{"seconds":0}`).TaskID
	description, err := temporal.DescribeWorkflow(t.Context(), "mcp:anonymous:"+id, "")
	require.NoError(t, err)
	info := description.RawResponse.GetWorkflowExecutionInfo()
	assert.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, info.GetStatus())
	var meta map[string]any
	require.NoError(t, json.Unmarshal(info.GetMemo().GetFields()["mcp.meta"].GetData(), &meta))
	assert.Equal(t, "sleep", meta["tool"])
	assert.Equal(t, "io.modelcontextprotocol/tasks", meta["dialect"])
	assert.EqualValues(t, 1, meta["v"])
}

func TestTheClientOfASynchronousCallGoesAway(t *testing.T) {
	temporal := testenv.Client(t)
	newWorker(t, temporal, Sleep)
	f := newFront(t, temporal, mcpbridge.Options{}, tool(t, func(tool *catalog.Tool) { tool.Name, tool.Task = "sleep", catalog.TaskNever }, Sleep))
	ctx, leave := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/mcp", strings.NewReader(message("tools/call", `"name":"sleep","arguments":{"seconds":600}`)))
	require.NoError(t, err)
	request.Header = headers("tools/call", "sleep")
	gone := make(chan error, 1)
	go func() {
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			err = answer.Body.Close()
		}
		gone <- err
	}()
	count := func(status string) int64 {
		response, err := temporal.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
			Query: fmt.Sprintf("TaskQueue = %q AND ExecutionStatus = %q", t.Name(), status),
		})
		require.NoError(t, err)
		return response.GetCount()
	}
	require.Eventually(t, func() bool { return count("Running") == 1 }, 20*time.Second, 200*time.Millisecond)
	leave()
	require.ErrorIs(t, <-gone, context.Canceled)
	require.Eventually(t, func() bool { return count("Canceled") == 1 }, 20*time.Second, 200*time.Millisecond)
}
