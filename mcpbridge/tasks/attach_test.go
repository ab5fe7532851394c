package tasks_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/tasks"
)

// begin starts a workflow as somebody else does.
func begin(t *testing.T, temporal client.Client, id string, run any, args ...any) client.WorkflowRun {
	t.Helper()
	started, err := temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: t.Name()}, run, args...)
	require.NoError(t, err)
	return started
}

// newAttached is a service with one tool, which attaches to workflows, and a worker.
func newAttached(t *testing.T, temporal client.Client, workflowID string, runs ...any) (*tasks.Service, *catalog.Tool) {
	t.Helper()
	t.Cleanup(startWorker(t, temporal, runs...))
	tool, err := catalog.NewTool(catalog.Tool{Name: "follow", Attach: &catalog.Attach{WorkflowID: workflowID}})
	require.NoError(t, err)
	service, err := tasks.New(temporal, tasks.Options{Tool: func(name string) (*catalog.Tool, bool) { return tool, name == tool.Name }})
	require.NoError(t, err)
	require.NoError(t, service.Check(t.Context()))
	return service, tool
}

// regrant changes what a tool may attach to, as a new version of its catalog does.
func regrant(t *testing.T, tool *catalog.Tool, workflowID string) {
	t.Helper()
	changed, err := catalog.NewTool(catalog.Tool{Name: tool.Name, Attach: &catalog.Attach{WorkflowID: workflowID}})
	require.NoError(t, err)
	tool.Attach = changed.Attach
}

func TestAttachedTasksFollowWorkflowsOfOthers(t *testing.T) {
	temporal := testenv.Client(t)
	prefix := "nightly-" + uuid.NewString() + "-"
	service, tool := newAttached(t, temporal, prefix+"*", Renew)
	owner, id := newOwner(), prefix+"a:b"
	begin(t, temporal, id, Renew, 1)

	task := create(t, service, owner, tasks.Start{Tool: tool, Call: catalog.Call{WorkflowID: id}})
	assert.Equal(t, tasks.Working, task.Status)
	assert.Equal(t, "follow", task.Tool)
	again := get(t, service, owner, task.ID)
	assert.Equal(t, task.ID, again.ID)
	assert.True(t, tasks.Shared(task.ID))

	require.NoError(t, temporal.SignalWorkflow(t.Context(), id, "", "next", nil))
	require.Eventually(t, func() bool {
		description, err := temporal.DescribeWorkflow(t.Context(), id, "")
		return assert.NoError(t, err) && description.WorkflowExecution.RunID != runOf(task)
	}, soon, 50*time.Millisecond, "it continues as new")
	renewed := get(t, service, owner, task.ID)
	assert.Equal(t, tasks.Working, renewed.Status)
	assert.Equal(t, task.ID, renewed.ID)
	assert.Equal(t, task.CreatedAt, renewed.CreatedAt)

	require.NoError(t, temporal.SignalWorkflow(t.Context(), id, "", "next", nil))
	ended, err := service.Await(t.Context(), owner, task.ID)
	require.NoError(t, err)
	assert.Equal(t, tasks.Completed, ended.Status)

	begin(t, temporal, id, Renew, 0) // the ID is in use again
	fresh, err := tasks.New(temporal, tasks.Options{Tool: func(string) (*catalog.Tool, bool) { return tool, true }})
	require.NoError(t, err)
	assert.Equal(t, tasks.Completed, get(t, fresh, owner, task.ID).Status, "the task is still the one it was")
	assert.NotEqual(t, task.ID, create(t, service, owner, tasks.Start{Tool: tool, Call: catalog.Call{WorkflowID: id}}).ID)

	assert.ErrorContains(t, service.Delete(t.Context(), owner, task.ID), "not the caller's to delete")
	assert.Empty(t, listAll(t, service, owner, 10)[0])
}

// runOf is the first run of an attached task.
func runOf(task *tasks.Task) string { return task.ID[len("attached:follow:"):][:36] }

