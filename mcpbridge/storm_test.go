package mcpbridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge"
)

// footprint is what this process holds.
type footprint struct {
	// front are the goroutines that run code of the front end, of its base protocol or of a connection to it; goroutines are
	// all but those by which the test's workflows are run.
	front, goroutines int
	heap              uint64
}

var (
	ofTheFront = regexp.MustCompile(`taskbridge/mcpbridge(\.|/internal/|/tasks\.)|/go-sdk/|net/http\.\(\*conn\)\.serve`)
	ofWorkers  = regexp.MustCompile(`internal_task_pollers\.go|internal_worker_base\.go`)
)

func measure(t testing.TB) (f footprint) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	var profile bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&profile, 1))
	for _, stack := range strings.Split(profile.String(), "\n\n") {
		count, _, found := strings.Cut(stack, " @ ")
		if !found {
			continue
		}
		n, err := strconv.Atoi(count[strings.LastIndexByte(count, '\n')+1:])
		require.NoError(t, err, stack)
		if !ofWorkers.MatchString(stack) {
			f.goroutines += n
		}
		if ofTheFront.MatchString(stack) {
			f.front += n
		}
	}
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	f.heap = memory.HeapAlloc
	return f
}

// comesBackTo waits until the process holds about as much as it did.
func comesBackTo(t testing.TB, before footprint) {
	t.Helper()
	const (
		others   = 20       // goroutines: connections to Temporal and such
		moreHeap = 16 << 20 // bytes: caches, and what the test itself holds
	)
	var now footprint
	require.Eventually(t, func() bool {
		now = measure(t)
		return now.front <= before.front && now.goroutines <= before.goroutines+others && now.heap <= before.heap+moreHeap
	}, patience, 500*time.Millisecond, "before %+v, now %+v", before, &now)
	t.Logf("before %+v, now %+v", before, now)
}

// stormy is a front end with many clients.
type stormy struct {
	waiting
}

func newStormy(t *testing.T, o mcpbridge.Options) stormy {
	t.Helper()
	temporal := testenv.Client(t)
	newPatientWorker(t, temporal, Steps, Ask, Echo)
	s := stormy{waiting{newFront(t, temporal, o, waitingTools(t)...), temporal, t.Name()}}
	s.capabilities = `{}`
	return s
}

// total is how many workflows of the test have a status.
func (s stormy) total(status string) int {
	s.t.Helper()
	response, err := s.temporal.CountWorkflow(s.t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
		Query: fmt.Sprintf("TaskQueue = %q AND ExecutionStatus = %q", s.queue, status),
	})
	require.NoError(s.t, err)
	return int(response.GetCount())
}

func (s stormy) untilTotal(status string, want int) {
	s.t.Helper()
	var now int
	require.Eventually(s.t, func() bool { now = s.total(status); return now == want }, patience, 500*time.Millisecond,
		"%s: want %d, have %s", status, want, lazily(func() string { return strconv.Itoa(now) }))
}

// lazily is text that is made only when it is printed.
type lazily func() string

func (l lazily) String() string { return l() }

// leave makes the client of a session go away without a word.
func (s session) leave() {
	s.stop()
	s.running.Wait()
	s.http.CloseIdleConnections()
	s.id = "" // the session ends in its own time
}

// storm lets clients of four kinds, this many of each, go away together in the middle of what they do. It returns the IDs of
// the tasks that some of them created, which go on.
func (s stormy) storm(each, creators int) (tasks []string) {
	s.t.Helper()
	running, cancelled := s.total("Running"), s.total("Canceled")
	var leave []func()
	const wave = 25 // at a time: starts in Temporal are not what the storm is about
	for begun := 0; begun < each; begun += wave {
		var calls []*sessionCall
		for range min(wave, each-begun) {
			leave = append(leave, s.begin(request{tool: "steps"}).abort)
			call := s.begin(request{tool: "steps", progressToken: `1`})
			session := openSession(s.front, june2025, `{}`)
			calls = append(calls, call, session.start("tools/call", json.RawMessage(`{"name":"steps","arguments":{},"_meta":{"progressToken":1}}`)))
			leave = append(leave, call.abort, session.leave)
		}
		for _, call := range calls {
			call.progressed("step 1")
		}
	}
	for i := range each {
		session := openSession(s.front, november2025, `{}`)
		session.listen()
		leave = append(leave, session.leave)
		if i < creators {
			var created struct{ Task struct{ TaskID string } }
			require.NoError(s.t, json.Unmarshal(session.send("tools/call", json.RawMessage(`{"name":"steps","arguments":{},"task":{}}`)).Result, &created))
			tasks = append(tasks, created.Task.TaskID)
		}
	}
	for range creators {
		tasks = append(tasks, seenBy(s.front, s.t, withTasks).create("steps", `{}`).TaskID)
	}
	s.untilTotal("Running", running+3*each+len(tasks))

	var storm sync.WaitGroup
	for _, leave := range leave {
		storm.Go(leave)
	}
	storm.Wait()
	s.untilTotal("Canceled", cancelled+3*each)
	s.untilTotal("Running", running+len(tasks))
	return tasks
}

// TestDisconnectStorm: clients that go away in the middle of what they do leave nothing behind: no goroutine, no memory, no
// workflow that nobody wants. What was created as a task goes on.
func TestDisconnectStorm(t *testing.T) {
	s := newStormy(t, mcpbridge.Options{SessionTimeout: 5 * time.Second})
	s.finish(s.storm(5, 2)) // so that all that is made once has been made
	comesBackTo(t, footprint{front: 3, goroutines: 1000, heap: 1 << 30})
	before := measure(t)

	tasks := s.storm(125, 10)
	s.finish(tasks)
	comesBackTo(t, before)
}

