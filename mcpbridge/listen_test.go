package mcpbridge_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"

	"taskbridge/internal/devserver"
	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge"
	"taskbridge/mcpbridge/catalog"
)

// OneStep ends when the test says "next", with a text of a length.
func OneStep(ctx workflow.Context, in struct {
	Bytes int `json:"bytes,omitempty"`
}) (string, error) {
	err := nextStep(ctx)
	return strings.Repeat("x", in.Bytes), err
}

// newListening is a front end for clients that listen to tasks.
func newListening(t *testing.T, o mcpbridge.Options) waiting {
	t.Helper()
	temporal := testenv.Client(t)
	newPatientWorker(t, temporal, Steps, Ask, OneStep, Echo)
	return waiting{newFront(t, temporal, o, listenTools(t)...), temporal, t.Name()}
}

func listenTools(t testing.TB) []func(*mcpbridge.Bridge) error {
	return []func(*mcpbridge.Bridge) error{
		tool(t, named("steps"), Steps), tool(t, named("ask"), Ask), tool(t, named("one_step"), OneStep),
		tool(t, func(tool *catalog.Tool) { tool.Name, tool.InputSchema = "echo", json.RawMessage(`{"type":"object"}`) }, Echo),
	}
}

// subscription is what comes for a subscriptions/listen request.
type subscription struct {
	*stream
	id    string // JSON
	abort context.CancelFunc
}

// listen opens a subscription, with an ID and a filter in JSON, on a connection of its own.
func (f front) listen(id, filter string) subscription {
	f.t.Helper()
	ctx, abort := context.WithCancel(context.Background())
	s := subscription{newStream(f.t), id, abort}
	ended := make(chan struct{})
	f.t.Cleanup(func() { abort(); <-ended })
	go func() {
		defer close(ended)
		defer abort()
		s.finish(f.read(ctx, []byte(f.listenRequest(id, filter)), headers("subscriptions/listen", ""), s.stream))
	}()
	return s
}

func (f front) listenRequest(id, filter string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":%s,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}`, id, filter, f.capabilities)
}

// listenTo opens a subscription to tasks, and takes its acknowledgement.
func (f front) listenTo(ids ...string) subscription {
	f.t.Helper()
	filter := fmt.Sprintf(`{"taskIds":%s}`, encode(f.t, ids))
	s := f.listen(strconv.FormatInt(lastID.Add(1), 10), filter)
	s.acknowledged(filter)
	return s
}

// acknowledged takes the first message: the acknowledgement with this filter and nothing else.
func (s subscription) acknowledged(filter string) {
	s.t.Helper()
	first := s.next()
	require.Equal(s.t, "notifications/subscriptions/acknowledged", first.Method, "%s", first.Params)
	assert.Equal(s.t, fmt.Sprintf(`{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":%s}`, s.id, filter), string(first.Params))
}

// news takes the next notification, which must be about a task.
func (s subscription) news() task {
	s.t.Helper()
	now, _ := s.rawNews()
	return now
}

// rawNews is news with the members of the notification but those that belong to the subscription.
func (s subscription) rawNews() (task, map[string]json.RawMessage) {
	s.t.Helper()
	m := s.next()
	return taskIn(s.t, m, s.id)
}

func taskIn(t testing.TB, m wireMessage, id string) (now task, members map[string]json.RawMessage) {
	t.Helper()
	require.Equal(t, "notifications/tasks", m.Method, "%s", m.Params)
	require.Nil(t, m.ID)
	require.NoError(t, json.Unmarshal(m.Params, &now))
	require.NoError(t, json.Unmarshal(m.Params, &members))
	assert.Equal(t, `{"io.modelcontextprotocol/subscriptionId":`+id+`}`, string(members["_meta"]))
	delete(members, "_meta")
	return now, members
}

// untilNews takes news of a task until it is as wanted.
func (s subscription) untilNews(what string, wanted func(task) bool) task {
	s.t.Helper()
	for {
		if now := s.news(); wanted(now) {
			return now
		}
	}
}

func (s subscription) untilStatus(status string) task {
	s.t.Helper()
	return s.untilNews(status, func(now task) bool { return now.Status == status })
}

