package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/tasks"
)

func TestADeletedTaskIsGone(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal, Renew), newOwner()
	other := create(t, service, owner, tasks.Start{Tool: newTool(t, "Nowhere")}).ID
	start := tasks.Start{ID: "mine", New: true, Tool: newTool(t, "Renew"), Call: catalog.Call{Arguments: []json.RawMessage{json.RawMessage("1")}}}
	create(t, service, owner, start)
	first := runID(t, temporal, owner, "mine")
	signal(t, temporal, owner, "mine", "next")
	require.Eventually(t, func() bool { return runID(t, temporal, owner, "mine") != first }, soon, 10*time.Millisecond)
	signal(t, temporal, owner, "mine", "next")
	_, err := service.Await(t.Context(), owner, "mine")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		runs, err := temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Query: `WorkflowId = "mcp:` + owner + `:mine" AND ExecutionStatus != "Running"`,
		})
		return assert.NoError(t, err) && len(runs.Executions) == 2
	}, soon, 100*time.Millisecond)

	var deleted atomic.Bool
	reading, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop()
	for range 4 {
		readers.Go(func() {
			for reading.Err() == nil {
				after := deleted.Load()
				_, err := service.Get(reading, owner, "mine")
				if err == nil {
					assert.False(t, after, "read after its deletion")
				}
			}
		})
	}
	require.NoError(t, service.Delete(t.Context(), owner, "mine"))
	deleted.Store(true)
	for _, run := range []string{"", first} {
		require.Eventually(t, func() bool {
			_, err := temporal.DescribeWorkflow(t.Context(), "mcp:"+owner+":mine", run)
			var gone *serviceerror.NotFound
			return errors.As(err, &gone)
		}, soon, 10*time.Millisecond)
	}
	assert.ErrorIs(t, service.Delete(t.Context(), owner, "mine"), tasks.ErrNotFound)
	assert.Equal(t, [][]string{{other}}, listAll(t, service, owner, 10))

	stop()
	readers.Wait()
	create(t, service, owner, start)
	assert.Equal(t, tasks.Working, get(t, service, owner, "mine").Status, "another task of that ID")
}

func TestOnlyEndedTasksCanBeDeleted(t *testing.T) {
	service, owner := newService(t, testenv.Client(t)), newOwner()
	id := createSome(t, service, owner, 1)[0]
	err := service.Delete(t.Context(), owner, id)
	var invalid *tasks.InvalidInputError
	require.ErrorAs(t, err, &invalid)
	assert.EqualError(t, err, "the task is working: cancel it first, and delete it when it has ended")
	assert.Equal(t, tasks.Working, get(t, service, owner, id).Status)

	require.NoError(t, service.Cancel(t.Context(), owner, id))
	assert.ErrorIs(t, service.Delete(t.Context(), newOwner(), id), tasks.ErrNotFound)
	assert.ErrorIs(t, service.Delete(t.Context(), owner, "unknown"), tasks.ErrNotFound)
	assert.ErrorIs(t, service.Delete(t.Context(), owner, ""), tasks.ErrNotFound)
	assert.Equal(t, tasks.Cancelled, get(t, service, owner, id).Status)
}

// TestDeletionTakesTooLong: Temporal accepts a deletion at once and does it when it has the time, perhaps after the client's.
func TestDeletionTakesTooLong(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	requests := 0
	temporal := tampered(t, func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if _, ok := req.(*workflowservice.DeleteWorkflowExecutionRequest); !ok {
			return invoke(ctx, method, req, reply, cc, opts...)
		}
		if requests++; requests == 2 {
			cancel()
		}
		return nil
	})
	service, owner := newService(t, temporal), newOwner()
	id := createSome(t, service, owner, 1)[0]
	require.NoError(t, service.Cancel(t.Context(), owner, id))
	assert.EqualError(t, service.Delete(ctx, owner, id), "deletion of the task is under way: temporal finishes it by itself, usually within a minute")
	_, err := service.Get(t.Context(), owner, id)
	assert.ErrorIs(t, err, tasks.ErrNotFound)
	assert.Equal(t, [][]string{nil}, listAll(t, service, owner, 10))
}
