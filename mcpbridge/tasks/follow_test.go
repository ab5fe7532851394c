package tasks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"taskbridge/internal/devserver"
	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/tasks"
	"taskbridge/signals"
)

// soon is how long a test waits for something that takes a moment, on a busy machine.
const soon = time.Minute

// yielded is what Follow yields at a time.
type yielded struct {
	*tasks.Task
	err error
}

// follow follows a task in the background. The channel ends with the sequence.
func follow(t *testing.T, service *tasks.Service, owner, id string, every time.Duration) <-chan yielded {
	ctx, cancel := context.WithCancel(t.Context())
	states := make(chan yielded)
	t.Cleanup(func() { // before whatever the follower needs goes away
		cancel()
		for range states {
		}
	})
	go func() {
		defer close(states)
		for task, err := range service.Follow(ctx, owner, id, every) {
			states <- yielded{task, err}
		}
	}()
	return states
}

// next is the next state.
func next(t *testing.T, states <-chan yielded) *tasks.Task {
	t.Helper()
	select {
	case state, ok := <-states:
		require.True(t, ok, "the sequence has ended")
		require.NoError(t, state.err)
		return state.Task
	case <-time.After(soon):
		require.Fail(t, "nothing new")
		return nil
	}
}

// until skips states until one matches.
func until(t *testing.T, states <-chan yielded, matches func(*tasks.Task) bool) *tasks.Task {
	t.Helper()
	for {
		if task := next(t, states); matches(task) {
			return task
		}
	}
}

// says matches a state by its status message.
func says(message string) func(*tasks.Task) bool {
	return func(task *tasks.Task) bool { return task.StatusMessage == message }
}

func ends(t *testing.T, states <-chan yielded) {
	t.Helper()
	select {
	case state, more := <-states:
		require.Falsef(t, more, "one more: %+v", state)
	case <-time.After(soon):
		require.Fail(t, "does not end")
	}
}

func TestFollowYieldsEveryChangeInOrder(t *testing.T) {
	var polls, firstPolls, describes atomic.Int64
	temporal := tampered(t, func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		switch request := req.(type) {
		case *workflowservice.GetWorkflowExecutionHistoryRequest:
			if request.WaitNewEvent {
				polls.Add(1)
			}
			if request.WaitNewEvent && request.NextPageToken == nil {
				firstPolls.Add(1)
			}
		case *workflowservice.DescribeWorkflowExecutionRequest:
			describes.Add(1)
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	})
	service, owner := newService(t, temporal, Steps), newOwner()
	const steps = 5
	task := create(t, service, owner, tasks.Start{Tool: newTool(t, "Steps"), Call: catalog.Call{Arguments: []json.RawMessage{json.RawMessage("5")}}})
	states := follow(t, service, owner, task.ID, 0)
	state := until(t, states, says("step 1"))
	for step := range steps {
		assert.Equal(t, "step "+strconv.Itoa(step+1), state.StatusMessage)
		assert.Equal(t, &signals.Progress{Done: float64(step), Total: steps}, state.Progress)
		assert.Equal(t, tasks.Working, state.Status)
		signal(t, temporal, owner, task.ID, "next")
		state = next(t, states)
	}
	assert.Equal(t, tasks.Completed, state.Status)
	assert.Equal(t, &signals.Progress{Done: steps - 1, Total: steps}, state.Progress, "the last that it told")
	ends(t, states)
	assert.EqualValues(t, 1, firstPolls.Load(), "one long-poll, which goes on where it was")
	assert.LessOrEqual(t, describes.Load(), int64(2*steps+5), "no more than two reads a change")
}

func TestFollowGoesOnInTheNextRun(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal, Renew), newOwner()
	task := create(t, service, owner, tasks.Start{Tool: newTool(t, "Renew"), Call: catalog.Call{Arguments: []json.RawMessage{json.RawMessage("2")}}})
	states := follow(t, service, owner, task.ID, 0)
	next(t, states)
	for range 2 {
		before := runID(t, temporal, owner, task.ID)
		signal(t, temporal, owner, task.ID, "next")
		require.Eventually(t, func() bool { return runID(t, temporal, owner, task.ID) != before }, soon, 10*time.Millisecond)
	}
	signal(t, temporal, owner, task.ID, "next")
	assert.Equal(t, tasks.Completed, until(t, states, func(task *tasks.Task) bool { return task.Status.Terminal() }).Status)
	ends(t, states)
}

func TestFollowNoticesWhatLeavesNoTraceInHistory(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal), newOwner()
	task := create(t, service, owner, tasks.Start{Tool: newTool(t, "Listen")})
	states := follow(t, service, owner, task.ID, 50*time.Millisecond)
	until(t, states, says("waiting for a worker on task queue "+t.Name()))
	defer startWorker(t, temporal, Listen)()
	until(t, states, says("first this"))
	until(t, states, says("now that"))
}

func TestFollowNoticesWhatThisProcessDoes(t *testing.T) {
	temporal := testenv.Client(t)
	stop := startWorker(t, temporal, AskLater)
	service := newService(t, temporal)
	id, _ := startAt(t, temporal, AskLater, time.Now())
	states := follow(t, service, tasks.Anonymous, id, 0)
	asking := until(t, states, func(task *tasks.Task) bool { return task.Status == tasks.InputRequired })
	require.Contains(t, asking.InputRequests, "go-1")
	stop() // so that nobody takes the answer
	require.NoError(t, service.Answer(t.Context(), tasks.Anonymous, id, map[string]json.RawMessage{"go-1": json.RawMessage(`{"action":"accept","content":{}}`)}))
	assert.Equal(t, tasks.Working, next(t, states).Status)
	require.NoError(t, service.Cancel(t.Context(), tasks.Anonymous, id))
	assert.True(t, next(t, states).CancelRequested)
}

