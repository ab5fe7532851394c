package tasks_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
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

// AskLater asks a question after a second, and ends with the answer.
func AskLater(ctx workflow.Context) (string, error) {
	task, err := workflows.NewTask(ctx, nil)
	if err != nil {
		return "", err
	}
	if err := workflow.Sleep(ctx, time.Second); err != nil {
		return "", err
	}
	answer, err := workflows.Elicit[struct{}](ctx, task, workflows.Question{Name: "go", Message: "Go on?"})
	return string(answer.Action), err
}

// Steps counts its steps up, one for each signal "next".
func Steps(ctx workflow.Context, total int) (string, error) {
	task, err := workflows.NewTask(ctx, nil)
	if err != nil {
		return "", err
	}
	next := workflow.GetSignalChannel(ctx, "next")
	for step := range total {
		task.Status(ctx, "step %d", step+1)
		task.Progress(ctx, float64(step), float64(total))
		next.Receive(ctx, nil)
	}
	return "walked", nil
}

// Stubborn does not care for cancellation: it waits for a signal and completes.
func Stubborn(ctx workflow.Context) (string, error) {
	deaf, _ := workflow.NewDisconnectedContext(ctx)
	workflow.GetSignalChannel(ctx, "next").Receive(deaf, nil)
	return "done anyway", nil
}

// Renew continues as new with every signal "next", until none is left.
func Renew(ctx workflow.Context, left int) (string, error) {
	workflow.GetSignalChannel(ctx, "next").Receive(ctx, nil)
	if left == 0 {
		return "renewed", nil
	}
	return "", workflow.NewContinueAsNewError(ctx, "Renew", left-1)
}

// Listen waits for an activity that tells what it is doing.
func Listen(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, HeartbeatTimeout: 10 * time.Second})
	return workflow.ExecuteActivity(ctx, Chatter).Get(ctx, nil)
}

// Chatter says one thing, and then another until its worker stops.
func Chatter(ctx context.Context) error {
	activity.RecordHeartbeat(ctx, signals.Heartbeat{Version: 1, StatusMessage: "first this"})
	for {
		select {
		case <-activity.GetWorkerStopChannel(ctx):
			return nil
		case <-time.After(200 * time.Millisecond):
			activity.RecordHeartbeat(ctx, signals.Heartbeat{Version: 1, StatusMessage: "now that"})
		}
	}
}

// Nap sleeps for some seconds.
func Nap(ctx workflow.Context) (string, error) { return "rested", workflow.Sleep(ctx, 3*time.Second) }

// newService is a task service, with a worker for some workflows on the task queue of the test's name.
func newService(t *testing.T, temporal client.Client, runs ...any) *tasks.Service {
	t.Helper()
	if len(runs) > 0 {
		t.Cleanup(startWorker(t, temporal, runs...))
	}
	service, err := tasks.New(temporal, tasks.Options{})
	require.NoError(t, err)
	require.NoError(t, service.Check(t.Context()))
	return service
}

// startWorker starts a worker and returns what stops it.
func startWorker(t *testing.T, temporal client.Client, runs ...any) (stop func()) {
	t.Helper()
	w := worker.New(temporal, t.Name(), workflows.WorkerOptions())
	for _, run := range runs {
		w.RegisterWorkflow(run)
	}
	w.RegisterActivity(Chatter)
	require.NoError(t, w.Start())
	return w.Stop
}

// tampered is a client of [testenv.Temporal] whose calls go through an interceptor.
func tampered(t *testing.T, interceptor grpc.UnaryClientInterceptor) client.Client {
	t.Helper()
	temporal, err := client.Dial(client.Options{
		HostPort:          testenv.Temporal(t).Address(),
		Logger:            testenv.QuietLogger(),
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(interceptor)}},
	})
	require.NoError(t, err)
	t.Cleanup(temporal.Close)
	return temporal
}

// newTool is a tool whose tasks are runs of a workflow on the task queue of the test's name.
func newTool(t *testing.T, workflowType string) *catalog.Tool {
	return &catalog.Tool{
		Name: "tool", Workflow: workflowType, TaskQueue: t.Name(),
		Cancel: catalog.CancelRequest, Retention: time.Hour, PollInterval: time.Second,
	}
}