// finish lets tasks come to their end, and reads their results.
func (s stormy) finish(tasks []string) {
	s.t.Helper()
	f := seenBy(s.front, s.t, withTasks)
	for _, id := range tasks {
		assert.Equal(s.t, "working", f.get(id).Status)
		for range 3 {
			s.next(id)
		}
	}
	for _, id := range tasks {
		assert.Contains(s.t, string(f.comesTo(id, "completed").Result), "three steps")
	}
}

// TestCallsAbortedAtTheStart: a client may go away while its call is just being started. Whatever that leads to, no workflow
// goes on that nobody waits for.
func TestCallsAbortedAtTheStart(t *testing.T) {
	s := newStormy(t, mcpbridge.Options{})
	text(t, s.ask(request{tool: "echo", arguments: `{"Text":"warm"}`}))
	before := measure(t)
	const clients = 60
	sent := make(chan bool, clients)
	var aborted sync.WaitGroup
	for i := range clients {
		ctx, abort := context.WithCancel(t.Context())
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(info httptrace.WroteRequestInfo) {
			sent <- info.Err == nil
			time.AfterFunc(time.Duration(i)*100*time.Microsecond, abort) // some a little later than others
		}})
		call := newStream(t)
		body := s.encode(int64(i), request{tool: "steps"})
		aborted.Go(func() {
			defer abort()
			assert.ErrorIs(t, s.read(ctx, body, request{tool: "steps"}.headers(), call), context.Canceled)
		})
	}
	aborted.Wait()
	for range clients {
		assert.True(t, <-sent)
	}
	require.Eventually(t, func() bool { return measure(t).front <= before.front }, patience, 100*time.Millisecond, "requests are still served")
	s.untilTotal("Running", 0)
	comesBackTo(t, before)
}

// TestTwoErasOnOneEndpoint: clients of both kinds at once, each with results of its own.
func TestTwoErasOnOneEndpoint(t *testing.T) {
	s := newStormy(t, mcpbridge.Options{})
	const clients = 50
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() { modernClient(t, seenBy(s.front, t, withTasks), client) })
		all.Go(func() {
			if client%2 == 0 {
				coreSession(t, openSession(s.front, november2025, `{"elicitation":{},"tasks":{}}`), client)
			} else {
				proposalSession(t, openSession(s.front, june2025, `{"elicitation":{}}`), client)
			}
		})
	}
	all.Wait()
}

// modernClient has a task of its own, answers another's question, and makes calls without tasks.
func modernClient(t *testing.T, f front, client int) {
	mine := fmt.Sprint("modern ", client)
	id := f.create("echo", fmt.Sprintf(`{"Text":%q}`, mine)).TaskID
	asking := f.create("ask", `{}`).TaskID
	f.comesTo(asking, "input_required")
	decode[struct{}](t, f.update(asking, strings.Replace(blue, "blue", mine, 1)))
	assert.Contains(t, string(f.comesTo(id, "completed").Result), fmt.Sprintf(`"structuredContent":{"Text":%q}`, mine))
	assert.Contains(t, string(f.comesTo(asking, "completed").Result), fmt.Sprintf(`"text":%q`, mine))
	f.capabilities = `{}`
	assert.Contains(t, f.ask(request{tool: "echo", arguments: fmt.Sprintf(`{"Text":%q}`, mine)}).Raw, fmt.Sprintf(`"structuredContent":{"Text":%q}`, mine))
}

// comesTo is untilStatus for one of many clients: it asks seldom.
func (f front) comesTo(id, status string) (now task) {
	f.t.Helper()
	require.Eventually(f.t, func() bool { now = f.get(id); return now.Status == status }, patience, 500*time.Millisecond, "task is %+v", &now)
	return now
}

// coreSession has a task of 2025-11-25, answers a question in a call, and makes a plain call.
func coreSession(t *testing.T, s session, client int) {
	mine := fmt.Sprint("core ", client)
	s.onRequest(func(wireMessage) any { return answered(mine) })
	arguments := map[string]string{"Text": mine}
	created := decode[struct{ Task struct{ TaskID string } }](t, s.send("tools/call", map[string]any{"name": "echo", "arguments": arguments, "task": map[string]any{}}))
	assert.Equal(t, mine, text(t, s.send("tools/call", map[string]any{"name": "ask", "arguments": map[string]any{}})))
	for _, answer := range []response{
		s.send("tasks/result", map[string]any{"taskId": created.Task.TaskID}),
		s.send("tools/call", map[string]any{"name": "echo", "arguments": arguments}),
	} {
		assert.Contains(t, answer.Raw, fmt.Sprintf(`"structuredContent":{"Text":%q}`, mine))
	}
}

// proposalSession has a task of SEP-1686, answers a question in a call, and makes a plain call.
func proposalSession(t *testing.T, s session, client int) {
	mine := fmt.Sprint("proposal ", client)
	s.onRequest(func(wireMessage) any { return answered(mine) })
	arguments, id := map[string]string{"Text": mine}, uuid.NewString()
	for _, answer := range []response{
		s.send("tools/call", map[string]any{"name": "echo", "arguments": arguments, "_meta": map[string]any{"modelcontextprotocol.io/task": map[string]any{"taskId": id}}}),
		s.send("tools/call", map[string]any{"name": "echo", "arguments": arguments}),
		s.send("tasks/result", map[string]any{"taskId": id}),
	} {
		assert.Contains(t, answer.Raw, fmt.Sprintf(`"structuredContent":{"Text":%q}`, mine))
	}
	assert.Equal(t, mine, text(t, s.send("tools/call", map[string]any{"name": "ask", "arguments": map[string]any{}})))
}
