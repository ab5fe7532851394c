package mcpbridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/internal/seal"
	"taskbridge/signals"
	"taskbridge/workflows"
)

// Steps takes three steps, each when the test says "next", and tells how far it has come.
func Steps(ctx workflow.Context, _ struct{}) (string, error) {
	task, err := workflows.NewTask(ctx, nil)
	if err != nil {
		return "", err
	}
	for step := 1; step <= 3; step++ {
		task.Progress(ctx, float64(step-1), 3)
		task.Status(ctx, "step %d", step)
		if err := nextStep(ctx); err != nil {
			return "", err
		}
	}
	return "three steps", nil
}

// nextStep waits for the test.
func nextStep(ctx workflow.Context) error {
	next := workflow.GetSignalChannel(ctx, "next")
	if err := workflow.Await(ctx, func() bool { return next.Len() > 0 }); err != nil {
		return err
	}
	next.Receive(ctx, nil)
	return nil
}

// Paint asks for a color, tells which it got, and ends when the test says "next".
func Paint(ctx workflow.Context, _ struct{}) (string, error) {
	task, err := workflows.NewTask(ctx, nil)
	if err != nil {
		return "", err
	}
	answer, err := workflows.Elicit[Form](ctx, task, workflows.Question{Name: "color", Message: "Which color?"})
	if err != nil {
		return "", err
	}
	task.Status(ctx, "painting it %s", answer.Content.Color)
	return "painted it " + answer.Content.Color, nextStep(ctx)
}

// AskOnce asks the client whatever it is told to, by the contract alone as a worker in another language would, and ends
// with the answer.
func AskOnce(ctx workflow.Context, question signals.InputRequest) (json.RawMessage, error) {
	err := workflow.UpsertMemo(ctx, map[string]any{signals.StateMemo: signals.TaskState{
		Version: signals.Version, InputRequests: map[string]signals.InputRequest{"question": question}, UpdatedAt: workflow.Now(ctx),
	}})
	if err != nil {
		return nil, err
	}
	answers := workflow.GetSignalChannel(ctx, signals.InputSignal)
	if err := workflow.Await(ctx, func() bool { return answers.Len() > 0 }); err != nil {
		return nil, err
	}
	var input signals.Input
	answers.Receive(ctx, &input)
	return input.Responses["question"], nil
}

// waiting is a front end whose calls are answered with their results, and the Temporal behind it.
type waiting struct {
	front
	temporal client.Client
	queue    string
}

// stateKey lets tests read and write what travels sealed through clients.
var stateKey = []byte("a key of 32 bytes, known to all.")

func newWaiting(t *testing.T, capabilities string) waiting {
	t.Helper()
	temporal := testenv.Client(t)
	newPatientWorker(t, temporal, Steps, Paint, Ask, AskTwo, AskOnce, Echo)
	w := waiting{newFront(t, temporal, mcpbridge.Options{StateKey: stateKey}, waitingTools(t)...), temporal, t.Name()}
	w.capabilities = capabilities
	return w
}

// newPatientWorker is a worker that does not take a busy machine for a workflow that never yields, as the SDK does after
// a second.
func newPatientWorker(t testing.TB, temporal client.Client, run ...any) {
	t.Helper()
	options := workflows.WorkerOptions()
	options.DeadlockDetectionTimeout = time.Minute
	w := worker.New(temporal, t.Name(), options)
	for _, workflow := range run {
		w.RegisterWorkflow(workflow)
	}
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
}

// waitingTools are workflows that clients without tasks wait for or, by the tools whose names begin with "long_", for a
// second at most.
func waitingTools(t testing.TB) []func(*mcpbridge.Bridge) error {
	question := json.RawMessage(`{"type":"object","properties":{"method":{"type":"string"},"params":{"type":"object"}}}`)
	return slices.Concat(
		both(t, "steps", Steps), both(t, "paint", Paint), both(t, "ask", Ask), both(t, "ask_two", AskTwo),
		both(t, "echo", func(_ workflow.Context, in struct{ Text string }) (struct{ Text string }, error) { return in, nil }, "Echo"),
		[]func(*mcpbridge.Bridge) error{
			tool(t, func(tool *catalog.Tool) { tool.Name, tool.InputSchema = "ask_once", question }, AskOnce),
			tool(t, func(tool *catalog.Tool) {
				tool.Name, tool.Fallback, tool.HandoffAfter = "slow_paint", catalog.FallbackHandoff, 3*time.Second
			}, Paint),
		},
	)
}

func both[In, Out any](t testing.TB, name string, run func(workflow.Context, In) (Out, error), as ...string) []func(*mcpbridge.Bridge) error {
	offer := func(change func(*catalog.Tool)) func(*mcpbridge.Bridge) error {
		return tool(t, func(tool *catalog.Tool) {
			if len(as) > 0 {
				tool.Workflow = as[0]
			}
			change(tool)
		}, run)
	}
	return []func(*mcpbridge.Bridge) error{offer(named(name)), offer(func(tool *catalog.Tool) {
		tool.Name, tool.Fallback, tool.HandoffAfter = "long_"+name, catalog.FallbackHandoff, time.Second
	})}
}

func (w waiting) in(t testing.TB) waiting {
	w.t = t
	return w
}

func (w waiting) as(capabilities string) waiting {
	w.capabilities = capabilities
	return w
}

// next lets a task's workflow take its next step.
func (w waiting) next(taskID string) {
	w.t.Helper()
	require.NoError(w.t, w.temporal.SignalWorkflow(w.t.Context(), "mcp:anonymous:"+taskID, "", "next", nil))
}