// newOwner is an owner without tasks.
func newOwner() string { return "owner-" + uuid.NewString() }

// signal sends a signal to a task's workflow.
func signal(t *testing.T, temporal client.Client, owner, id, name string) {
	t.Helper()
	require.NoError(t, temporal.SignalWorkflow(t.Context(), "mcp:"+owner+":"+id, "", name, nil))
}

// runID is the newest run of a task's workflow.
func runID(t *testing.T, temporal client.Client, owner, id string) string {
	description, err := temporal.DescribeWorkflow(t.Context(), "mcp:"+owner+":"+id, "")
	if !assert.NoError(t, err) {
		return ""
	}
	return description.WorkflowExecution.RunID
}

// create starts a task.
func create(t *testing.T, service *tasks.Service, owner string, start tasks.Start) *tasks.Task {
	t.Helper()
	task, err := service.Create(t.Context(), owner, start)
	require.NoError(t, err)
	return task
}

// get reads a task.
func get(t *testing.T, service *tasks.Service, owner, id string) *tasks.Task {
	t.Helper()
	task, err := service.Get(t.Context(), owner, id)
	require.NoError(t, err)
	return task
}

// startAt starts a workflow as a front end would whose clock shows createdAt.
func startAt(t *testing.T, temporal client.Client, run any, createdAt time.Time) (id, runID string) {
	t.Helper()
	id = uuid.NewString()
	started, err := temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: "mcp:anonymous:" + id, TaskQueue: t.Name(),
		Memo: map[string]any{signals.MetaMemo: signals.Meta{Version: 1, CreatedAt: createdAt, RetentionMs: 3_600_000}},
	}, run)
	require.NoError(t, err)
	return id, started.GetRunID()
}

func TestAwaitDoesNotCompareClocks(t *testing.T) {
	temporal := testenv.Client(t)
	service := newService(t, temporal, AskLater)
	id, _ := startAt(t, temporal, AskLater, time.Now().Add(10*time.Minute))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	task, err := service.Await(ctx, tasks.Anonymous, id)
	require.NoError(t, err)
	assert.Equal(t, tasks.InputRequired, task.Status)
}

func TestAwaitFollowsAReset(t *testing.T) {
	temporal := testenv.Client(t)
	service := newService(t, temporal, Nap)
	id, runID := startAt(t, temporal, Nap, time.Now())
	done := make(chan *tasks.Task, 1)
	go func() {
		task, err := service.Await(t.Context(), tasks.Anonymous, id)
		assert.NoError(t, err)
		done <- task
	}()
	resetPoint := firstWorkflowTaskCompleted(t, temporal, tasks.Anonymous, id, runID)
	_, err := temporal.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:                 "default",
		WorkflowExecution:         &commonpb.WorkflowExecution{WorkflowId: "mcp:anonymous:" + id, RunId: runID},
		WorkflowTaskFinishEventId: resetPoint,
		RequestId:                 uuid.NewString(),
	})
	require.NoError(t, err)
	assert.Equal(t, tasks.Completed, (<-done).Status)
}

func firstWorkflowTaskCompleted(t *testing.T, temporal client.Client, owner, id, runID string) int64 {
	t.Helper()
	history := temporal.GetWorkflowHistory(t.Context(), "mcp:"+owner+":"+id, runID, true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		require.NoError(t, err)
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			return event.GetEventId()
		}
	}
	require.Fail(t, "no workflow task completed")
	return 0
}

