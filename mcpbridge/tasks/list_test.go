package tasks_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/tasks"
)

// listAll pages through an owner's tasks and returns the pages' IDs. What it lists is what Get returns.
func listAll(t *testing.T, service *tasks.Service, owner string, size int) (pages [][]string) {
	t.Helper()
	var page []byte
	for {
		listed, next, err := service.List(t.Context(), owner, page, size)
		require.NoError(t, err)
		var ids []string
		for _, task := range listed {
			now := get(t, service, owner, task.ID)
			assert.Equal(t, now.Status, task.Status)
			assert.Equal(t, now.CreatedAt, task.CreatedAt)
			ids = append(ids, task.ID)
		}
		pages = append(pages, ids)
		if page = next; len(page) == 0 {
			return pages
		}
	}
}

// createSome starts tasks and returns their IDs, newest first.
func createSome(t *testing.T, service *tasks.Service, owner string, n int) (ids []string) {
	tool := newTool(t, "Nap")
	tool.Cancel = catalog.CancelTerminate
	for range n {
		ids = append([]string{create(t, service, owner, tasks.Start{Tool: tool}).ID}, ids...)
	}
	return ids
}

func TestListHasEveryTaskOnceNewestFirst(t *testing.T) {
	temporal := testenv.Client(t)
	here, elsewhere, owner := newService(t, temporal), newService(t, temporal), newOwner()
	createSome(t, here, newOwner(), 2) // another owner's
	ids := createSome(t, here, owner, 7)
	assert.Equal(t, ids, slices.Concat(listAll(t, here, owner, 3)...), "at once")
	require.Eventually(t, func() bool {
		pages := listAll(t, elsewhere, owner, 3)
		return slices.Equal(ids, slices.Concat(pages...)) && len(pages) == 3
	}, soon, 100*time.Millisecond, "in a process that did not create them")
	assert.Equal(t, [][]string{nil}, listAll(t, here, newOwner(), 3))
}

func TestListShowsATaskAtOnce(t *testing.T) {
	service, owner := newService(t, testenv.Client(t)), newOwner()
	for range 20 {
		id := createSome(t, service, owner, 1)[0]
		page, _, err := service.List(t.Context(), owner, nil, 1)
		require.NoError(t, err)
		require.NotEmpty(t, page)
		assert.Equal(t, id, page[0].ID)
		require.NoError(t, service.Cancel(t.Context(), owner, id))
		pages := slices.Concat(listAll(t, service, owner, 1)...)
		assert.Contains(t, pages, id, "also when it has ended")
	}
}

func TestListRepeatsNoTaskOnALaterPage(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal), newOwner()
	ids := createSome(t, service, owner, 5)
	for _, id := range ids {
		require.NoError(t, service.Cancel(t.Context(), owner, id))
	}
	require.Eventually(t, func() bool { // visibility shows all, two on a page
		pages := listAll(t, newService(t, temporal), owner, 2)
		return len(pages) == 3 && len(slices.Concat(pages...)) == 5
	}, soon, 100*time.Millisecond)
	pages := listAll(t, service, owner, 2)
	assert.ElementsMatch(t, ids, pages[0], "all are recent")
	assert.Len(t, slices.Concat(pages...), 5)
}

func TestListSkipsEmptyPages(t *testing.T) {
	temporal := testenv.Client(t)
	creator, owner := newService(t, temporal), newOwner()
	kept := createSome(t, creator, owner, 1)[0]
	require.NoError(t, creator.Cancel(t.Context(), owner, kept))
	tool := newTool(t, "Nap")
	tool.Cancel = catalog.CancelTerminate
	for range 3 { // these expire at their end, and are listed before the other
		id := create(t, creator, owner, tasks.Start{Tool: tool, KeepAlive: new(time.Duration(0))}).ID
		require.NoError(t, creator.Cancel(t.Context(), owner, id))
	}
	lister := newService(t, temporal)
	require.Eventually(t, func() bool { // visibility shows all
		query := fmt.Sprintf(`WorkflowId STARTS_WITH "mcp:%s:" AND ExecutionStatus != "Running"`, owner)
		ended, err := temporal.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		return assert.NoError(t, err) && ended.GetCount() == 4
	}, soon, 100*time.Millisecond)
	require.Eventually(t, func() bool {
		page, _, err := lister.List(t.Context(), owner, nil, 2)
		return assert.NoError(t, err) && len(page) == 1 && page[0].ID == kept
	}, soon, 100*time.Millisecond)
	none, next, err := lister.List(t.Context(), owner, nil, 1)
	require.NoError(t, err)
	assert.Empty(t, none, "it does not go on for ever")
	page, _, err := lister.List(t.Context(), owner, next, 1)
	require.NoError(t, err)
	require.Len(t, page, 1)
	assert.Equal(t, kept, page[0].ID)
}

func TestListHasATaskOfSeveralRunsOnce(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal, Renew, Nap), newOwner()
	renewed := create(t, service, owner, tasks.Start{Tool: newTool(t, "Renew"), Call: catalog.Call{Arguments: []json.RawMessage{json.RawMessage("1")}}})
	first := runID(t, temporal, owner, renewed.ID)
	signal(t, temporal, owner, renewed.ID, "next")
	require.Eventually(t, func() bool { return runID(t, temporal, owner, renewed.ID) != first }, soon, 10*time.Millisecond)

	reset := create(t, service, owner, tasks.Start{Tool: newTool(t, "Nap")})
	_, err := service.Await(t.Context(), owner, reset.ID)
	require.NoError(t, err)
	first = runID(t, temporal, owner, reset.ID)
	_, err = temporal.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace:                 "default",
		WorkflowExecution:         &commonpb.WorkflowExecution{WorkflowId: "mcp:" + owner + ":" + reset.ID, RunId: first},
		WorkflowTaskFinishEventId: firstWorkflowTaskCompleted(t, temporal, owner, reset.ID, first),
		RequestId:                 uuid.NewString(),
	})
	require.NoError(t, err)

	fresh := newService(t, temporal)
	_, err = fresh.Await(t.Context(), owner, reset.ID)
	require.NoError(t, err)
	for size := 1; size <= 4; size++ {
		require.Eventually(t, func() bool {
			ids := slices.Concat(listAll(t, fresh, owner, size)...)
			return slices.Equal([]string{renewed.ID, reset.ID}, ids)
		}, soon, 100*time.Millisecond, "pages of %d", size)
	}
}

func TestAnOwnerIsNoPartOfTheQuery(t *testing.T) {
	temporal := testenv.Client(t)
	service := newService(t, temporal)
	createSome(t, service, "anonymous", 1)
	for _, owner := range []string{
		`x" OR WorkflowId STARTS_WITH "mcp:`,
		`x\" OR WorkflowId STARTS_WITH \"mcp:`,
		`x"" OR WorkflowId STARTS_WITH ""mcp:`,
		`\`, `%`, `_`, `anonymou_`, `'`, ``,
	} {
		listed, next, err := service.List(t.Context(), owner, nil, 10)
		require.NoError(t, err, owner)
		assert.Empty(t, listed, owner)
		assert.Empty(t, next, owner)
	}
}

func TestListRefusesAnUnusableToken(t *testing.T) {
	service := newService(t, testenv.Client(t))
	_, _, err := service.List(t.Context(), newOwner(), []byte("garbage"), 10)
	var invalid *tasks.InvalidInputError
	require.ErrorAs(t, err, &invalid)
	assert.EqualError(t, err, "the list cannot be continued here: begin again with its first page")
}