// started is the task ID of the only workflow that runs on the test's task queue.
func (w waiting) started() (taskID string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		found, err := w.temporal.ListWorkflow(w.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("TaskQueue = %q AND ExecutionStatus = 'Running'", w.queue),
		})
		if err != nil || len(found.GetExecutions()) != 1 {
			return false
		}
		taskID = strings.TrimPrefix(found.GetExecutions()[0].GetExecution().GetWorkflowId(), "mcp:anonymous:")
		return w.status(taskID) == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING // visibility is a little late
	}, patience, 200*time.Millisecond, "no workflow, or more than one")
	return taskID
}

func (w waiting) status(taskID string) enumspb.WorkflowExecutionStatus {
	w.t.Helper()
	description, err := w.temporal.DescribeWorkflow(w.t.Context(), "mcp:anonymous:"+taskID, "")
	require.NoError(w.t, err)
	return description.Status
}

// untilCancelled waits until a task's workflow has been cancelled.
func (w waiting) untilCancelled(taskID string) {
	w.t.Helper()
	require.Eventually(w.t, func() bool { return w.status(taskID) == enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED },
		patience, 50*time.Millisecond, "the workflow is not cancelled")
}

// count counts the events of a type in the history of a task's workflow.
func (w waiting) count(taskID string, event enumspb.EventType) (count int) {
	w.t.Helper()
	history := w.temporal.GetWorkflowHistory(w.t.Context(), "mcp:anonymous:"+taskID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		next, err := history.Next()
		require.NoError(w.t, err)
		if next.GetEventType() == event {
			count++
		}
	}
	return count
}

// request is a call of a tool; its zero value but for the name is complete.
type request struct {
	tool, arguments string
	progressToken   string // JSON
	state           string
	responses       string
	accept          string
}

var lastID atomic.Int64

// begin sends a modern call and does not wait for its answer. The connection is the call's own.
func (f front) begin(r request) *sessionCall {
	f.t.Helper()
	ctx, abort := context.WithCancel(context.Background())
	call := &sessionCall{stream: newStream(f.t), id: lastID.Add(1), abort: abort}
	body := f.encode(call.id, r)
	ended := make(chan struct{})
	f.t.Cleanup(func() { abort(); <-ended })
	go func() {
		defer close(ended)
		defer abort()
		call.finish(f.read(ctx, body, r.headers(), call.stream))
	}()
	return call
}

func (f front) encode(id int64, r request) []byte {
	meta := map[string]any{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities": json.RawMessage(f.capabilities),
	}
	if r.progressToken != "" {
		meta["progressToken"] = json.RawMessage(r.progressToken)
	}
	params := map[string]any{"name": r.tool, "arguments": map[string]any{}, "_meta": meta}
	for member, value := range map[string]string{"arguments": r.arguments, "inputResponses": r.responses} {
		if value != "" {
			params[member] = json.RawMessage(value)
		}
	}
	if r.state != "" {
		params["requestState"] = r.state
	}
	return encode(f.t, map[string]any{"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

func (r request) headers() http.Header {
	header := headers("tools/call", r.tool)
	if r.accept != "" {
		header.Set("Accept", r.accept)
	}
	return header
}

// read passes the messages that answer a request to a stream.
func (f front) read(ctx context.Context, body []byte, header http.Header, into *stream) error {
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/mcp", bytes.NewReader(body))
	if err != nil {
		return err
	}
	post.Header = header
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(post)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	into.open(answer)
	reader := &connection{version: november2025}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		return reader.readEvents(answer.Body, into)
	}
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return reader.receive(raw, into)
}

// ask makes a call and waits for its answer.
func (f front) ask(r request) response {
	f.t.Helper()
	return f.begin(r).response()
}

// progressed waits for a progress notification with a message.
func (c *sessionCall) progressed(message string) wireMessage {
	c.t.Helper()
	return c.find("progress "+message, func(m wireMessage) bool {
		return m.Method == "notifications/progress" && strings.Contains(string(m.Params), `"message":"`+message) // and why it is slow, if it is
	})
}

// assertProgress asserts that a call has got nothing but progress notifications for its token, each higher than the one
// before, and that those for steps say of how many.
func assertProgress(t testing.TB, call *sessionCall, token string) {
	t.Helper()
	last := math.Inf(-1)
	for _, message := range call.received() {
		require.Equal(t, "notifications/progress", message.Method)
		assert.Empty(t, message.ID)
		var now struct {
			ProgressToken   json.RawMessage
			Progress, Total *float64
			Message         string
		}
		require.NoError(t, json.Unmarshal(message.Params, &now))
		assert.Equal(t, token, string(now.ProgressToken))
		require.NotNil(t, now.Progress, "%s", message.Params)
		assert.Greater(t, *now.Progress, last, "%s", call)
		last = *now.Progress
		if step, ok := strings.CutPrefix(now.Message, "step "); ok {
			require.NotNil(t, now.Total, "%s", message.Params)
			assert.Equal(t, 3.0, *now.Total)
			assert.Equal(t, step[:1], fmt.Sprint(1+math.Floor(*now.Progress)), "steps done")
		}
	}
}

func TestProgressOfACall(t *testing.T) {
	w := newWaiting(t, `{}`)
	for _, token := range []string{`"a token"`, `7`} {
		call := w.begin(request{tool: "steps", progressToken: token})
		task := w.started()
		for step := 1; step <= 3; step++ {
			call.progressed(fmt.Sprint("step ", step))
			assert.False(t, call.isAnswered())
			w.next(task)
		}
		assert.Equal(t, "three steps", text(t, call.response()))
		call.wait("end", func() bool { return call.ended })
		assertProgress(t, call, token)
		assert.Equal(t, "text/event-stream", call.header.Get("Content-Type"))
		assert.Equal(t, "no", call.header.Get("X-Accel-Buffering"))
	}
}

// TestACallWithoutProgressIsJSON: a call gets a stream only if its client asks for progress and takes streams.
func TestACallWithoutProgressIsJSON(t *testing.T) {
	w := newWaiting(t, `{}`)
	for name, r := range map[string]request{
		"no token":     {},
		"no streams":   {progressToken: `"x"`, accept: "application/json"},
		"a bad token":  {progressToken: `{"a":1}`},
		"another one":  {progressToken: `null`},
		"a third, too": {progressToken: `[1]`},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			r.tool = "steps"
			call := w.begin(r)
			task := w.started()
			for range 3 {
				w.next(task)
			}
			assert.Equal(t, "three steps", text(t, call.response()))
			assert.Empty(t, call.received())
			assert.Equal(t, "application/json", call.header.Get("Content-Type"))
		})
	}
}