// closes waits for the result which says that the subscription ended gracefully, with nothing untaken before it.
func (s subscription) closes() {
	s.t.Helper()
	s.wait("response", func() bool { return s.answered != nil })
	assertClosed(s.t, s.answered.Raw, s.id)
	assert.Equal(s.t, len(s.messages), s.taken, "%s", s)
	s.wait("end", func() bool { return s.ended })
}

func assertClosed(t testing.TB, raw, id string) {
	t.Helper()
	assert.Regexp(t, `^\{"jsonrpc":"2.0","id":`+id+`,"result":\{"resultType":"complete","_meta":\{"io.modelcontextprotocol/subscriptionId":`+id+
		`,"io.modelcontextprotocol/serverInfo":\{"name":"taskbridge",[^{}]*\}\}\}\}$`, raw)
}

// getMembers is a task as tasks/get shows it, without what makes that a result.
func (f front) getMembers(id string) (members map[string]json.RawMessage) {
	f.t.Helper()
	members = decode[map[string]json.RawMessage](f.t, f.send("tasks/get", map[string]any{"taskId": id}))
	delete(members, "resultType")
	delete(members, "_meta")
	return members
}

func TestListenTellsEveryChange(t *testing.T) {
	w := newListening(t, mcpbridge.Options{})
	id := w.create("steps", `{}`).TaskID
	w.until(id, func(now task) bool { return now.StatusMessage == "step 1" })
	s := w.listenTo(id)
	for step := 1; step <= 3; step++ {
		message := fmt.Sprintf("step %d", step)
		now, members := s.rawNews()
		for now.StatusMessage != message { // a state between two steps may show
			now, members = s.rawNews()
		}
		assert.Equal(t, "working", now.Status)
		assert.Equal(t, w.getMembers(id), members, "as tasks/get has it")
		w.next(id)
	}
	done, members := s.rawNews()
	for done.Status != "completed" {
		done, members = s.rawNews()
	}
	assert.Equal(t, w.getMembers(id), members, "as tasks/get has it")
	assert.JSONEq(t, `{"resultType":"complete","content":[{"type":"text","text":"three steps"}]}`, string(members["result"]))
	s.closes()
}

func TestListenTellsQuestions(t *testing.T) {
	w := newListening(t, mcpbridge.Options{})
	id := w.create("ask", `{}`).TaskID
	s := w.listenTo(id)
	asking := s.untilStatus("input_required")
	assert.Contains(t, asking.InputRequests, "color-1")
	decode[struct{}](t, w.update(id, `{"color-1":{"action":"accept","content":{"color":"red"}}}`))
	assert.Contains(t, string(s.untilStatus("completed").Result), "red")
	s.closes()
}

// TestListenAgrees: to the tasks that are this caller's and exist, each once and in their order; to what the base protocol
// has besides; to nothing else.
func TestListenAgrees(t *testing.T) {
	w := newListening(t, mcpbridge.Options{})
	one, two := w.create("one_step", `{}`).TaskID, w.create("one_step", `{}`).TaskID
	done := w.create("echo", `{}`).TaskID
	w.untilStatus(done, "completed")
	foreign := uuid.NewString()
	_, err := w.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "mcp:someone:" + foreign, TaskQueue: w.queue}, "OneStep", struct{}{})
	require.NoError(t, err)
	unknown := uuid.NewString()
	all := encode(t, []string{two, unknown, foreign, "someone:" + foreign, "", "../x", one, two, done})

	s := w.listen(`"all"`, fmt.Sprintf(`{"taskIds":%s,"unheardOf":true}`, all))
	s.acknowledged(fmt.Sprintf(`{"taskIds":[%q,%q,%q]}`, two, one, done))
	var told []string
	for range 3 {
		told = append(told, s.news().TaskID)
	}
	assert.Equal(t, []string{two, one, done}, told)
	w.next(one)
	w.next(two)
	assert.ElementsMatch(t, []string{one, two}, []string{s.untilStatus("completed").TaskID, s.untilStatus("completed").TaskID})
	s.closes()

	s = w.listen("1", fmt.Sprintf(`{"taskIds":[%q,%q]}`, unknown, foreign))
	s.acknowledged(`{"taskIds":[]}`)
	s.closes()
	s = w.listen("1", `{}`)
	s.acknowledged(`{}`)
	s.closes()
}

