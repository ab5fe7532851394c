package tasks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/tasks"
	"taskbridge/signals"
	"taskbridge/workflows"
)

// calls counts what a client asks of Temporal.
type calls struct {
	describes, firstPolls, polling, mostPolling, lists atomic.Int64
}

// counted is a client whose calls are counted, and fail with what refuse says, if it is not nil.
func counted(t *testing.T, refuse func(req any, now *calls) error) (client.Client, *calls) {
	t.Helper()
	count := new(calls)
	return tampered(t, func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		switch request := req.(type) {
		case *workflowservice.DescribeWorkflowExecutionRequest:
			count.describes.Add(1)
		case *workflowservice.ListWorkflowExecutionsRequest:
			count.lists.Add(1)
		case *workflowservice.GetWorkflowExecutionHistoryRequest:
			if !request.WaitNewEvent {
				break
			}
			if request.NextPageToken == nil {
				count.firstPolls.Add(1)
			}
			now := count.polling.Add(1)
			defer count.polling.Add(-1)
			for most := count.mostPolling.Load(); most < now && !count.mostPolling.CompareAndSwap(most, now); {
				most = count.mostPolling.Load()
			}
		}
		if refuse != nil {
			if err := refuse(req, count); err != nil {
				return err
			}
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}), count
}

// shown is all that others see of a task.
func shown(task *tasks.Task) map[string]any {
	fields := map[string]any{}
	of := reflect.ValueOf(task).Elem()
	for i := range of.NumField() {
		if field := of.Type().Field(i); field.IsExported() {
			fields[field.Name] = of.Field(i).Interface()
		}
	}
	return fields
}

// End ends as it is told by a signal, after it has told its progress.
func End(ctx workflow.Context) (any, error) {
	task, err := workflows.NewTask(ctx, nil)
	if err != nil {
		return nil, err
	}
	task.Progress(ctx, 1, 2)
	var how string
	if err := workflow.Await(ctx, func() bool { return workflow.GetSignalChannel(ctx, "end").ReceiveAsync(&how) }); err != nil {
		return nil, err
	}
	task.Progress(ctx, 2, 2)
	switch how {
	case "object":
		return map[string]any{"big": json.RawMessage("12345678901234567890")}, nil
	case "fail":
		return nil, errors.New("broken")
	case "rpc":
		return nil, temporal.NewNonRetryableApplicationError("no", signals.RPCErrorType, nil, signals.RPCError{Code: 7, Message: "no"})
	}
	return how, nil
}