func TestAnAnswerOfARunHidesNothingOfTheNext(t *testing.T) {
	temporal := testenv.Client(t)
	service := newService(t, temporal, AskLater)
	id, runID := startAt(t, temporal, AskLater, time.Now())
	task, err := service.Await(t.Context(), tasks.Anonymous, id)
	require.NoError(t, err)
	require.Contains(t, task.InputRequests, "go-1")
	require.NoError(t, service.Answer(t.Context(), tasks.Anonymous, id, map[string]json.RawMessage{"go-1": json.RawMessage(`{"action":"decline"}`)}))
	_, err = temporal.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:                 "default",
		WorkflowExecution:         &commonpb.WorkflowExecution{WorkflowId: "mcp:anonymous:" + id, RunId: runID},
		WorkflowTaskFinishEventId: firstWorkflowTaskCompleted(t, temporal, tasks.Anonymous, id, runID),
		RequestId:                 uuid.NewString(),
		ResetReapplyExcludeTypes:  []enumspb.ResetReapplyExcludeType{enumspb.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL},
	})
	require.NoError(t, err)
	task, err = service.Await(t.Context(), tasks.Anonymous, id)
	require.NoError(t, err)
	assert.Contains(t, task.InputRequests, "go-1", "asked anew by the run after the reset")
}

func TestATaskTellsWhatItWasCreatedAs(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal), newOwner()
	keepAlive := 90 * time.Second
	created := create(t, service, owner, tasks.Start{Tool: newTool(t, "Stubborn"), Dialect: "d", KeepAlive: &keepAlive})
	for name, task := range map[string]*tasks.Task{"created": created, "read": get(t, service, owner, created.ID)} {
		assert.Equal(t, "tool", task.Tool, name)
		assert.Equal(t, "d", task.Dialect, name)
		assert.Equal(t, keepAlive, task.KeepAlive, name)
		assert.Equal(t, tasks.Working, task.Status, name)
		assert.True(t, task.Queued, name)
		assert.Nil(t, task.Progress, name)
	}
}

func TestATaskIsQueuedUntilAWorkerTakesIt(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal), newOwner()
	task := create(t, service, owner, tasks.Start{Tool: newTool(t, "Stubborn")})
	signal(t, temporal, owner, task.ID, "nothing")
	assert.True(t, get(t, service, owner, task.ID).Queued, "a signal is no work")
	stop := startWorker(t, temporal, Stubborn)
	require.Eventually(t, func() bool { return !get(t, service, owner, task.ID).Queued }, soon, 10*time.Millisecond)
	waits := func() bool {
		description, err := temporal.DescribeWorkflow(t.Context(), "mcp:"+owner+":"+task.ID, "")
		return assert.NoError(t, err) && description.RawResponse.GetPendingWorkflowTask() == nil
	}
	require.Eventually(t, waits, soon, 10*time.Millisecond)
	stop()
	signal(t, temporal, owner, task.ID, "nothing")
	assert.False(t, get(t, service, owner, task.ID).Queued, "without a worker again, but it has begun")
}

func TestARunThatGoesOnIsNotQueued(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal), newOwner()
	stop := startWorker(t, temporal, Renew)
	task := create(t, service, owner, tasks.Start{Tool: newTool(t, "Renew"), Call: catalog.Call{Arguments: []json.RawMessage{json.RawMessage("1")}}})
	first := runID(t, temporal, owner, task.ID)
	signal(t, temporal, owner, task.ID, "next")
	require.Eventually(t, func() bool { return runID(t, temporal, owner, task.ID) != first }, soon, 10*time.Millisecond)
	stop()
	assert.False(t, get(t, service, owner, task.ID).Queued)
}

func TestCancelRequested(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal), newOwner()
	terminated := newTool(t, "Stubborn")
	terminated.Cancel = catalog.CancelTerminate
	byClient := create(t, service, owner, tasks.Start{Tool: terminated})
	byPerson := create(t, service, owner, tasks.Start{Tool: terminated})
	deaf := create(t, service, owner, tasks.Start{Tool: newTool(t, "Stubborn")})
	assert.False(t, get(t, service, owner, deaf.ID).CancelRequested)

	require.NoError(t, service.Cancel(t.Context(), owner, byClient.ID))
	task := get(t, service, owner, byClient.ID)
	assert.Equal(t, tasks.Cancelled, task.Status)
	assert.True(t, task.CancelRequested)

	require.NoError(t, temporal.TerminateWorkflow(t.Context(), "mcp:"+owner+":"+byPerson.ID, "", "enough"))
	task = get(t, service, owner, byPerson.ID)
	assert.Equal(t, tasks.Cancelled, task.Status)
	assert.False(t, task.CancelRequested)

	require.NoError(t, service.Cancel(t.Context(), owner, deaf.ID))
	task = get(t, service, owner, deaf.ID)
	assert.Equal(t, tasks.Working, task.Status)
	assert.True(t, task.CancelRequested, "at once, and without a worker")
	defer startWorker(t, temporal, Stubborn)()
	signal(t, temporal, owner, deaf.ID, "next")
	task, err := service.Await(t.Context(), owner, deaf.ID)
	require.NoError(t, err)
	assert.Equal(t, tasks.Completed, task.Status)
	assert.True(t, task.CancelRequested, "though it completed")
}