func TestListenRefuses(t *testing.T) {
	w := newListening(t, mcpbridge.Options{})
	many := encode(t, make([]string, 10_001))
	for _, test := range []struct {
		name, capabilities, filter string
		status, code               int
		message                    string
	}{
		{"no capability", `{}`, `{"taskIds":["x"]}`, 400, -32021, "io.modelcontextprotocol/tasks"},
		{"no capability for some of it", `{}`, `{"taskIds":[],"toolsListChanged":true}`, 400, -32021, "io.modelcontextprotocol/tasks"},
		{"no array", withTasks, `{"taskIds":"x"}`, 400, -32602, "params/notifications/taskIds has the wrong type: string"},
		{"no string", withTasks, `{"taskIds":["x",7]}`, 400, -32602, "params/notifications/taskIds/1 has the wrong type: number"},
		{"no boolean", withTasks, `{"toolsListChanged":"yes"}`, 400, -32602, "params/notifications/toolsListChanged has the wrong type: string"},
		{"no object", withTasks, `[]`, 400, -32602, "params/notifications has the wrong type: ["},
		{"no filter", withTasks, `null`, 200, -32602, "params.notifications is missing"},
		{"too many tasks", withTasks, `{"taskIds":` + string(many) + `}`, 200, -32602, "params.notifications.taskIds has 10001 entries"},
		{"too many resources", withTasks, `{"resourceSubscriptions":` + string(many) + `}`, 200, -32602, "params.notifications.resourceSubscriptions has 10001 entries"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := seenBy(w.front, t, test.capabilities)
			answer := f.post(f.listenRequest("1", test.filter), headers("subscriptions/listen", ""))
			assertError(t, answer, test.status, test.code, test.message)
			if test.code == -32021 {
				assert.JSONEq(t, `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`, string(answer.Error.Data))
			}
		})
	}
	header := headers("subscriptions/listen", "")
	header.Set("Accept", "application/json")
	assertError(t, w.post(w.listenRequest("1", `{"taskIds":[]}`), header), http.StatusNotAcceptable, -32600, "text/event-stream")
}

// TestListenIDs: a subscription's ID is that of its request, as the client wrote it.
func TestListenIDs(t *testing.T) {
	w := newListening(t, mcpbridge.Options{})
	done := w.create("echo", `{}`).TaskID
	w.untilStatus(done, "completed")
	for _, id := range []string{`1`, `0`, `-7`, `"1"`, `"eins \"2\" é"`, `9007199254740993`, `123456789012345678901234567890`, `""`} {
		s := seenBy(w.front, t, withTasks).listen(id, fmt.Sprintf(`{"taskIds":[%q]}`, done))
		s.acknowledged(fmt.Sprintf(`{"taskIds":[%q]}`, done))
		assert.Equal(t, "completed", s.news().Status)
		s.wait("response", func() bool { return s.answered != nil })
		assert.Equal(t, id, string(s.answered.ID))
	}
}