// TestTheEndIsTheSameFromHistory: a follower hears of the end without a further read, and sees what everybody reads.
func TestTheEndIsTheSameFromHistory(t *testing.T) {
	plain := testenv.Client(t)
	counting, count := counted(t, nil)
	service, err := tasks.New(counting, tasks.Options{})
	require.NoError(t, err)
	require.NoError(t, service.Check(t.Context()))
	t.Cleanup(startWorker(t, plain, End))
	for name, test := range map[string]struct {
		tool   func(*catalog.Tool)
		end    func(id string)
		status tasks.Status
		reads  int64
	}{
		"text":   {status: tasks.Completed},
		"object": {status: tasks.Completed},
		"fail":   {status: tasks.Completed},
		"rpc":    {status: tasks.Failed},
		"lasts too long": {status: tasks.Failed, tool: func(tool *catalog.Tool) { tool.ExecutionTimeout = 2 * time.Second },
			end: func(string) {}},
		"cancelled": {status: tasks.Cancelled, reads: 1, end: func(id string) {
			require.NoError(t, plain.CancelWorkflow(t.Context(), id, ""))
		}},
		"terminated": {status: tasks.Cancelled, reads: 2, end: func(id string) {
			require.NoError(t, plain.TerminateWorkflow(t.Context(), id, "", "enough"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			owner, tool := newOwner(), newTool(t, "End")
			tool.TaskQueue = "TestTheEndIsTheSameFromHistory"
			if test.tool != nil {
				test.tool(tool)
			}
			ttl := time.Hour
			id := create(t, service, owner, tasks.Start{Tool: tool, TTL: &ttl, Dialect: "d"}).ID
			states := follow(t, service, owner, id, 0)
			until(t, states, func(task *tasks.Task) bool { return task.Progress != nil })
			before := count.describes.Load()
			if test.end != nil {
				test.end("mcp:" + owner + ":" + id)
			} else {
				require.NoError(t, plain.SignalWorkflow(t.Context(), "mcp:"+owner+":"+id, "", "end", name))
			}
			ended := until(t, states, func(task *tasks.Task) bool { return task.Status.Terminal() })
			ends(t, states)
			assert.LessOrEqual(t, count.describes.Load()-before, test.reads+1, "reads")
			assert.Equal(t, test.status, ended.Status)
			assert.Equal(t, shown(get(t, newService(t, plain), owner, id)), shown(ended))
			assert.Same(t, ended, get(t, service, owner, id), "from memory")
		})
	}
	assert.Zero(t, service.Watched())
}

// TestStatesAreTheSameFromHistory: what a workflow says of itself needs no further read; what activities say does.
func TestStatesAreTheSameFromHistory(t *testing.T) {
	plain := testenv.Client(t)
	counting, count := counted(t, nil)
	service, fresh, owner := newService(t, counting), newService(t, plain), newOwner()
	t.Cleanup(startWorker(t, plain, Interview))
	id := create(t, service, owner, tasks.Start{Tool: newTool(t, "Interview")}).ID
	states := follow(t, service, owner, id, 0)
	same := func(matches func(*tasks.Task) bool) *tasks.Task {
		t.Helper()
		state := until(t, states, matches)
		now, want := shown(state), shown(get(t, fresh, owner, id))
		delete(now, "PollInterval") // which grows
		delete(want, "PollInterval")
		assert.Equal(t, want, now)
		return state
	}
	asks := func(task *tasks.Task) bool { return task.Status == tasks.InputRequired }
	answer := func(state *tasks.Task) {
		for key := range state.InputRequests {
			require.NoError(t, plain.SignalWorkflow(t.Context(), "mcp:"+owner+":"+id, "", signals.InputSignal,
				signals.Input{Responses: map[string]json.RawMessage{key: json.RawMessage(`{"action":"decline"}`)}}))
		}
	}
	state := same(asks)
	before := count.describes.Load()
	answer(state)
	same(says("thinking"))
	signal(t, plain, owner, id, "next")
	state = same(asks)
	assert.Equal(t, before, count.describes.Load(), "no read")
	answer(state)
	same(says("running Chatter"))
}

// Interview asks, thinks, asks again, and then has an activity run.
func Interview(ctx workflow.Context) error {
	task, err := workflows.NewTask(ctx, nil)
	if err != nil {
		return err
	}
	if _, err := workflows.Elicit[struct{}](ctx, task, workflows.Question{Name: "first", Message: "?"}); err != nil {
		return err
	}
	task.Status(ctx, "thinking")
	workflow.GetSignalChannel(ctx, "next").Receive(ctx, nil)
	if _, err := workflows.Elicit[struct{}](ctx, task, workflows.Question{Name: "second", Message: "?"}); err != nil {
		return err
	}
	task.Status(ctx, "")
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Hour, TaskQueue: "nowhere"})
	return workflow.ExecuteActivity(ctx, Chatter).Get(ctx, nil)
}

// touchy is a data converter that does not bear a word.
type touchy struct {
	converter.DataConverter
	word string
}

func (c touchy) FromPayload(payload *commonpb.Payload, into any) error {
	if bytes.Contains(payload.GetData(), []byte(c.word)) {
		panic("touched")
	}
	return c.DataConverter.FromPayload(payload, into)
}

