package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/workflows"
)

// connected has the commands of a test connect to the shared Temporal server.
func connected(t *testing.T) client.Client {
	t.Helper()
	t.Setenv("TEMPORAL_ADDRESS", testenv.Temporal(t).Address())
	return testenv.Client(t)
}

// order starts a workflow that no worker takes, and returns its ID.
func order(t *testing.T, temporal client.Client) string {
	t.Helper()
	id := "order-" + uuid.NewString()
	_, err := temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: "orders"}, "PlaceOrder",
		map[string]any{"customer": "Ada", "express": true})
	require.NoError(t, err)
	return id
}

func TestCatalogCheckLive(t *testing.T) {
	temporal := connected(t)
	worker := workflows.NewWorker(temporal, "live")
	require.NoError(t, worker.Start())
	t.Cleanup(worker.Stop)
	require.Eventually(t, func() bool {
		described, err := temporal.DescribeTaskQueue(t.Context(), "live", enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		return err == nil && len(described.GetPollers()) > 0
	}, 20*time.Second, 50*time.Millisecond)

	file := filepath.Join(t.TempDir(), "tools.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`version: 1
tools:
  deserted_tool: {description: d, workflow: Unknown, taskQueue: nobody}
  served: {description: d, workflow: Unknown, taskQueue: live}
`), 0o600))
	status, stdout, stderr := commandLine(t, "catalog", "check", "--live", file)
	assert.Equal(t, 1, status)
	assert.Equal(t, "taskbridge: errors on the Temporal server: 1\n", stderr)
	assert.Equal(t, `TOOL           NEEDS                    STATE
deserted_tool  namespace "default"      ok     exists
               task queue "nobody"      error  no worker polls it: start its worker
               workflow type "Unknown"  note   not seen, nor any other on this task queue: check the spelling of both
served         namespace "default"      ok     exists
               task queue "live"        ok     1 worker polls it
               workflow type "Unknown"  note   not seen, nor any other on this task queue: check the spelling of both
`, regexp.MustCompile(` +\n`).ReplaceAllString(stdout, "\n"))

	require.NoError(t, os.WriteFile(file, []byte(`version: 1
tools:
  served: {description: d, workflow: Unknown, taskQueue: live}
`), 0o600))
	t.Setenv("TASKBRIDGE_CATALOG", file)
	status, stdout, stderr = commandLine(t, "catalog", "check", "--live")
	assert.Zero(t, status, stderr)
	assert.Contains(t, stdout, "\nok: 1 tool(s)\n", "a note is no error")
}

func TestCatalogDraft(t *testing.T) {
	id := order(t, connected(t))
	status, stdout, stderr := commandLine(t, "catalog", "draft", "--workflow-id", id, "--name", "order")
	require.Zero(t, status, stderr)
	assert.NotContains(t, stdout, "Ada")
	drafted, err := catalog.Parse("draft.yaml", []byte(stdout))
	require.NoError(t, err)
	require.Len(t, drafted.Tools(), 1)
	tool := drafted.Tools()[0]
	assert.Equal(t, []string{"order", "PlaceOrder", "orders"}, []string{tool.Name, tool.Workflow, tool.TaskQueue})
	assert.NoError(t, tool.ValidateArguments([]byte(`{"customer":"Ada","express":true}`)))
	assert.Error(t, tool.ValidateArguments([]byte(`{"customer":1}`)))

	_, stdout, _ = commandLine(t, "catalog", "draft", "--workflow-id", id, "--examples", "--namespace", "default")
	assert.Contains(t, stdout, `such as "Ada"`)
}

func TestCatalogDraftOverwritesNothing(t *testing.T) {
	id, file := order(t, connected(t)), filepath.Join(t.TempDir(), "draft.yaml")
	status, stdout, stderr := commandLine(t, "catalog", "draft", "--workflow-id", id, "-o", file)
	require.Zero(t, status, stderr)
	assert.Empty(t, stdout)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Contains(t, string(written), "workflow: PlaceOrder")

	status, _, stderr = commandLine(t, "catalog", "draft", "--workflow-id", id, "--name", "other", "-o", file)
	assert.Equal(t, 1, status)
	assert.Equal(t, "taskbridge: "+file+" exists and stays as it is: choose another file for the draft\n", stderr)
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, written, after)
}

func TestWhatCatalogDraftCannotFind(t *testing.T) {
	temporal := connected(t)
	id, namespace := order(t, temporal), "drafts-"+uuid.NewString()
	_, err := temporal.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	draft := func(args ...string) (status int, stderr string) {
		status, _, stderr = commandLine(t, append([]string{"catalog", "draft"}, args...)...)
		return status, stderr
	}
	require.Eventually(t, func() bool {
		status, stderr := draft("--workflow-id", id, "--namespace", namespace)
		return status == 1 && assert.ObjectsAreEqual(stderr, "taskbridge: no execution has workflow ID \""+id+"\" here: "+
			"check the ID and the namespace; Temporal drops executions when the namespace's retention is over\n")
	}, 20*time.Second, 50*time.Millisecond, "a new namespace takes a while")

	status, stderr := draft("--workflow-id", id, "--namespace", "no-such-namespace")
	assert.Equal(t, 1, status)
	assert.Contains(t, stderr, "no-such-namespace")
	status, stderr = draft()
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, "name it with --workflow-id")
}