// TestListenToTasksAndLists: one subscription for both; each is told what it asked for.
func TestListenToTasksAndLists(t *testing.T) {
	temporal := testenv.Client(t)
	newPatientWorker(t, temporal, OneStep)
	var bridge *mcpbridge.Bridge
	f := newFront(t, temporal, mcpbridge.Options{ServerOptions: &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	}}, append(listenTools(t), func(b *mcpbridge.Bridge) error {
		bridge = b
		b.Server().AddResource(&mcp.Resource{URI: "file:///a", Name: "a"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{}, nil
		})
		return nil
	})...)
	w := waiting{f, temporal, t.Name()}
	id := w.create("one_step", `{}`).TaskID

	tasksOnly := w.listenTo(id)
	s := w.listen(`"both"`, fmt.Sprintf(`{"taskIds":[%q],"toolsListChanged":true,"resourceSubscriptions":["file:///a"]}`, id))
	s.acknowledged(fmt.Sprintf(`{"resourceSubscriptions":["file:///a"],"taskIds":[%q],"toolsListChanged":true}`, id))
	toolsOnly := w.listen(`9007199254740993`, `{"toolsListChanged":true}`)
	toolsOnly.acknowledged(`{"toolsListChanged":true}`)
	assert.Equal(t, "working", s.news().Status)

	require.NoError(t, mcpbridge.AddTool(bridge, catalog.Tool{Name: "another", TaskQueue: t.Name(), Description: "test"}, Steps))
	const meta = `{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}%s}`
	assert.JSONEq(t, fmt.Sprintf(meta, `"both"`, ""), string(s.await("notifications/tools/list_changed").Params))
	assert.Equal(t, fmt.Sprintf(meta, `9007199254740993`, ""), string(toolsOnly.next().Params))
	require.NoError(t, bridge.Server().ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "file:///a"}))
	assert.JSONEq(t, fmt.Sprintf(meta, `"both"`, `,"uri":"file:///a"`), string(s.await("notifications/resources/updated").Params))
	w.next(id)
	s.untilStatus("completed")
	tasksOnly.untilStatus("completed")
	tasksOnly.closes()

	require.NoError(t, mcpbridge.AddTool(bridge, catalog.Tool{Name: "one_more", TaskQueue: t.Name(), Description: "test"}, Steps))
	s.await("notifications/tools/list_changed") // it goes on, as lists have no end
	toolsOnly.await("notifications/tools/list_changed")
	assert.False(t, s.isAnswered())
	assert.False(t, toolsOnly.isAnswered())
}

func TestListenEndsWhenTheServerDoes(t *testing.T) {
	temporal := testenv.Client(t)
	newPatientWorker(t, temporal, OneStep)
	bridge := newBridge(t, temporal, mcpbridge.Options{}, listenTools(t)...)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- bridge.Serve(ctx, listener) }()
	f := front{t: t, url: "http://" + listener.Addr().String(), capabilities: withTasks}
	id := f.create("one_step", `{}`).TaskID
	s := f.listenTo(id)
	assert.Equal(t, "working", s.news().Status)
	tools := f.listen("1", `{"toolsListChanged":true}`)
	tools.acknowledged(`{"toolsListChanged":true}`)
	stop()
	s.closes()
	tools.closes()
	require.NoError(t, <-served)
}

// TestListenToADeletedTask: there is nothing to tell of it any more.
func TestListenToADeletedTask(t *testing.T) {
	w := newListening(t, mcpbridge.Options{})
	gone, stays := w.create("one_step", `{}`).TaskID, w.create("one_step", `{}`).TaskID
	s := w.listenTo(gone, stays)
	both := []string{s.news().TaskID, s.news().TaskID}
	assert.Equal(t, []string{gone, stays}, both)
	_, err := w.temporal.WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: "mcp:anonymous:" + gone},
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return w.send("tasks/get", map[string]any{"taskId": gone}).Error != nil }, patience, 100*time.Millisecond)
	w.next(stays)
	s.untilNews("the end of the other", func(now task) bool { return now.TaskID == stays && now.Status == "completed" })
	s.wait("response", func() bool { return s.answered != nil }) // though it takes Temporal a while to delete
	assertClosed(t, s.answered.Raw, s.id)
}

// TestListenToATaskThatIsNotKept: its end is told all the same.
func TestListenToATaskThatIsNotKept(t *testing.T) {
	temporal := testenv.Client(t)
	newPatientWorker(t, temporal, OneStep)
	f := newFront(t, temporal, mcpbridge.Options{}, tool(t, func(tool *catalog.Tool) {
		tool.Name, tool.Retention = "brief", time.Second
	}, OneStep))
	w := waiting{f, temporal, t.Name()}
	id := w.create("brief", `{}`).TaskID
	s := w.listenTo(id)
	w.next(id)
	s.untilStatus("completed")
	s.closes()
}