// TestAClientThatGoesAwayCancelsItsCall (MCP 2026-07-28, Streamable HTTP, "Cancellation"), whatever it has got by then.
func TestAClientThatGoesAwayCancelsItsCall(t *testing.T) {
	w := newWaiting(t, `{}`)
	t.Run("in the middle of a stream", func(t *testing.T) {
		w := w.in(t)
		call := w.begin(request{tool: "steps", progressToken: `1`})
		task := w.started()
		call.progressed("step 1")
		call.abort()
		w.untilCancelled(task)
	})
	t.Run("before anything came", func(t *testing.T) {
		w := w.in(t)
		call := w.begin(request{tool: "steps"})
		task := w.started()
		call.abort()
		w.untilCancelled(task)
	})
	t.Run("before it was handed over", func(t *testing.T) {
		w := w.in(t)
		call := w.begin(request{tool: "long_steps"})
		task := w.started()
		call.abort()
		require.Eventually(t, func() bool { return call.isAnswered() || w.status(task) != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING }, patience, 50*time.Millisecond)
		if !call.isAnswered() { // else it was slow to go
			w.untilCancelled(task)
		}
	})
}

// round is an InputRequiredResult.
type round struct {
	ResultType    string
	InputRequests map[string]signals.InputRequest
	RequestState  string
}

// asked asserts that a call is answered with questions of these keys.
func asked(t testing.TB, r response, keys ...string) round {
	t.Helper()
	round := decode[round](t, r)
	require.Equal(t, "input_required", round.ResultType, r.Raw)
	assert.ElementsMatch(t, keys, slices.Collect(maps.Keys(round.InputRequests)), r.Raw)
	require.NotEmpty(t, round.RequestState)
	return round
}

// state is what travels sealed through the client.
type state struct {
	TaskID    string    `json:"taskId"`
	Running   bool      `json:"running"`
	Owner     string    `json:"owner"`
	Tool      string    `json:"tool"`
	Arguments []byte    `json:"arguments"`
	Expires   time.Time `json:"expires"`
}

func unseal(t testing.TB, sealed string) (opened state) {
	t.Helper()
	sealer, err := seal.New(stateKey)
	require.NoError(t, err)
	plain, err := sealer.Open(sealed)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(plain, &opened))
	return opened
}

func reseal(t testing.TB, s state) string {
	t.Helper()
	sealer, err := seal.New(stateKey)
	require.NoError(t, err)
	return sealer.Seal(encode(t, s))
}

const blue = `{"color-1":{"action":"accept","content":{"color":"blue"}}}`

