package tasks_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/tasks"
)

// otherNamespace is a namespace of the test's own.
func otherNamespace(t *testing.T) tasks.Namespace {
	t.Helper()
	name := "other-" + uuid.NewString()
	_, err := testenv.Client(t).WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	temporal, err := client.Dial(client.Options{HostPort: testenv.Temporal(t).Address(), Namespace: name, Logger: testenv.QuietLogger()})
	require.NoError(t, err)
	t.Cleanup(temporal.Close)
	require.Eventually(t, func() bool {
		_, err := temporal.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{})
		return err == nil
	}, soon, 100*time.Millisecond)
	return tasks.Namespace{Name: name, Temporal: temporal}
}

func TestTasksOfSeveralNamespaces(t *testing.T) {
	temporal, other := testenv.Client(t), otherNamespace(t)
	t.Cleanup(startWorker(t, other.Temporal, AskLater, Stubborn))
	newFront := func() *tasks.Service {
		service, err := tasks.New(temporal, tasks.Options{Others: []tasks.Namespace{other}})
		require.NoError(t, err)
		require.NoError(t, service.Check(t.Context()))
		return service
	}
	service, owner := newFront(), newOwner()
	there := newTool(t, "Stubborn")
	there.Namespace = other.Name
	here := create(t, service, owner, tasks.Start{Tool: newTool(t, "Stubborn")})
	far := create(t, service, owner, tasks.Start{Tool: there})
	assert.True(t, get(t, service, owner, here.ID).Queued)

	replica := newFront()
	assert.Equal(t, tasks.Working, get(t, replica, owner, far.ID).Status)
	assert.Equal(t, tasks.Working, get(t, replica, owner, here.ID).Status)
	assert.Equal(t, tasks.Working, get(t, replica, owner, far.ID).Status, "which it has found before")
	_, err := replica.Get(t.Context(), owner, "unknown")
	assert.ErrorIs(t, err, tasks.ErrNotFound)

	require.Eventually(t, func() bool {
		ids := slices.Concat(listAll(t, replica, owner, 1)...)
		slices.Sort(ids)
		return assert.ObjectsAreEqual(slices.Sorted(slices.Values([]string{here.ID, far.ID})), ids)
	}, soon, 100*time.Millisecond)

	require.NoError(t, other.Temporal.SignalWorkflow(t.Context(), "mcp:"+owner+":"+far.ID, "", "next", nil))
	ended, err := replica.Await(t.Context(), owner, far.ID)
	require.NoError(t, err)
	assert.Equal(t, tasks.Completed, ended.Status)
	require.NoError(t, replica.Delete(t.Context(), owner, far.ID))
}

func TestAnIDIsOneTaskInAllNamespaces(t *testing.T) {
	other, owner := otherNamespace(t), newOwner()
	service, err := tasks.New(testenv.Client(t), tasks.Options{Others: []tasks.Namespace{other}})
	require.NoError(t, err)
	there := newTool(t, "Stubborn")
	there.Namespace = other.Name
	create(t, service, owner, tasks.Start{ID: "mine", New: true, Tool: there})
	_, err = service.Create(t.Context(), owner, tasks.Start{ID: "mine", New: true, Tool: newTool(t, "Stubborn")})
	assert.ErrorIs(t, err, tasks.ErrExists)
}

func TestAToolNeedsAConnectionToItsNamespace(t *testing.T) {
	service := newService(t, testenv.Client(t))
	tool := newTool(t, "Stubborn")
	tool.Namespace = "elsewhere"
	_, err := service.Create(t.Context(), newOwner(), tasks.Start{Tool: tool})
	assert.EqualError(t, err, `tool tool runs in namespace "elsewhere", to which there is no connection`)

	service, err = tasks.New(testenv.Client(t), tasks.Options{Others: []tasks.Namespace{{Name: "elsewhere", Temporal: testenv.Client(t)}}})
	require.NoError(t, err)
	assert.ErrorContains(t, service.Check(t.Context()), `temporal has no namespace "elsewhere"`)
}

// TestWhatAToolAddsToItsWorkflows: memo and search attributes are there for people and other programs.
func TestWhatAToolAddsToItsWorkflows(t *testing.T) {
	temporal := testenv.Client(t)
	_, err := temporal.OperatorService().AddSearchAttributes(t.Context(), &operatorservice.AddSearchAttributesRequest{
		Namespace: "default",
		SearchAttributes: map[string]enumspb.IndexedValueType{
			"Customer": enumspb.INDEXED_VALUE_TYPE_KEYWORD, "Items": enumspb.INDEXED_VALUE_TYPE_INT, "Express": enumspb.INDEXED_VALUE_TYPE_BOOL,
		},
	})
	require.NoError(t, err)
	service, owner := newService(t, temporal), newOwner()
	task := create(t, service, owner, tasks.Start{Tool: newTool(t, "Stubborn"), Call: catalog.Call{
		IDSuffix: "for-ada",
		Memo:     map[string]json.RawMessage{"ticket": json.RawMessage(`{"n":9007199254740993}`)},
		SearchAttributes: map[string]json.RawMessage{
			"Customer": json.RawMessage(`"a"`), "Items": json.RawMessage(`7`), "Express": json.RawMessage(`true`),
		},
	}})
	assert.Regexp(t, `^[0-9a-f-]{36}-for-ada$`, task.ID)
	description, err := temporal.DescribeWorkflow(t.Context(), "mcp:"+owner+":"+task.ID, "")
	require.NoError(t, err)
	info := description.RawResponse.GetWorkflowExecutionInfo()
	assert.Equal(t, `{"n":9007199254740993}`, string(info.GetMemo().GetFields()["ticket"].GetData()))
	fields := info.GetSearchAttributes().GetIndexedFields()
	assert.Equal(t, `"a"`, string(fields["Customer"].GetData()))
	assert.Equal(t, "Int", string(fields["Items"].GetMetadata()["type"]))
	require.Eventually(t, func() bool {
		query := `Customer = "a" AND Items = 7 AND Express = true AND WorkflowId = "mcp:` + owner + `:` + task.ID + `"`
		found, err := temporal.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: query})
		return assert.NoError(t, err) && found.GetCount() == 1
	}, soon, 100*time.Millisecond)
}