// TestListenStorm: whoever begins to listen to a task while it ends is told that it has.
func TestListenStorm(t *testing.T) {
	const times, clients = 1000, 16
	w := newListening(t, mcpbridge.Options{})
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		missed int
		before int           // listened before the end
		delay  time.Duration // from the signal to the request; it finds the moment of the end
	)
	storm := func() {
		f := seenBy(w.front, t, withTasks)
		id := f.create("one_step", `{}`).TaskID
		mu.Lock()
		wait := delay
		mu.Unlock()
		signalled := make(chan struct{})
		go func() {
			defer close(signalled)
			assert.NoError(t, w.temporal.SignalWorkflow(context.Background(), "mcp:anonymous:"+id, "", "next", nil))
		}()
		time.Sleep(wait)
		answer := f.listenOnce(id)
		<-signalled
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(answer, `"status":"working"`) {
			before++
			delay += 500 * time.Microsecond
		} else {
			delay = max(0, delay-500*time.Microsecond)
		}
		if strings.Count(answer, `"status":"completed"`) != 1 || !strings.Contains(lastOf(answer, 2), `"status":"completed"`) {
			missed++
			t.Log(answer)
		}
	}
	for n := range clients {
		all.Go(func() {
			for i := n; i < times; i += clients {
				storm()
			}
		})
	}
	all.Wait()
	assert.Zero(t, missed)
	t.Logf("%d of %d began to listen before the end", before, times)
	assert.Greater(t, before, times/20)
	assert.Less(t, before, times*19/20)
}

// listenOnce is all that comes on a subscription to a task, until it ends.
func (f front) listenOnce(id string) string {
	f.t.Helper()
	request, err := http.NewRequest(http.MethodPost, f.url+"/mcp", strings.NewReader(f.listenRequest("1", fmt.Sprintf(`{"taskIds":[%q]}`, id))))
	require.NoError(f.t, err)
	request.Header = headers("subscriptions/listen", "")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(f.t, err)
	defer func() { _ = answer.Body.Close() }()
	all, err := io.ReadAll(answer.Body)
	require.NoError(f.t, err)
	return string(all)
}

// lastOf is the nth event from the end.
func lastOf(events string, n int) string {
	all := strings.Split(strings.TrimSpace(events), "\n\n")
	return all[max(0, len(all)-n)]
}

// TestListenerThatReadsNothing: it holds up nobody, and costs no copies of what there is to tell.
func TestListenerThatReadsNothing(t *testing.T) {
	w := newListening(t, mcpbridge.Options{})
	const large, bytesEach = 48, 1 << 20
	var ids []string
	for range large {
		ids = append(ids, w.create("one_step", fmt.Sprintf(`{"bytes":%d}`, bytesEach)).TaskID)
	}
	first, last := ids[0], ids[large-1]
	deaf, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	require.NoError(t, err)
	defer func() { _ = deaf.Close() }()
	require.NoError(t, deaf.(*net.TCPConn).SetReadBuffer(4096))
	body := w.listenRequest("1", fmt.Sprintf(`{"taskIds":%s}`, encode(t, ids)))
	request, err := http.NewRequest(http.MethodPost, w.url+"/mcp", strings.NewReader(body))
	require.NoError(t, err)
	request.Header = headers("subscriptions/listen", "")
	require.NoError(t, request.Write(deaf))
	lines := bufio.NewReaderSize(deaf, 16)
	for line := ""; !strings.Contains(line, "acknowledged"); { // and not a byte more
		line, err = lines.ReadString('\n')
		require.NoError(t, err)
	}
	s := w.listenTo(first, last)
	s.news()
	s.news()
	before := held()
	for _, id := range ids {
		w.next(id)
	}
	for range 2 {
		s.untilStatus("completed")
	}
	s.closes()
	for _, id := range ids {
		require.Eventually(t, func() bool { return w.status(id) == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED }, patience, 50*time.Millisecond)
	}
	// Each result may be there once. It is not encoded before the client takes it.
	grown := int64(held()) - int64(before)
	t.Logf("it has grown by %d KiB, with %d KiB to tell", grown>>10, large*bytesEach>>10)
	assert.Less(t, grown, int64(72<<20))
}

// held are the bytes of the heap and of the stacks of this process.
func held() uint64 {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return memory.HeapAlloc + memory.StackInuse
}