func TestInputInTheMiddleOfACall(t *testing.T) {
	w := newWaiting(t, `{"elicitation":{}}`)
	t.Run("is asked and answered", func(t *testing.T) {
		w := w.in(t)
		first := asked(t, w.ask(request{tool: "ask"}), "color-1")
		assert.Equal(t, "elicitation/create", first.InputRequests["color-1"].Method)
		assert.JSONEq(t, `{"mode":"form","message":"Which color?","requestedSchema":{"type":"object","properties":{"color":{"type":"string"},"count":{"type":"integer"}},"required":["color"]}}`,
			string(first.InputRequests["color-1"].Params))
		retry := request{tool: "ask", state: first.RequestState, responses: blue}
		done := w.ask(retry)
		assert.Equal(t, "blue", text(t, done))

		// The answer may be lost, and the retry be sent again, as it was or otherwise.
		assert.Equal(t, done.Result, w.ask(retry).Result)
		retry.responses = strings.Replace(blue, "blue", "red", 1)
		assert.Equal(t, done.Result, w.ask(retry).Result)
		retry.responses = ""
		assert.Equal(t, done.Result, w.ask(retry).Result)
		assert.Equal(t, 1, w.count(unseal(t, first.RequestState).TaskID, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED), "nothing is signalled twice")
	})
	for action, want := range map[string]string{"decline": "decline", "cancel": "cancel"} {
		t.Run("may be refused by "+action, func(t *testing.T) {
			w := w.in(t)
			first := asked(t, w.ask(request{tool: "ask"}), "color-1")
			assert.Equal(t, want, text(t, w.ask(request{tool: "ask", state: first.RequestState, responses: fmt.Sprintf(`{"color-1":{"action":%q}}`, action)})))
		})
	}
	t.Run("is asked again when it is not given", func(t *testing.T) {
		w := w.in(t)
		first := asked(t, w.ask(request{tool: "ask"}), "color-1")
		for _, responses := range []string{"", `{}`, `{"other":{"action":"accept"}}`} {
			again := asked(t, w.ask(request{tool: "ask", state: first.RequestState, responses: responses}), "color-1")
			assert.Equal(t, unseal(t, first.RequestState).TaskID, unseal(t, again.RequestState).TaskID, "it is the same task")
			first = again
		}
		assert.Equal(t, "blue", text(t, w.ask(request{tool: "ask", state: first.RequestState, responses: strings.Replace(blue, "{", `{"other":{},`, 1)})))
	})
	t.Run("can be corrected", func(t *testing.T) {
		w := w.in(t)
		first := asked(t, w.ask(request{tool: "ask"}), "color-1")
		for _, wrong := range []struct{ responses, message string }{
			{`{"color-1":{"action":"accept","content":{"color":7}}}`, "color"},
			{`{"color-1":{"action":"accept"}}`, `no "content"`},
			{`{"color-1":{"action":"perhaps"}}`, "is not accept, decline or cancel"},
			{`{"color-1":"blue"}`, "is not a JSON object"},
			{`[]`, "params.inputResponses must be an object"},
		} {
			assertError(t, w.ask(request{tool: "ask", state: first.RequestState, responses: wrong.responses}), http.StatusOK, -32602, wrong.message)
		}
		assert.Equal(t, "blue", text(t, w.ask(request{tool: "ask", state: first.RequestState, responses: blue})))
		assert.Equal(t, 1, w.count(unseal(t, first.RequestState).TaskID, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED), "nothing wrong was sent")
	})
	t.Run("comes in parts", func(t *testing.T) {
		w := w.in(t)
		// Both questions are published at once, but may be seen one by one.
		first := decode[round](t, w.ask(request{tool: "ask_two"}))
		require.Contains(t, first.InputRequests, "first-1")
		second := asked(t, w.ask(request{tool: "ask_two", state: first.RequestState, responses: strings.Replace(blue, "color-1", "first-1", 1)}), "second-2")
		assert.Equal(t, "blue and red", text(t, w.ask(request{tool: "ask_two", state: second.RequestState, responses: `{"second-2":{"action":"accept","content":{"color":"red"}}}`})))
	})
	t.Run("goes on at another front end with the same key", func(t *testing.T) {
		w := w.in(t)
		other := w
		other.front = newFront(t, w.temporal, mcpbridge.Options{StateKey: stateKey}, func(b *mcpbridge.Bridge) error {
			return mcpbridge.AddTool(b, catalog.Tool{Name: "ask", TaskQueue: w.queue}, Ask)
		})
		other.capabilities = w.capabilities
		first := asked(t, w.ask(request{tool: "ask"}), "color-1")
		again := asked(t, other.ask(request{tool: "ask", state: first.RequestState}), "color-1")
		assert.Equal(t, "blue", text(t, w.ask(request{tool: "ask", state: again.RequestState, responses: blue})))
		assert.Equal(t, "blue", text(t, other.ask(request{tool: "ask", state: first.RequestState, responses: blue})))
	})
	t.Run("and the client may follow it", func(t *testing.T) {
		w := w.in(t)
		first := asked(t, w.ask(request{tool: "paint"}), "color-1")
		call := w.begin(request{tool: "paint", state: first.RequestState, responses: blue, progressToken: `"p"`})
		call.progressed("painting it blue")
		w.next(unseal(t, first.RequestState).TaskID)
		assert.Equal(t, "painted it blue", text(t, call.response()))
		assertProgress(t, call, `"p"`)
	})
}

// TestStateThatIsRefused: what comes back must be what was given, for the same call and not too late.
func TestStateThatIsRefused(t *testing.T) {
	w := newWaiting(t, `{"elicitation":{}}`)
	first := asked(t, w.ask(request{tool: "ask", arguments: `{}`}), "color-1")
	good := unseal(t, first.RequestState)
	assert.Equal(t, "anonymous", good.Owner)
	assert.True(t, good.Running)
	assert.Greater(t, time.Until(good.Expires), time.Hour, "a person may think about it")
	changed := func(change func(*state)) string {
		s := good
		change(&s)
		return reseal(t, s)
	}
	for _, test := range []struct {
		name, tool, arguments, state, message string
	}{
		{"altered", "ask", `{}`, first.RequestState[:len(first.RequestState)-2] + "AA", "is not one of this server's"},
		{"cut", "ask", `{}`, first.RequestState[:len(first.RequestState)/2], "is not one of this server's"},
		{"no state", "ask", `{}`, "nonsense", "is not one of this server's"},
		{"sealed text of another kind", "ask", `{}`, func() string {
			sealer, err := seal.New(stateKey)
			require.NoError(t, err)
			return sealer.Seal([]byte("nonsense"))
		}(), "cannot be read"},
		{"another tool's", "paint", `{}`, first.RequestState, "belongs to another call"},
		{"for other arguments", "echo", `{"Text":"x"}`, changed(func(s *state) { s.Tool = "echo" }), "belongs to another call"},
		{"another owner's", "ask", `{}`, changed(func(s *state) { s.Owner = "somebody" }), "belongs to another call"},
		{"expired", "ask", `{}`, changed(func(s *state) { s.Expires = time.Now().Add(-time.Second) }), "has expired"},
		{"of no task", "ask", `{}`, changed(func(s *state) { s.TaskID = uuid.NewString() }), "task not found"},
		{"of no possible task", "ask", `{}`, changed(func(s *state) { s.TaskID = "" }), "task not found"},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, responses := range []string{"", blue} {
				refused := w.in(t).ask(request{tool: test.tool, arguments: test.arguments, state: test.state, responses: responses})
				assertError(t, refused, http.StatusOK, -32602, test.message)
			}
		})
	}
	assert.Zero(t, w.count(good.TaskID, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED))
	assert.Equal(t, "blue", text(t, w.ask(request{tool: "ask", arguments: ` { } `, state: first.RequestState, responses: blue})))
}