// TestAPanicEndsNothingElse: a task that cannot be read for a fault in here takes nobody else with it.
func TestAPanicEndsNothingElse(t *testing.T) {
	temporal := testenv.Client(t)
	t.Cleanup(startWorker(t, temporal, Steps))
	service, err := tasks.New(temporal, tasks.Options{DataConverter: touchy{converter.GetDefaultDataConverter(), "step 2"}})
	require.NoError(t, err)
	owner := newOwner()
	id := create(t, service, owner, tasks.Start{Tool: newTool(t, "Steps"), Call: catalog.Call{Arguments: []json.RawMessage{json.RawMessage("2")}}}).ID
	states := follow(t, service, owner, id, 0)
	until(t, states, says("step 1"))
	signal(t, temporal, owner, id, "next")
	assert.ErrorContains(t, (<-states).err, "the task cannot be read")
	ends(t, states)
	_, err = service.Get(t.Context(), owner, id)
	assert.ErrorContains(t, err, "the task cannot be read")
	assert.Zero(t, service.Watched())
}

func TestManyFollowersShareAWatch(t *testing.T) {
	temporal, count := counted(t, nil)
	service, owner := newService(t, temporal, Steps), newOwner()
	const followers, steps = 50, 5
	id := create(t, service, owner, tasks.Start{Tool: newTool(t, "Steps"), Call: catalog.Call{Arguments: []json.RawMessage{json.RawMessage("5")}}}).ID
	slow := follow(t, service, owner, id, 0)
	next(t, slow)
	quick := make([]<-chan yielded, followers)
	seen := make([][]string, followers)
	for i := range quick {
		quick[i] = follow(t, service, owner, id, 0)
		until(t, quick[i], says("step 1"))
	}
	for step := range steps {
		signal(t, temporal, owner, id, "next")
		for i, states := range quick {
			state := next(t, states)
			seen[i] = append(seen[i], state.StatusMessage)
			if step == steps-1 {
				assert.Equal(t, tasks.Completed, state.Status)
				ends(t, states)
			}
		}
	}
	for i := range seen {
		assert.Equal(t, []string{"step 2", "step 3", "step 4", "step 5", ""}, seen[i])
	}
	var last *tasks.Task
	for state := range slow {
		require.NoError(t, state.err)
		last = state.Task
	}
	assert.Equal(t, tasks.Completed, last.Status, "to one who did not look all the while")
	assert.EqualValues(t, 1, count.firstPolls.Load(), "one long-poll")
	assert.LessOrEqual(t, count.describes.Load(), int64(10), "and no more reads for many than for one")
	assert.Zero(t, service.Watched())
}

func TestOwnersAreApart(t *testing.T) {
	temporal := testenv.Client(t)
	service := newService(t, temporal, Stubborn)
	owners := []string{newOwner(), newOwner()}
	followed := map[string]<-chan yielded{}
	for _, owner := range owners {
		create(t, service, owner, tasks.Start{ID: "mine", New: true, Tool: newTool(t, "Stubborn"), Dialect: owner})
		followed[owner] = follow(t, service, owner, "mine", 0)
		assert.Equal(t, owner, next(t, followed[owner]).Dialect)
	}
	stranger := newOwner()
	assert.ErrorIs(t, (<-follow(t, service, stranger, "mine", 0)).err, tasks.ErrNotFound)
	var reading sync.WaitGroup
	for range 10 {
		for _, owner := range owners {
			reading.Go(func() { assert.Equal(t, owner, get(t, service, owner, "mine").Dialect) })
		}
		reading.Go(func() {
			_, err := service.Get(t.Context(), stranger, "mine")
			assert.ErrorIs(t, err, tasks.ErrNotFound)
		})
	}
	reading.Wait()
	signal(t, temporal, owners[0], "mine", "next")
	ended := until(t, followed[owners[0]], func(task *tasks.Task) bool { return task.Status.Terminal() })
	assert.Equal(t, owners[0], ended.Dialect)
	assert.Equal(t, tasks.Working, get(t, service, owners[1], "mine").Status)
	_, err := service.Get(t.Context(), stranger, "mine")
	assert.ErrorIs(t, err, tasks.ErrNotFound)
}

func TestFollowATaskThatIsDeleted(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal, Stubborn), newOwner()
	id := create(t, service, owner, tasks.Start{Tool: newTool(t, "Stubborn")}).ID
	states := follow(t, service, owner, id, 0)
	next(t, states)
	_, err := temporal.WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: "mcp:" + owner + ":" + id},
	})
	require.NoError(t, err)
	for state := range states { // it may be seen to be terminated first
		if state.err == nil {
			continue
		}
		assert.ErrorIs(t, state.err, tasks.ErrNotFound)
	}
	assert.Zero(t, service.Watched())
}

