package tasks_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"taskbridge/internal/testenv"
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

// Nap sleeps for some seconds.
func Nap(ctx workflow.Context) (string, error) { return "rested", workflow.Sleep(ctx, 3*time.Second) }

func newService(t *testing.T, temporal client.Client, run any) *tasks.Service {
	t.Helper()
	w := worker.New(temporal, t.Name(), workflows.WorkerOptions())
	w.RegisterWorkflow(run)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	service, err := tasks.New(temporal, tasks.Options{})
	require.NoError(t, err)
	return service
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
	resetPoint := firstWorkflowTaskCompleted(t, temporal, id, runID)
	_, err := temporal.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:                 "default",
		WorkflowExecution:         &commonpb.WorkflowExecution{WorkflowId: "mcp:anonymous:" + id, RunId: runID},
		WorkflowTaskFinishEventId: resetPoint,
		RequestId:                 uuid.NewString(),
	})
	require.NoError(t, err)
	assert.Equal(t, tasks.Completed, (<-done).Status)
}

func firstWorkflowTaskCompleted(t *testing.T, temporal client.Client, id, runID string) int64 {
	t.Helper()
	history := temporal.GetWorkflowHistory(t.Context(), "mcp:anonymous:"+id, runID, true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
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
		WorkflowTaskFinishEventId: firstWorkflowTaskCompleted(t, temporal, id, runID),
		RequestId:                 uuid.NewString(),
		ResetReapplyExcludeTypes:  []enumspb.ResetReapplyExcludeType{enumspb.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL},
	})
	require.NoError(t, err)
	task, err = service.Await(t.Context(), tasks.Anonymous, id)
	require.NoError(t, err)
	assert.Contains(t, task.InputRequests, "go-1", "asked anew by the run after the reset")
}