// TestARetrySentTwice: the workflow of a call that several requests wait for goes on until the last of them goes away.
func TestARetrySentTwice(t *testing.T) {
	w := newWaiting(t, `{"elicitation":{}}`)
	begin := func(t *testing.T) (task string, retries []*sessionCall) {
		w := w.in(t)
		first := asked(t, w.ask(request{tool: "paint"}), "color-1")
		for range 2 {
			retry := w.begin(request{tool: "paint", state: first.RequestState, responses: blue, progressToken: `1`})
			retry.progressed("painting it blue")
			retries = append(retries, retry)
		}
		return unseal(t, first.RequestState).TaskID, retries
	}
	t.Run("one goes away", func(t *testing.T) {
		task, retries := begin(t)
		retries[0].abort()
		retries[0].wait("end", func() bool { return retries[0].ended })
		w.in(t).next(task)
		assert.Equal(t, "painted it blue", text(t, retries[1].response()))
		assert.Zero(t, w.in(t).count(task, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED))
	})
	t.Run("one after the other goes away", func(t *testing.T) {
		task, retries := begin(t)
		for _, retry := range retries {
			assert.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, w.in(t).status(task))
			retry.abort()
		}
		w.in(t).untilCancelled(task)
	})
	t.Run("both go away at once", func(t *testing.T) {
		for range 20 {
			task, retries := begin(t)
			for _, retry := range retries {
				go retry.abort()
			}
			w.in(t).untilCancelled(task)
		}
	})
}

// TestWhatTheClientCannotBeAsked: it is told what it lacks, and the workflow, which nobody could answer, is cancelled.
func TestWhatTheClientCannotBeAsked(t *testing.T) {
	w := newWaiting(t, `{}`)
	const (
		form  = `{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{"type":"object","properties":{}}}}`
		plain = `{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}`
		url   = `{"method":"elicitation/create","params":{"mode":"url","message":"?","url":"https://example.com","elicitationId":"1"}}`
		model = `{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":10}}`
		tools = `{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":10,"tools":[]}}`
		roots = `{"method":"roots/list"}`

		yes    = `{"action":"accept","content":{}}`
		spoken = `{"role":"assistant","model":"m","content":{"type":"text","text":"hello"}}`
		listed = `{"roots":[{"uri":"file:///a"}]}`
	)
	for _, test := range []struct{ question, answer, capabilities, lacks string }{
		{form, yes, `{"elicitation":{}}`, ""},
		{form, yes, `{"elicitation":{"form":{}}}`, ""},
		{form, yes, `{"sampling":{},"roots":{}}`, "elicitation.form"},
		{form, yes, `{"elicitation":{"url":{}}}`, "elicitation.form"},
		{plain, yes, `{"elicitation":{}}`, ""},
		{plain, yes, `{"elicitation":{"url":{}}}`, "elicitation.form"},
		{url, `{"action":"accept"}`, `{"elicitation":{"url":{}}}`, ""},
		{url, yes, `{"elicitation":{}}`, "elicitation.url"},
		{url, yes, `{"elicitation":{"form":{}}}`, "elicitation.url"},
		{url, yes, `{}`, "elicitation.url"},
		{model, spoken, `{"sampling":{}}`, ""},
		{model, spoken, `{"elicitation":{}}`, "sampling"},
		{tools, spoken, `{"sampling":{"tools":{}}}`, ""},
		{tools, spoken, `{"sampling":{}}`, "sampling.tools"},
		{tools, spoken, `{}`, "sampling"},
		{roots, listed, `{"roots":{}}`, ""},
		{roots, listed, `{"elicitation":{},"sampling":{}}`, "roots"},
		{`{"method":"no/such","params":{}}`, `{}`, `{"elicitation":{},"sampling":{},"roots":{}}`, "no/such"},
	} {
		t.Run(test.question+" with "+test.capabilities, func(t *testing.T) {
			w := w.in(t).as(test.capabilities)
			if test.lacks == "" {
				first := asked(t, w.ask(request{tool: "ask_once", arguments: test.question}), "question")
				assert.JSONEq(t, test.question, string(encode(t, first.InputRequests["question"])))
				done := w.ask(request{tool: "ask_once", arguments: test.question, state: first.RequestState, responses: `{"question":` + test.answer + `}`})
				assert.JSONEq(t, test.answer, string(decode[struct{ StructuredContent json.RawMessage }](t, done).StructuredContent))
				return
			}
			before := w.cancelled()
			refused := w.ask(request{tool: "ask_once", arguments: test.question})
			require.Contains(t, refused.Raw, "(capability "+test.lacks+")")
			assertToolError(t, refused, test.lacks)
			require.Eventually(t, func() bool { return w.cancelled() == before+1 }, patience, 200*time.Millisecond, "the workflow is not cancelled")
		})
	}
}