// Quiz asks questions, one after the other.
func Quiz(ctx workflow.Context, questions int) error {
	task, err := workflows.NewTask(ctx, nil)
	for i := 0; err == nil && i < questions; i++ {
		_, err = workflows.Elicit[struct{}](ctx, task, workflows.Question{Name: "q" + strconv.Itoa(i), Message: "?"})
	}
	return err
}

// TestWhoWritesReadsThat: what was acknowledged is in the next read, however many look at the task.
func TestWhoWritesReadsThat(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal, Quiz), newOwner()
	id := create(t, service, owner, tasks.Start{Tool: newTool(t, "Quiz"), Call: catalog.Call{Arguments: []json.RawMessage{json.RawMessage("20")}}}).ID
	ctx, stop := context.WithCancel(t.Context())
	var polling sync.WaitGroup
	for range 2 {
		polling.Go(func() {
			for ctx.Err() == nil {
				_, err := service.Get(t.Context(), owner, id)
				assert.NoError(t, err)
			}
		})
	}
	defer polling.Wait()
	defer stop()
	for task, err := range service.Follow(t.Context(), owner, id, 0) {
		require.NoError(t, err)
		for key := range task.InputRequests {
			require.NoError(t, service.Answer(t.Context(), owner, id, map[string]json.RawMessage{key: json.RawMessage(`{"action":"decline"}`)}))
			assert.NotContains(t, get(t, service, owner, id).InputRequests, key)
		}
	}
	assert.Equal(t, tasks.Completed, get(t, service, owner, id).Status)

	waiting := create(t, service, owner, tasks.Start{Tool: newTool(t, "Nowhere")}).ID
	next(t, follow(t, service, owner, waiting, 0))
	require.NoError(t, service.Cancel(t.Context(), owner, waiting))
	assert.True(t, get(t, service, owner, waiting).CancelRequested)
}

func TestReadsAtOnceShareACall(t *testing.T) {
	temporal, count := counted(t, nil)
	service, owner := newService(t, temporal), newOwner()
	id := create(t, service, owner, tasks.Start{Tool: newTool(t, "Nowhere")}).ID
	const readers, reads = 16, 200
	readAll := func() (calls, most int64) {
		before, begin := count.describes.Load(), time.Now()
		var reading sync.WaitGroup
		for range readers {
			reading.Go(func() {
				for range reads {
					assert.Equal(t, tasks.Working, get(t, service, owner, id).Status)
				}
			})
		}
		reading.Wait()
		return count.describes.Load() - before, readers + int64(time.Since(begin)/(50*time.Millisecond))
	}
	calls, most := readAll()
	assert.LessOrEqual(t, calls, most, "at once")
	before := count.describes.Load()
	get(t, service, owner, id)
	require.Eventually(t, func() bool { return service.Watched() == 0 }, soon, 10*time.Millisecond)
	get(t, service, owner, id)
	get(t, service, owner, id)
	assert.GreaterOrEqual(t, count.describes.Load()-before, int64(2), "one after the other they do not")

	states := follow(t, service, owner, id, 0)
	next(t, states)
	require.Eventually(t, func() bool { return count.polling.Load() == 1 }, soon, 10*time.Millisecond)
	calls, most = readAll()
	assert.LessOrEqual(t, calls, most, "of a task that is followed")
}