// TestListenToManyTasks: more than Temporal allows long-polls for by default. The end of each is told, and each costs little
// while nothing happens.
func TestListenToManyTasks(t *testing.T) {
	const many, clients = 2000, 16
	w := newListening(t, mcpbridge.Options{})
	ids := make([]string, many)
	inTurns := func(do func(i int)) {
		var all sync.WaitGroup
		for n := range clients {
			all.Go(func() {
				for i := n; i < many; i += clients {
					do(i)
				}
			})
		}
		all.Wait()
	}
	inTurns(func(i int) { ids[i] = seenBy(w.front, t, withTasks).create("one_step", `{}`).TaskID })
	before := held()
	s := w.listenTo(ids...)
	for range ids {
		assert.Equal(t, "working", s.news().Status)
	}
	each := (int64(held()) - int64(before)) / many
	t.Logf("%d bytes for each task that is listened to", each) // what the client keeps of it included
	assert.Less(t, each, int64(8<<10))

	inTurns(func(i int) {
		assert.NoError(t, w.temporal.SignalWorkflow(context.Background(), "mcp:anonymous:"+ids[i], "", "next", nil))
	})
	ended := map[string]int{}
	for len(ended) < many {
		now := s.untilStatus("completed")
		ended[now.TaskID]++
	}
	s.closes()
	for _, id := range ids {
		assert.Equal(t, 1, ended[id], id)
	}
}

// TestListenLeavesNothing: when many subscriptions to many tasks end, so does all that they needed.
func TestListenLeavesNothing(t *testing.T) {
	w := newListening(t, mcpbridge.Options{})
	var ids []string
	for range 50 {
		ids = append(ids, w.create("one_step", `{}`).TaskID)
	}
	round := func() {
		for range 20 {
			s := w.listen("1", fmt.Sprintf(`{"taskIds":%s,"toolsListChanged":true}`, encode(t, ids)))
			for range len(ids) + 1 {
				s.next()
			}
			defer s.abort()
		}
	}
	round()
	comesBackTo(t, footprint{front: 3, goroutines: 1000, heap: 1 << 30})
	before := measure(t)
	round()
	comesBackTo(t, before)
}

func TestListenKeepsTheConnectionAlive(t *testing.T) {
	w := newListening(t, mcpbridge.Options{})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/mcp", strings.NewReader(w.listenRequest("1", `{"toolsListChanged":true}`)))
	require.NoError(t, err)
	request.Header = headers("subscriptions/listen", "")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	assert.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
	assert.Equal(t, "no", answer.Header.Get("X-Accel-Buffering"))
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if lines.Text() == ":" {
			return
		}
	}
	require.Fail(t, "no comment", lines.Err())
}

// TestListenWhileTemporalIsAway: a Temporal that is killed and comes back with what it had ends no subscription.
func TestListenWhileTemporalIsAway(t *testing.T) {
	options := devserver.Options{NoUI: true, Log: os.Stderr, DBFile: filepath.Join(t.TempDir(), "temporal.db")}
	server, err := devserver.Start(t.Context(), options)
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(server.Address())
	require.NoError(t, err)
	options.Port, err = strconv.Atoi(port)
	require.NoError(t, err)
	temporal, err := client.Dial(client.Options{HostPort: server.Address(), Logger: testenv.QuietLogger()})
	require.NoError(t, err)
	t.Cleanup(temporal.Close)
	w := waiting{newFront(t, temporal, mcpbridge.Options{}, listenTools(t)...), temporal, t.Name()}
	ids := []string{w.create("steps", `{}`).TaskID, w.create("one_step", `{}`).TaskID}
	s := w.listenTo(ids...)
	s.news()
	s.news()

	require.NoError(t, server.Kill())
	refused := w.listen("1", `{"taskIds":["x"]}`)
	defer refused.abort()
	server, err = devserver.Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, server.Stop()) })
	refused.acknowledged(`{"taskIds":[]}`) // it waited
	newPatientWorker(t, temporal, Steps, OneStep)
	for _, id := range []string{ids[0], ids[0], ids[0], ids[1]} {
		w.next(id)
	}
	assert.ElementsMatch(t, ids, []string{s.untilStatus("completed").TaskID, s.untilStatus("completed").TaskID})
	s.closes()
}

// piped is a client at the other end of ServeStdio.
type piped struct {
	front
	in    io.WriteCloser
	lines *stream
	ended chan error
}