// cancelled is how many workflows of the test have been cancelled.
func (w waiting) cancelled() int64 {
	w.t.Helper()
	response, err := w.temporal.CountWorkflow(w.t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
		Query: fmt.Sprintf("TaskQueue = %q AND ExecutionStatus = 'Canceled'", w.queue),
	})
	require.NoError(w.t, err)
	return response.GetCount()
}

// stranger is a client that knows no tasks, in whatever era.
type stranger struct {
	waiting
	begin func(request) *sessionCall
	// session is the client's, nil if it is a modern one.
	session *session
}

func (s stranger) call(tool, arguments string) response {
	s.t.Helper()
	return s.begin(request{tool: tool, arguments: arguments}).response()
}

// modern is a client of 2026-07-28.
func (w waiting) modern(t testing.TB, capabilities string) stranger {
	w = w.in(t).as(capabilities)
	return stranger{w, w.begin, nil}
}

// legacy is a client of 2025-06-18.
func (w waiting) legacy(t testing.TB, capabilities string) stranger {
	w = w.in(t)
	s := openSession(w.front, june2025, capabilities)
	return stranger{w, func(r request) *sessionCall {
		params := map[string]any{"name": r.tool, "arguments": json.RawMessage(r.arguments)}
		if r.progressToken != "" {
			params["_meta"] = map[string]any{"progressToken": json.RawMessage(r.progressToken)}
		}
		return s.start("tools/call", params)
	}, &s}
}

// handover is what a client without tasks gets instead of a task.
type handover struct {
	Content           []struct{ Text string }
	StructuredContent struct {
		TaskID, Status, StatusMessage string
		InputRequests                 map[string]signals.InputRequest
	}
	IsError bool
}

func handedOver(t testing.TB, r response) (handed handover, text string) {
	t.Helper()
	handed = decode[handover](t, r)
	assert.False(t, handed.IsError, r.Raw)
	require.Len(t, handed.Content, 1, r.Raw)
	require.NotEmpty(t, handed.StructuredContent.TaskID, r.Raw)
	assert.Contains(t, handed.Content[0].Text, "runs as task "+handed.StructuredContent.TaskID)
	return handed, handed.Content[0].Text
}

// TestHandover: clients that know no tasks go on with one by tools.
func TestHandover(t *testing.T) {
	w := newWaiting(t, `{}`)
	for era, client := range map[string]func(testing.TB, string) stranger{"2026-07-28": w.modern, june2025: w.legacy} {
		t.Run(era, func(t *testing.T) {
			for name, test := range map[string]func(*testing.T, func(testing.TB, string) stranger){
				"of a long call": handoverOfALongCall, "of a quick call": handoverOfAQuickCall, "questions": handoverQuestions,
				"cancel": handoverCancel, "bad arguments": handoverBadArguments, "wait in vain": handoverWaitInVain,
			} {
				t.Run(name, func(t *testing.T) { test(t, client) })
			}
		})
	}
	t.Run("asks by new rounds", func(t *testing.T) { handoverRounds(t, w) })
	t.Run("asks in a session", func(t *testing.T) { handoverInASession(t, w) })
}

func handoverOfALongCall(t *testing.T, client func(testing.TB, string) stranger) {
	c := client(t, `{}`)
	begin := time.Now()
	handed, told := handedOver(t, c.call("long_steps", `{}`))
	assert.GreaterOrEqual(t, time.Since(begin), time.Second)
	id := handed.StructuredContent.TaskID
	assert.True(t, strings.HasPrefix(told, "long_steps runs as task "), told)
	assert.True(t, strings.HasSuffix(told, fmt.Sprintf(".\nIt goes on whether or not anyone waits. Call task_wait with taskId %q for its result, or task_cancel to stop it.", id)), told)
	assert.Equal(t, "working", handed.StructuredContent.Status)

	for _, seconds := range []string{"0", "0.01"} {
		again, _ := handedOver(t, c.call("task_wait", fmt.Sprintf(`{"taskId":%q,"seconds":%s}`, id, seconds)))
		assert.Equal(t, id, again.StructuredContent.TaskID)
		assert.Equal(t, "working", again.StructuredContent.Status)
	}
	wait := c.begin(request{tool: "task_wait", arguments: fmt.Sprintf(`{"taskId":%q}`, id), progressToken: `"p"`})
	for step := 1; step <= 3; step++ {
		wait.progressed(fmt.Sprint("step ", step))
		c.next(id)
	}
	assert.Equal(t, "three steps", text(t, wait.response()))
	assertProgress(t, wait, `"p"`)
	assert.Equal(t, "three steps", text(t, c.call("task_wait", fmt.Sprintf(`{"taskId":%q,"seconds":0}`, id))), "it has ended")
	ended, told := handedOver(t, c.call("task_cancel", fmt.Sprintf(`{"taskId":%q}`, id)))
	assert.Equal(t, "completed", ended.StructuredContent.Status)
	assert.Contains(t, told, "It has ended (completed). Call task_wait")
}

func handoverOfAQuickCall(t *testing.T, client func(testing.TB, string) stranger) {
	c := client(t, `{}`)
	require.Eventually(t, func() bool { // a busy machine may be too slow
		return strings.Contains(string(c.call("long_echo", `{"Text":"quick"}`).Result), `"structuredContent":{"Text":"quick"}`)
	}, patience, time.Millisecond)
}