// TestMoreTasksThanLongPolls: they are all seen to change and to end, by few calls.
func TestMoreTasksThanLongPolls(t *testing.T) {
	const parked = 12
	for name, test := range map[string]struct {
		limit  int
		refuse func(req any, now *calls) error
	}{
		"a limit of our own": {2, nil},
		"a limit of Temporal's": {parked, func(req any, now *calls) error {
			if poll, ok := req.(*workflowservice.GetWorkflowExecutionHistoryRequest); ok && poll.WaitNewEvent && now.polling.Load() > 3 {
				return status.Error(codes.ResourceExhausted, "namespace concurrent poller limit exceeded")
			}
			return nil
		}},
		"and no visibility": {2, func(req any, _ *calls) error {
			if _, ok := req.(*workflowservice.ListWorkflowExecutionsRequest); ok {
				return status.Error(codes.Unavailable, "no visibility")
			}
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			temporal, count := counted(t, test.refuse)
			service, owner := newService(t, temporal, Steps), newOwner()
			service.LimitPolls(test.limit)
			ids, followed := make([]string, parked), make([]<-chan yielded, parked)
			for i := range ids {
				ids[i] = create(t, service, owner, tasks.Start{Tool: newTool(t, "Steps"), Call: catalog.Call{Arguments: []json.RawMessage{json.RawMessage("2")}}}).ID
				followed[i] = follow(t, service, owner, ids[i], 0)
			}
			for i, states := range followed {
				until(t, states, says("step 1"))
				signal(t, temporal, owner, ids[i], "next")
			}
			for i, states := range followed {
				until(t, states, says("step 2"))
				signal(t, temporal, owner, ids[i], "next")
			}
			for _, states := range followed {
				until(t, states, func(task *tasks.Task) bool { return task.Status == tasks.Completed })
				ends(t, states)
			}
			assert.Zero(t, service.Watched())
			if test.refuse == nil {
				assert.LessOrEqual(t, count.mostPolling.Load(), int64(test.limit))
				assert.LessOrEqual(t, count.describes.Load(), int64(8*parked), "visibility tells what to read")
			}
		})
	}
}

// TestNobodyMissesTheEnd: neither who has followed a task for long, nor who begins to in the moment in which it ends.
func TestNobodyMissesTheEnd(t *testing.T) {
	service, err := tasks.New(testenv.Client(t), tasks.Options{})
	require.NoError(t, err)
	service.LimitPolls(50)
	park(t, service, 300).end(t)
}

// BenchmarkParkedTasks tells what a task costs that is followed and does nothing, and how long it takes to end them all.
func BenchmarkParkedTasks(b *testing.B) {
	for b.Loop() {
		service, err := tasks.New(testenv.Client(b), tasks.Options{})
		require.NoError(b, err)
		parked := park(b, service, 2000)
		b.ReportMetric(float64(parked.memory)/2000, "B/task")
		b.ReportMetric(parked.end(b).Seconds(), "s/end")
	}
}

// parking are tasks that are followed and do nothing.
type parking struct {
	service *tasks.Service
	owner   string
	queue   string
	ids     []string
	ends    sync.WaitGroup // of their followers
	missed  atomic.Int64
	memory  int // what it takes to follow them, in bytes
}

func park(t testing.TB, service *tasks.Service, size int) *parking {
	t.Helper()
	p := &parking{service: service, owner: newOwner(), queue: "parking-" + uuid.NewString(), ids: make([]string, size)}
	tool := &catalog.Tool{Name: "tool", Workflow: "Parked", TaskQueue: p.queue, Retention: time.Hour, PollInterval: time.Second}
	parallel(size, func(i int) {
		task, err := service.Create(t.Context(), p.owner, tasks.Start{Tool: tool})
		require.NoError(t, err)
		p.ids[i] = task.ID
	})
	before := memory()
	var seen sync.WaitGroup
	seen.Add(size)
	p.ends.Go(func() { p.follow(t, p.ids, seen.Done) })
	seen.Wait()
	last := 0
	for range 10 { // until what comes with the start is over
		time.Sleep(500 * time.Millisecond)
		if now := memory(); last != 0 && now >= last {
			break
		} else {
			last = now
		}
	}
	p.memory = last - before
	return p
}

// memory is what the heap and all stacks take.
func memory() int {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc + stats.StackInuse)
}

// follow follows tasks to their ends. It calls seen for each once it has been seen.
func (p *parking) follow(t testing.TB, ids []string, seen func()) {
	known, ended := map[string]bool{}, map[string]bool{}
	for now := range p.service.FollowAll(t.Context(), p.owner, ids, 0) {
		if !assert.NoError(t, now.Err) {
			break
		}
		if !known[now.ID] {
			known[now.ID] = true
			seen()
		}
		assert.False(t, ended[now.ID], "one more state after the end")
		ended[now.ID] = now.Task.Status == tasks.Completed
	}
	for _, id := range ids {
		if !ended[id] {
			p.missed.Add(1)
		}
	}
}

