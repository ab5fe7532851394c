package tasks_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/tasks"
	"taskbridge/signals"
)

// Fail fails, after an activity that does.
func Fail(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         &sdk.RetryPolicy{InitialInterval: 2 * time.Second, MaximumAttempts: 2},
	})
	return workflow.ExecuteActivity(ctx, "Break").Get(ctx, nil)
}

// Flaky fails in its first run, and then returns a report.
func Flaky(ctx workflow.Context) (map[string]any, error) {
	if workflow.GetInfo(ctx).Attempt == 1 {
		return nil, sdk.NewApplicationError("not yet", "Flaky")
	}
	return map[string]any{
		"report": map[string]any{"url": "https://example.com/1", "rows": json.Number("12345678901234567890")},
		"items":  []string{"a", "b"},
	}, nil
}

func TestRetriesAreRunsOfOneTask(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal, Flaky), newOwner()
	tool := newTool(t, "Flaky")
	tool.Retry = &catalog.Retry{InitialInterval: 10 * time.Millisecond, MaximumAttempts: 2}
	tool.RunTimeout, tool.TaskTimeout = 20*time.Second, 5*time.Second
	tool.Priority = &catalog.Priority{Key: 2, FairnessKey: "team", FairnessWeight: 1.5}
	task := create(t, service, owner, tasks.Start{Tool: tool})

	described, err := temporal.DescribeWorkflow(t.Context(), "mcp:"+owner+":"+task.ID, "")
	require.NoError(t, err)
	description := described.RawResponse
	assert.Equal(t, 20*time.Second, description.GetExecutionConfig().GetWorkflowRunTimeout().AsDuration())
	assert.Equal(t, 5*time.Second, description.GetExecutionConfig().GetDefaultWorkflowTaskTimeout().AsDuration())
	assert.EqualValues(t, 2, description.GetWorkflowExecutionInfo().GetPriority().GetPriorityKey())
	assert.Equal(t, "team", description.GetWorkflowExecutionInfo().GetPriority().GetFairnessKey())

	task, err = service.Await(t.Context(), owner, task.ID)
	require.NoError(t, err)
	assert.Equal(t, tasks.Completed, task.Status)
	assert.False(t, task.Result.IsError)
}

func TestResultPathPicksAPart(t *testing.T) {
	service, owner := newService(t, testenv.Client(t), Flaky), newOwner()
	text := func(text string) *signals.ToolResult {
		return &signals.ToolResult{Content: []json.RawMessage{signals.Text(text)}}
	}
	report := text(`{"rows":12345678901234567890,"url":"https://example.com/1"}`)
	report.StructuredContent = json.RawMessage(`{"rows":12345678901234567890,"url":"https://example.com/1"}`)
	for path, want := range map[string]*signals.ToolResult{
		"/report":      report,
		"/report/url":  text("https://example.com/1"),
		"/report/rows": text("12345678901234567890"),
		"/items/1":     text("b"),
		"/items/2":     nil,
		"/items/-1":    nil,
		"/nothing":     nil,
	} {
		t.Run(path, func(t *testing.T) {
			tool := newTool(t, "Flaky")
			tool.TaskQueue = "TestResultPathPicksAPart" // the worker's
			tool.Retry = &catalog.Retry{InitialInterval: 10 * time.Millisecond}
			tool.ResultPath = path
			task, err := service.Await(t.Context(), owner, create(t, service, owner, tasks.Start{Tool: tool}).ID)
			require.NoError(t, err)
			if want == nil {
				assert.Equal(t, tasks.Failed, task.Status)
				assert.Contains(t, task.Error.Message, "resultPath "+path)
				return
			}
			assert.Equal(t, want, task.Result)
		})
	}
}

func TestEncodedFailuresAreDecoded(t *testing.T) {
	temporal, err := client.Dial(client.Options{
		HostPort:         testenv.Temporal(t).Address(),
		Logger:           testenv.QuietLogger(),
		FailureConverter: sdk.NewDefaultFailureConverter(sdk.DefaultFailureConverterOptions{EncodeCommonAttributes: true}),
	})
	require.NoError(t, err)
	t.Cleanup(temporal.Close)
	w := worker.New(temporal, t.Name(), worker.Options{})
	w.RegisterWorkflow(Fail)
	w.RegisterActivityWithOptions(func() error { return sdk.NewApplicationError("the disk is full", "Disk") }, activity.RegisterOptions{Name: "Break"})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	service, owner := newService(t, temporal), newOwner()
	id := create(t, service, owner, tasks.Start{Tool: newTool(t, "Fail")}).ID

	require.Eventually(t, func() bool {
		return get(t, service, owner, id).StatusMessage == "Break is in attempt 2 after: the disk is full"
	}, 20*time.Second, 20*time.Millisecond)
	task, err := service.Await(t.Context(), owner, id)
	require.NoError(t, err)
	assert.True(t, task.Result.IsError)
	assert.JSONEq(t, `{"type":"text","text":"the disk is full"}`, string(task.Result.Content[0]))
}