// openQuestion starts a task that asks for a color and returns when it does.
func (s stranger) openQuestion(t testing.TB) (id, told string) {
	t.Helper()
	handed, told := handedOver(t, s.call("long_paint", `{}`))
	id = handed.StructuredContent.TaskID
	if handed.StructuredContent.Status != "input_required" { // a busy machine may be too slow
		handed, told = handedOver(t, s.call("task_wait", fmt.Sprintf(`{"taskId":%q}`, id)))
	}
	assert.Equal(t, "input_required", handed.StructuredContent.Status)
	assert.Equal(t, "elicitation/create", handed.StructuredContent.InputRequests["color-1"].Method)
	return id, told
}

func handoverQuestions(t *testing.T, client func(testing.TB, string) stranger) {
	c := client(t, `{}`)
	id, told := c.openQuestion(t)
	assert.Contains(t, told, "It waits for answers:\n- color-1 (elicitation/create): Which color? Form: {")
	assert.Contains(t, told, fmt.Sprintf("then call task_answer with taskId %q and the answers by key, and then task_wait.", id))
	_, again := handedOver(t, c.call("task_wait", fmt.Sprintf(`{"taskId":%q}`, id)))
	assert.Equal(t, told, again)

	answer := func(answers string) response {
		return c.call("task_answer", fmt.Sprintf(`{"taskId":%q,"answers":%s}`, id, answers))
	}
	assert.Contains(t, errorText(t, answer(`{"color-1":{"action":"accept","content":{"color":7}}}`)), "color")
	_, again = handedOver(t, answer(`{"other":{"action":"accept"}}`))
	assert.Equal(t, told, again, "unknown keys are ignored")
	handed, _ := handedOver(t, answer(blue))
	assert.Equal(t, "working", handed.StructuredContent.Status)
	handedOver(t, answer(strings.Replace(blue, "blue", "red", 1)))
	c.next(id)
	assert.Equal(t, "painted it blue", text(t, c.call("task_wait", fmt.Sprintf(`{"taskId":%q}`, id))), "the first answer wins")
}

func handoverCancel(t *testing.T, client func(testing.TB, string) stranger) {
	c := client(t, `{}`)
	handed, _ := handedOver(t, c.call("long_steps", `{}`))
	id := handed.StructuredContent.TaskID
	_, told := handedOver(t, c.call("task_cancel", fmt.Sprintf(`{"taskId":%q}`, id)))
	assert.Regexp(t, "It has been asked to stop. Call task_wait|It has ended \\(cancelled\\)", told)
	assert.Contains(t, errorText(t, c.call("task_wait", fmt.Sprintf(`{"taskId":%q}`, id))), "the tool's workflow was cancelled")
	c.untilCancelled(id)
}

func handoverBadArguments(t *testing.T, client func(testing.TB, string) stranger) {
	c := client(t, `{}`)
	for _, test := range []struct{ tool, arguments, message string }{
		{"task_wait", `{}`, "taskId is missing"},
		{"task_cancel", `{"taskId":""}`, "taskId is missing"},
		{"task_answer", `{"answers":{"a":{}}}`, "taskId is missing"},
		{"task_wait", `{"taskId":5}`, "do not fit the input schema of task_wait"},
		{"task_wait", `{"taskId":"x","Seconds":5}`, "do not fit the input schema of task_wait"},
		{"task_wait", `{"taskId":"x","seconds":-1}`, "it must be from 0 to 600"},
		{"task_wait", `{"taskId":"x","seconds":601}`, "it must be from 0 to 600"},
		{"task_wait", `{"taskId":"x","seconds":"5"}`, "do not fit the input schema of task_wait"},
		{"task_answer", `{"taskId":"x"}`, "answers is missing"},
		{"task_answer", `{"taskId":"x","answers":{}}`, "answers is missing"},
		{"task_answer", `{"taskId":"x","answers":[]}`, "do not fit the input schema of task_answer"},
		{"task_cancel", `{"taskId":"x","reason":"y"}`, "do not fit the input schema of task_cancel"},
		{"task_wait", `{"taskId":"x"}`, "task not found"},
		{"task_answer", `{"taskId":"x","answers":{"a":{}}}`, "task not found"},
		{"task_cancel", `{"taskId":"x"}`, "task not found"},
		{"task_wait", `{"taskId":"é"}`, "task not found"},
	} {
		assert.Contains(t, errorText(t, c.call(test.tool, test.arguments)), test.message, "%s %s", test.tool, test.arguments)
	}
}

// handoverWaitInVain: whoever waits for a task and goes away does not end it.
func handoverWaitInVain(t *testing.T, client func(testing.TB, string) stranger) {
	c := client(t, `{}`)
	handed, _ := handedOver(t, c.call("long_steps", `{}`))
	id := handed.StructuredContent.TaskID
	wait := c.begin(request{tool: "task_wait", arguments: fmt.Sprintf(`{"taskId":%q}`, id), progressToken: `1`})
	wait.progressed("step 1")
	wait.abort()
	wait.wait("end", func() bool { return wait.ended })
	for range 3 {
		c.next(id)
	}
	assert.Equal(t, "three steps", text(t, c.call("task_wait", fmt.Sprintf(`{"taskId":%q}`, id))))
	assert.Zero(t, c.count(id, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED))
}