func TestTaskIDs(t *testing.T) {
	service, owner := newService(t, testenv.Client(t)), newOwner()
	for name, test := range map[string]struct {
		id    string
		fresh bool
		valid bool
	}{
		"made by the server": {"", false, true},
		"one character":      {"!", true, true},
		"256 characters":     {strings.Repeat("~", 256), true, true},
		"with a colon":       {"a:b c", true, true},
		"empty":              {"", true, false},
		"too long":           {strings.Repeat("x", 257), false, false},
		"not ASCII":          {"tâche", false, false},
		"not printable":      {"a\nb", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			task, err := service.Create(t.Context(), owner, tasks.Start{ID: test.id, New: test.fresh, Tool: newTool(t, "Nap")})
			if !test.valid {
				var invalid *tasks.InvalidInputError
				require.ErrorAs(t, err, &invalid)
				assert.EqualError(t, err, "the task ID has to be 1 to 256 printable ASCII characters")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, task.ID, get(t, service, owner, task.ID).ID)
		})
	}
}

func TestANewTaskNeedsANewID(t *testing.T) {
	service, owner := newService(t, testenv.Client(t)), newOwner()
	start := tasks.Start{ID: "mine", New: true, Tool: newTool(t, "Nap")}
	first := create(t, service, owner, start)
	_, err := service.Create(t.Context(), owner, start)
	assert.ErrorIs(t, err, tasks.ErrExists)
	create(t, service, newOwner(), start) // IDs are an owner's own
	start.New = false
	assert.Equal(t, first.CreatedAt, create(t, service, owner, start).CreatedAt, "the same task")
}

// TestATaskWhoseEndIsLost: a history that is damaged or gone is none of the client's fault, and it has to hear of it.
func TestATaskWhoseEndIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(*workflowservice.GetWorkflowExecutionHistoryResponse) error
		says   string
	}{
		"no close event": {func(history *workflowservice.GetWorkflowExecutionHistoryResponse) error {
			history.History.Events = nil
			return nil
		}, "the workflow has ended, but Temporal has lost the event that says how"},
		"no history": {func(*workflowservice.GetWorkflowExecutionHistoryResponse) error {
			return status.Error(codes.NotFound, "history is gone")
		}, "the workflow has ended, but Temporal has lost the event that says how"},
		"damaged history": {func(*workflowservice.GetWorkflowExecutionHistoryResponse) error {
			return status.Error(codes.DataLoss, "history is damaged")
		}, "the workflow has ended, but Temporal has lost the event that says how"},
		"another kind of event": {func(history *workflowservice.GetWorkflowExecutionHistoryResponse) error {
			history.History.Events[0].EventType = enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW
			return nil
		}, "the workflow ended in an unexpected way: WorkflowExecutionContinuedAsNew"},
	} {
		t.Run(name, func(t *testing.T) {
			temporal := tampered(t, func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
				err := invoke(ctx, method, req, reply, cc, opts...)
				if history, ok := reply.(*workflowservice.GetWorkflowExecutionHistoryResponse); ok && err == nil {
					return test.damage(history)
				}
				return err
			})
			service, owner := newService(t, temporal), newOwner()
			id := create(t, service, owner, tasks.Start{Tool: newTool(t, "Nap")}).ID
			require.NoError(t, temporal.TerminateWorkflow(t.Context(), "mcp:"+owner+":"+id, "", ""))
			task := get(t, service, owner, id)
			assert.True(t, task.Undetermined)
			assert.Equal(t, tasks.Failed, task.Status)
			assert.Equal(t, &signals.RPCError{Code: -32603, Message: test.says}, task.Error)
		})
	}
}