// end ends all tasks, and follows each once more as its workflow returns.
func (p *parking) end(t testing.TB) time.Duration {
	t.Helper()
	begin := time.Now()
	temporal := testenv.Client(t)
	parallel(len(p.ids), func(i int) {
		require.NoError(t, temporal.SignalWorkflow(t.Context(), "mcp:"+p.owner+":"+p.ids[i], "", "next", nil))
	})
	w := worker.New(temporal, p.queue, workflows.WorkerOptions())
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		workflow.GetSignalChannel(ctx, "next").Receive(ctx, nil)
		id := strings.TrimPrefix(workflow.GetInfo(ctx).WorkflowExecution.ID, "mcp:"+p.owner+":")
		p.ends.Go(func() { p.follow(t, []string{id}, func() {}) })
		return nil
	}, workflow.RegisterOptions{Name: "Parked"})
	require.NoError(t, w.Start())
	defer w.Stop()
	p.ends.Wait()
	assert.Zero(t, p.missed.Load())
	assert.Zero(t, p.service.Watched())
	return time.Since(begin)
}

// parallel does something so many times, some of them at once.
func parallel(times int, do func(i int)) {
	var doing sync.WaitGroup
	free := make(chan struct{}, 16)
	for i := range times {
		free <- struct{}{}
		doing.Go(func() {
			defer func() { <-free }()
			do(i)
		})
	}
	doing.Wait()
}

// TestClosedTasksAreLookedAfter: what another process deletes is gone half a minute later; what is still there is not read
// again as a whole.
func TestClosedTasksAreLookedAfter(t *testing.T) {
	plain := testenv.Client(t)
	var histories atomic.Int64
	counting, count := counted(t, func(req any, _ *calls) error {
		if _, ok := req.(*workflowservice.GetWorkflowExecutionHistoryRequest); ok {
			histories.Add(1)
		}
		return nil
	})
	service, elsewhere, owner := newService(t, counting), newService(t, plain), newOwner()
	id := create(t, service, owner, tasks.Start{Tool: newTool(t, "Nowhere")}).ID
	require.NoError(t, plain.TerminateWorkflow(t.Context(), "mcp:"+owner+":"+id, "", "enough"))
	closed := get(t, service, owner, id)
	describes := count.describes.Load()
	assert.Same(t, closed, get(t, service, owner, id))
	assert.Equal(t, describes, count.describes.Load(), "from memory")
	service.AgeClosed(owner, id)
	assert.Same(t, closed, get(t, service, owner, id))
	assert.Equal(t, describes+1, count.describes.Load())
	assert.EqualValues(t, 1, histories.Load(), "its end is known")

	require.NoError(t, elsewhere.Delete(t.Context(), owner, id))
	assert.Same(t, closed, get(t, service, owner, id), "not yet noticed")
	service.AgeClosed(owner, id)
	_, err := service.Get(t.Context(), owner, id)
	assert.ErrorIs(t, err, tasks.ErrNotFound)
}

func TestPollIntervals(t *testing.T) {
	for _, test := range []struct {
		configured, age time.Duration
		reading         int64
		want            time.Duration
	}{
		{time.Second, 0, 1, time.Second},
		{time.Second, -time.Hour, 1, time.Second},
		{time.Second, 40 * time.Second, 1, 2 * time.Second},
		{time.Second, time.Hour, 1, 5 * time.Second},
		{time.Minute, time.Hour, 1, 3 * time.Minute},
		{time.Second, 0, 33, 2 * time.Second},
		{time.Second, 0, 10_000, 5 * time.Second},
		{100 * time.Millisecond, 0, 2, 103 * time.Millisecond},
	} {
		assert.Equal(t, test.want, tasks.PollInterval(test.configured, test.age, test.reading), fmt.Sprintf("%+v", test))
	}
}