// handoverRounds: task_wait asks a modern client that can be asked, by new rounds of the call.
func handoverRounds(t *testing.T, w waiting) {
	id, _ := w.modern(t, `{}`).openQuestion(t)
	c := w.modern(t, `{"elicitation":{}}`)
	wait := request{tool: "task_wait", arguments: fmt.Sprintf(`{"taskId":%q,"seconds":30}`, id)}
	first := asked(t, c.ask(wait), "color-1")
	wait.state = first.RequestState
	assert.Equal(t, "color-1", slices.Collect(maps.Keys(asked(t, c.ask(wait), "color-1").InputRequests))[0], "asked again")

	stray := wait
	stray.arguments, stray.responses = `{"taskId":"other"}`, blue
	assertError(t, c.ask(stray), http.StatusOK, -32602, "belongs to another call")
	wait.responses = `{"color-1":{"action":"accept","content":{}}}`
	assertError(t, c.ask(wait), http.StatusOK, -32602, "color")
	wait.responses = blue
	waiting := c.begin(wait)
	c.next(id)
	assert.Equal(t, "painted it blue", text(t, waiting.response()))
	assert.Equal(t, "painted it blue", text(t, c.ask(wait)), "sent again")
	assert.Equal(t, 2, c.count(id, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED), "the answer, once, and next")
}

// handoverInASession: questions come on the stream of the call, and can be answered when the call has been handed over.
func handoverInASession(t *testing.T, w waiting) {
	c := w.legacy(t, `{"elicitation":{}}`)
	call := c.begin(request{tool: "slow_paint", arguments: `{}`})
	first := call.await("elicitation/create")
	handed, told := handedOver(t, call.response())
	id := handed.StructuredContent.TaskID
	assert.Contains(t, told, "color-1 (elicitation/create): Which color?")

	wait := c.begin(request{tool: "task_wait", arguments: fmt.Sprintf(`{"taskId":%q,"seconds":30}`, id), progressToken: `1`})
	second := wait.await("elicitation/create")
	assert.NotEqual(t, first.ID, second.ID)
	assert.JSONEq(t, string(first.Params), string(second.Params))
	c.session.reply(first, answered("blue"))
	wait.progressed("painting it blue")
	status, _ := c.session.replyLate(second, answered("red"))
	assert.Equal(t, http.StatusAccepted, status)
	c.next(id)
	assert.Equal(t, "painted it blue", text(t, wait.response()))

	other, _ := w.legacy(t, `{}`).openQuestion(t)
	wait = c.begin(request{tool: "task_wait", arguments: fmt.Sprintf(`{"taskId":%q,"seconds":30}`, other)})
	c.session.reply(wait.await("elicitation/create"), answered("green"))
	c.next(other)
	assert.Equal(t, "painted it green", text(t, wait.response()))
}

// TestWhoSeesTheCompanions: the tools for clients without tasks are shown to those alone; and these do not see the output
// schema of a tool whose call may return something else.
func TestWhoSeesTheCompanions(t *testing.T) {
	temporal := testenv.Client(t)
	f := newFront(t, temporal, mcpbridge.Options{}, waitingTools(t)...)
	none := newFront(t, temporal, mcpbridge.Options{}, tool(t, named("steps"), Steps))
	companions := []string{"task_wait", "task_answer", "task_cancel"}
	type listed struct {
		Tools []struct {
			Name         string
			OutputSchema json.RawMessage
		}
	}
	for _, test := range []struct {
		name       string
		list       func(*testing.T, front) response
		knowsTasks bool
	}{
		{"modern", func(t *testing.T, f front) response { return seenBy(f, t, `{}`).send("tools/list", nil) }, false},
		{"modern with tasks", func(t *testing.T, f front) response { return seenBy(f, t, withTasks).send("tools/list", nil) }, true},
		{march2025, func(t *testing.T, f front) response {
			return openSession(seenBy(f, t, ""), march2025, `{}`).send("tools/list", nil)
		}, false},
		{june2025, func(t *testing.T, f front) response {
			return openSession(seenBy(f, t, ""), june2025, `{}`).send("tools/list", nil)
		}, false},
		{november2025, func(t *testing.T, f front) response {
			return openSession(seenBy(f, t, ""), november2025, `{}`).send("tools/list", nil)
		}, false},
		{november2025 + " with tasks", func(t *testing.T, f front) response {
			return openSession(seenBy(f, t, ""), november2025, `{"tasks":{}}`).send("tools/list", nil)
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			schemas := map[string]bool{}
			for _, tool := range decode[listed](t, test.list(t, f)).Tools {
				schemas[tool.Name] = tool.OutputSchema != nil
			}
			for _, name := range companions {
				_, shown := schemas[name]
				assert.Equal(t, !test.knowsTasks, shown, name)
			}
			assert.True(t, schemas["echo"], "its calls return nothing else")
			assert.Equal(t, test.knowsTasks, schemas["long_echo"])
			for _, tool := range decode[listed](t, test.list(t, none)).Tools {
				assert.NotContains(t, companions, tool.Name, "no tool hands over")
			}
		})
	}
	t.Run("who sees none can call none", func(t *testing.T) {
		for _, name := range companions {
			assertRefused(t, seenBy(f, t, withTasks).call(name, `{"taskId":"x"}`), -32602, fmt.Sprintf("unknown tool %q", name))
			assertRefused(t, seenBy(none, t, `{}`).call(name, `{"taskId":"x"}`), -32602, fmt.Sprintf("unknown tool %q", name))
		}
	})
}

// seenBy is a front end as a client with these capabilities sees it.
func seenBy(f front, t testing.TB, capabilities string) front {
	f.t, f.capabilities = t, capabilities
	return f
}