func newPiped(t *testing.T, bridge *mcpbridge.Bridge) piped {
	t.Helper()
	fromClient, in, err := os.Pipe()
	require.NoError(t, err)
	out, toClient, err := os.Pipe()
	require.NoError(t, err)
	p := piped{front{t: t, capabilities: withTasks}, in, newStream(t), make(chan error, 1)}
	go func() {
		p.ended <- bridge.ServeStdio(context.Background(), fromClient, toClient)
		_ = toClient.Close()
	}()
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var m wireMessage
			if err := json.Unmarshal(bytes.Clone(lines.Bytes()), &m); err != nil {
				p.lines.finish(err)
				return
			}
			if m.Method == "" {
				m.Params = bytes.Clone(lines.Bytes()) // an answer, as a whole
			}
			p.lines.add(m)
		}
		p.lines.finish(lines.Err())
	}()
	t.Cleanup(func() {
		_ = in.Close()
		assert.NoError(t, <-p.ended)
		assert.NoError(t, errors.Join(fromClient.Close(), out.Close()))
	})
	return p
}

func (p piped) write(line string) {
	p.t.Helper()
	_, err := io.WriteString(p.in, line+"\n")
	require.NoError(p.t, err)
}

// of are the messages so far that belong to a subscription, and its answer.
func (p piped) of(id string) (messages []wireMessage) {
	for _, m := range p.lines.received() {
		if string(m.ID) == id || strings.Contains(string(m.Params), `"io.modelcontextprotocol/subscriptionId":`+id+`}`) {
			messages = append(messages, m)
		}
	}
	return messages
}

// until waits until so many messages of a subscription have come.
func (p piped) until(id string, n int) (messages []wireMessage) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { messages = p.of(id); return len(messages) >= n }, patience, 10*time.Millisecond, "%s has %d messages, not %d", id, len(messages), n)
	return messages
}

// TestListenOverStdio: many subscriptions on one connection, among other requests; each is told its own, and ends by itself.
func TestListenOverStdio(t *testing.T) {
	temporal := testenv.Client(t)
	newPatientWorker(t, temporal, OneStep)
	bridge := newBridge(t, temporal, mcpbridge.Options{}, listenTools(t)...)
	w := waiting{newFront(t, temporal, mcpbridge.Options{}, listenTools(t)...), temporal, t.Name()}
	p := newPiped(t, bridge)
	const many = 100
	shared := w.create("one_step", `{}`).TaskID
	var own []string
	for range many {
		own = append(own, w.create("one_step", `{}`).TaskID)
	}
	id := func(n int) string { return fmt.Sprintf(`"s%d"`, n) }
	for n := range many {
		p.write(p.listenRequest(id(n), fmt.Sprintf(`{"taskIds":[%q,%q],"toolsListChanged":true}`, shared, own[n])))
		p.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tasks/get","params":{"taskId":%q,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}`, n, own[n], withTasks))
	}
	for n := range many {
		messages := p.until(id(n), 3)
		assert.Equal(t, "notifications/subscriptions/acknowledged", messages[0].Method)
		assert.Contains(t, string(messages[0].Params), fmt.Sprintf(`"taskIds":[%q,%q]`, shared, own[n]))
		p.until(strconv.Itoa(n), 1)
	}
	cancelled := id(7)
	p.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, cancelled))
	p.write(`{"jsonrpc":"2.0","id":"after","method":"tasks/get","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	p.until(`"after"`, 1)
	require.NoError(t, mcpbridge.AddTool(bridge, catalog.Tool{Name: "another", TaskQueue: t.Name(), Description: "test"}, Steps))
	w.next(shared)
	for n := range many {
		if id(n) == cancelled {
			continue
		}
		p.until(id(n), 5)
		var texts []string
		for _, m := range p.of(id(n))[3:] {
			texts = append(texts, m.Method+" "+string(m.Params))
		}
		all := strings.Join(texts, "\n")
		assert.Equal(t, 1, strings.Count(all, `"status":"completed"`), all)
		assert.Equal(t, 1, strings.Count(all, "notifications/tools/list_changed "), all)
		assert.NotContains(t, all, own[n], "it has not changed")
	}
	assert.Len(t, p.of(cancelled), 3, "nothing after it was cancelled, not even an answer")

	require.NoError(t, p.in.Close())
	p.lines.wait("end", func() bool { return p.lines.ended })
	for n := range many {
		messages := p.of(id(n))
		if id(n) != cancelled {
			assertClosed(t, string(messages[len(messages)-1].Params), id(n))
		}
	}
}