func TestFollowEndsWithAnError(t *testing.T) {
	service := newService(t, testenv.Client(t))
	states := follow(t, service, newOwner(), "unknown", 0)
	assert.ErrorIs(t, (<-states).err, tasks.ErrNotFound)
	ends(t, states)
}

func TestFollowerLeavesNothingBehind(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal), newOwner()
	task := create(t, service, owner, tasks.Start{Tool: newTool(t, "Nap")})

	for _, err := range service.Follow(t.Context(), owner, task.ID, time.Millisecond) {
		require.NoError(t, err)
		break
	}
	assert.Eventually(t, func() bool { return watches(t) == 0 }, 10*time.Second, 20*time.Millisecond, "after a break at the first state")

	for state, err := range service.Follow(t.Context(), owner, task.ID, 10*time.Millisecond) {
		require.NoError(t, err)
		if state.StatusMessage != "" { // it waits for a worker
			assert.Equal(t, 1, watches(t))
			break
		}
	}
	assert.Eventually(t, func() bool { return watches(t) == 0 }, 10*time.Second, 20*time.Millisecond, "after a break at the second")

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	var last error
	for _, err := range service.Follow(ctx, owner, task.ID, 0) {
		last = err
	}
	assert.Equal(t, context.DeadlineExceeded, last)
	assert.Eventually(t, func() bool { return watches(t) == 0 }, 10*time.Second, 20*time.Millisecond, "after the end of the context")
}

// watches counts the long-polls of followers.
func watches(t *testing.T) int {
	t.Helper()
	var stacks bytes.Buffer
	require.NoError(t, pprof.Lookup("goroutine").WriteTo(&stacks, 2))
	return bytes.Count(stacks.Bytes(), []byte("tasks.(*watch).poll("))
}

func TestFollowYieldsTheEndOfATaskThatIsNotKept(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal, Stubborn), newOwner()
	task := create(t, service, owner, tasks.Start{Tool: newTool(t, "Stubborn"), KeepAlive: new(time.Duration)})
	states := follow(t, service, owner, task.ID, 0)
	next(t, states)
	signal(t, temporal, owner, task.ID, "next")
	assert.Equal(t, tasks.Completed, next(t, states).Status)
	ends(t, states)
	_, err := service.Get(t.Context(), owner, task.ID)
	assert.ErrorIs(t, err, tasks.ErrNotFound)
	ended, err := service.Await(t.Context(), owner, task.ID)
	require.NoError(t, err, "a follower who comes a little late")
	assert.Equal(t, tasks.Completed, ended.Status)
}

func TestFollowSurvivesARestartOfTemporal(t *testing.T) {
	options := devserver.Options{NoUI: true, Log: os.Stderr, DBFile: filepath.Join(t.TempDir(), "temporal.db")}
	server, err := devserver.Start(t.Context(), options)
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(server.Address())
	require.NoError(t, err)
	options.Port, err = strconv.Atoi(port)
	require.NoError(t, err)
	temporal, err := client.Dial(client.Options{HostPort: server.Address(), Logger: testenv.QuietLogger()})
	require.NoError(t, err)
	defer temporal.Close()
	service, owner := newService(t, temporal), newOwner()
	stop := startWorker(t, temporal, Steps)
	task := create(t, service, owner, tasks.Start{Tool: newTool(t, "Steps"), Call: catalog.Call{Arguments: []json.RawMessage{json.RawMessage("2")}}})
	states := follow(t, service, owner, task.ID, 100*time.Millisecond)
	until(t, states, says("step 1"))
	service.LimitPolls(1)
	waiting := create(t, service, owner, tasks.Start{Tool: newTool(t, "Steps"), Call: catalog.Call{Arguments: []json.RawMessage{json.RawMessage("1")}}})
	paced := follow(t, service, owner, waiting.ID, 0)
	until(t, paced, says("step 1"))
	stop()

	require.NoError(t, server.Kill())
	require.Eventually(t, func() bool { // a followed task is known for a second
		_, err := service.Get(t.Context(), owner, task.ID)
		return errors.Is(err, tasks.ErrUnavailable)
	}, soon, 50*time.Millisecond)
	server, err = devserver.Start(t.Context(), options)
	require.NoError(t, err)
	defer func() { assert.NoError(t, server.Stop()) }()

	defer startWorker(t, temporal, Steps)()
	require.Eventually(t, func() bool {
		return temporal.SignalWorkflow(t.Context(), "mcp:"+owner+":"+task.ID, "", "next", nil) == nil
	}, soon, 100*time.Millisecond)
	until(t, states, says("step 2"))
	signal(t, temporal, owner, task.ID, "next")
	assert.Equal(t, tasks.Completed, until(t, states, func(task *tasks.Task) bool { return task.Status.Terminal() }).Status)
	ends(t, states)
	signal(t, temporal, owner, waiting.ID, "next")
	assert.Equal(t, tasks.Completed, until(t, paced, func(task *tasks.Task) bool { return task.Status.Terminal() }).Status, "without a long-poll")
	ends(t, paced)
}