func TestAttachTakesTheNewestThatMatches(t *testing.T) {
	temporal := testenv.Client(t)
	prefix := "nightly-" + uuid.NewString() + "-"
	service, tool := newAttached(t, temporal, prefix+"*", Stubborn)
	attach := func() (*tasks.Task, error) {
		return service.Create(t.Context(), newOwner(), tasks.Start{Tool: tool, Call: catalog.Call{WorkflowID: prefix, Newest: true}})
	}
	_, err := attach()
	assert.EqualError(t, err, `no workflow has an ID that begins with "`+prefix+`"`)
	for _, id := range []string{prefix + "1", prefix + "2"} {
		run := begin(t, temporal, id, Stubborn)
		require.Eventually(t, func() bool {
			task, err := attach()
			return err == nil && runOf(task) == run.GetRunID()
		}, soon, 50*time.Millisecond)
	}
	require.NoError(t, temporal.SignalWorkflow(t.Context(), prefix+"2", "", "next", nil))
	require.Eventually(t, func() bool {
		task, err := attach()
		return assert.NoError(t, err) && task.ID[len(task.ID)-1] == '1'
	}, soon, 50*time.Millisecond, "running ones come first")
}

func TestWhatToolsMayNotAttachTo(t *testing.T) {
	temporal := testenv.Client(t)
	id := "nightly-" + uuid.NewString()
	service, tool := newAttached(t, temporal, "nightly-*", Stubborn)
	owner := newOwner()
	begin(t, temporal, id, Stubborn)
	attached := create(t, service, owner, tasks.Start{Tool: tool, Call: catalog.Call{WorkflowID: id}})
	others := create(t, service, newOwner(), tasks.Start{Tool: newTool(t, "Stubborn")})

	regrant(t, tool, "daily-*")
	_, err := service.Get(t.Context(), owner, attached.ID)
	assert.ErrorIs(t, err, tasks.ErrNotFound, "the catalog does not grant it any more")
	_, err = service.Create(t.Context(), owner, tasks.Start{Tool: tool, Call: catalog.Call{WorkflowID: "daily-unknown"}})
	assert.EqualError(t, err, `no workflow has the ID "daily-unknown"`)
	_, err = service.Create(t.Context(), owner, tasks.Start{ID: "mine", New: true, Tool: tool, Call: catalog.Call{WorkflowID: id}})
	assert.ErrorContains(t, err, "without a task ID of your own")

	regrant(t, tool, "m*")
	for _, workflow := range []string{"mcp:" + owner + ":x", "mcp:x:" + others.ID} {
		_, err = service.Create(t.Context(), owner, tasks.Start{Tool: tool, Call: catalog.Call{WorkflowID: workflow}})
		assert.ErrorContains(t, err, "no workflow has the ID", "callers' own workflows")
	}
	for _, unknown := range []string{"attached:", "attached:follow", "attached:follow:run", "attached:other:run:" + id, "attached:follow::" + id} {
		_, err = service.Get(t.Context(), owner, unknown)
		assert.ErrorIs(t, err, tasks.ErrNotFound, unknown)
	}
}

func TestAttachedTasksDoOnlyWhatIsGranted(t *testing.T) {
	temporal := testenv.Client(t)
	id := "nightly-" + uuid.NewString()
	service, tool := newAttached(t, temporal, "nightly-*", AskLater)
	owner := newOwner()
	begin(t, temporal, id, AskLater)
	task := create(t, service, owner, tasks.Start{Tool: tool, Call: catalog.Call{WorkflowID: id}})
	assert.EqualError(t, service.Cancel(t.Context(), owner, task.ID), "follow lets callers follow the workflow, but not cancel it")
	for begin := time.Now(); time.Since(begin) < 2*time.Second; time.Sleep(200 * time.Millisecond) {
		require.Equal(t, tasks.Working, get(t, service, owner, task.ID).Status, "a question that the caller may not answer is not shown")
	}

	tool.Attach.Answer = true
	asked, err := service.Await(t.Context(), owner, task.ID)
	require.NoError(t, err)
	require.Contains(t, asked.InputRequests, "go-1")
	require.NoError(t, service.Answer(t.Context(), owner, task.ID, map[string]json.RawMessage{"go-1": json.RawMessage(`{"action":"decline"}`)}))
	ended, err := service.Await(t.Context(), owner, task.ID)
	require.NoError(t, err)
	assert.Equal(t, tasks.Completed, ended.Status)

	second := "nightly-" + uuid.NewString()
	begin(t, temporal, second, AskLater)
	tool.Attach.Cancel = true
	task = create(t, service, owner, tasks.Start{Tool: tool, Call: catalog.Call{WorkflowID: second}})
	require.NoError(t, service.Cancel(t.Context(), owner, task.ID))
	ended, err = service.Await(t.Context(), owner, task.ID)
	require.NoError(t, err)
	assert.Equal(t, tasks.Cancelled, ended.Status)
}
