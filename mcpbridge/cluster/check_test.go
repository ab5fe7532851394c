package cluster_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/cluster"
)

const soon = 20 * time.Second

func on(c client.Client) cluster.Cluster {
	return cluster.Cluster{Namespace: client.DefaultNamespace, Clients: map[string]client.Client{client.DefaultNamespace: c}}
}

func PlaceOrder(workflow.Context) error { return nil }

func Refund(workflow.Context) error { return nil }

// startWorker polls the task queue and returns once Temporal knows.
func startWorker(t *testing.T, c client.Client, queue string) {
	t.Helper()
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflow(PlaceOrder)
	w.RegisterWorkflow(Refund)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	require.Eventually(t, func() bool {
		described, err := c.DescribeTaskQueue(t.Context(), queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		return err == nil && len(described.GetPollers()) > 0
	}, soon, 50*time.Millisecond)
}

// execute runs a workflow, and returns once visibility has it.
func execute(t *testing.T, c client.Client, queue string, run any) {
	t.Helper()
	started, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: queue}, run)
	require.NoError(t, err)
	require.NoError(t, started.Get(t.Context(), nil))
	require.Eventually(t, func() bool {
		listed, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Query: `WorkflowId = "` + started.GetID() + `"`,
		})
		return err == nil && len(listed.GetExecutions()) > 0
	}, soon, 50*time.Millisecond)
}

func tool(name, workflowType, queue string) *catalog.Tool {
	return &catalog.Tool{Name: name, Workflow: workflowType, TaskQueue: queue}
}

// check returns what was found of one tool: level and message by subject.
func check(t *testing.T, c client.Client, tool *catalog.Tool) map[string]cluster.Finding {
	t.Helper()
	findings, err := on(c).Check(t.Context(), []*catalog.Tool{tool})
	require.NoError(t, err)
	by := map[string]cluster.Finding{}
	for _, f := range findings {
		assert.Equal(t, tool.Name, f.Tool)
		by[f.Subject] = f
	}
	return by
}

func TestAToolThatWorks(t *testing.T) {
	c, queue := testenv.Client(t), uuid.NewString()
	startWorker(t, c, queue)
	execute(t, c, queue, PlaceOrder)
	found := check(t, c, tool("order", "PlaceOrder", queue))
	require.Len(t, found, 3)
	for _, f := range found {
		assert.Equal(t, cluster.OK, f.Level, f)
	}
	assert.Equal(t, "exists", found[`namespace "default"`].Message)
	assert.Equal(t, "1 worker polls it", found[`task queue "`+queue+`"`].Message)
	assert.Contains(t, found[`workflow type "PlaceOrder"`].Message, "last run started 20")
}

func TestATaskQueueWithoutWorkers(t *testing.T) {
	c, queue := testenv.Client(t), uuid.NewString()
	found := check(t, c, tool("order", "PlaceOrder", queue))
	workers := found[`task queue "`+queue+`"`]
	assert.Equal(t, cluster.Error, workers.Level)
	assert.Equal(t, "no worker polls it: start its worker", workers.Message)
	runs := found[`workflow type "PlaceOrder"`]
	assert.Equal(t, cluster.Note, runs.Level)
	assert.Contains(t, runs.Message, "check the spelling of both")
}

func TestAMisspeltWorkflowType(t *testing.T) {
	c, queue := testenv.Client(t), uuid.NewString()
	startWorker(t, c, queue)
	execute(t, c, queue, PlaceOrder)
	execute(t, c, queue, Refund)
	runs := check(t, c, tool("order", `Place"Ordr\`, queue))[`workflow type "Place\"Ordr\\"`]
	assert.Equal(t, cluster.Note, runs.Level)
	assert.Equal(t, "not seen on this task queue: check the spelling; "+
		`did you mean "PlaceOrder", "Refund"?`, runs.Message)
}

func TestTheSameTypeOnTwoTaskQueues(t *testing.T) {
	c, here, there := testenv.Client(t), uuid.NewString(), uuid.NewString()
	startWorker(t, c, here)
	execute(t, c, here, PlaceOrder)
	tools := []*catalog.Tool{tool("here", "PlaceOrder", here), tool("there", "PlaceOrder", there)}
	findings, err := on(c).Check(t.Context(), tools)
	require.NoError(t, err)
	require.Len(t, findings, 6)
	assert.Equal(t, cluster.OK, findings[2].Level)
	assert.Equal(t, cluster.Note, findings[5].Level, "a run elsewhere is none here")
}

// createNamespace returns the name of a new one.
func createNamespace(t *testing.T, c client.Client) string {
	t.Helper()
	name := "ns-" + uuid.NewString()
	_, err := c.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	return name
}

func TestNamespaces(t *testing.T) {
	c := testenv.Client(t)
	lost := tool("lost", "PlaceOrder", "q")
	lost.Namespace = "no-such-namespace"
	assert.Equal(t, map[string]cluster.Finding{`namespace "no-such-namespace"`: {
		Tool: "lost", Level: cluster.Error, Subject: `namespace "no-such-namespace"`,
		Message: "does not exist: create it with `temporal operator namespace create -n no-such-namespace`",
	}}, check(t, c, lost))

	other := createNamespace(t, c)
	elsewhere, err := client.NewClientFromExisting(c, client.Options{Namespace: other, Logger: testenv.QuietLogger()})
	require.NoError(t, err)
	queue := uuid.NewString()
	require.Eventually(t, func() bool {
		_, err := elsewhere.DescribeTaskQueue(t.Context(), queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		return err == nil
	}, soon, 50*time.Millisecond, "the namespace takes a while")
	startWorker(t, elsewhere, queue)
	moved := tool("moved", "PlaceOrder", queue)
	moved.Namespace = other
	assert.Equal(t, "1 worker polls it", check(t, c, moved)[`task queue "`+queue+`"`].Message)
	moved.Namespace = ""
	assert.Equal(t, cluster.Error, check(t, c, moved)[`task queue "`+queue+`"`].Level, "not in the client's namespace")
}

func TestToolsThatFollowWorkflowsOfOthersNeedTheirNamespaceOnly(t *testing.T) {
	c := testenv.Client(t)
	found := check(t, c, &catalog.Tool{Name: "follow", Attach: &catalog.Attach{WorkflowID: "nightly-*"}})
	require.Len(t, found, 1)
	assert.Equal(t, cluster.OK, found[`namespace "default"`].Level)
}

// createAttribute returns the name of a new search attribute.
func createAttribute(t *testing.T, c client.Client, kind enumspb.IndexedValueType) string {
	t.Helper()
	name := "Attribute" + uuid.NewString()[:8]
	_, err := c.OperatorService().AddSearchAttributes(t.Context(), &operatorservice.AddSearchAttributesRequest{
		Namespace: client.DefaultNamespace, SearchAttributes: map[string]enumspb.IndexedValueType{name: kind},
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		listed, err := c.OperatorService().ListSearchAttributes(t.Context(), &operatorservice.ListSearchAttributesRequest{
			Namespace: client.DefaultNamespace,
		})
		_, found := listed.GetCustomAttributes()[name]
		return err == nil && found
	}, soon, 50*time.Millisecond)
	return name
}

// with is a tool that sets search attributes from these templates.
func with(namespace string, templates map[string]string) *catalog.Tool {
	tool := tool("order", "PlaceOrder", "q")
	tool.Namespace, tool.SearchAttributes = namespace, map[string]json.RawMessage{}
	for name, template := range templates {
		tool.SearchAttributes[name] = json.RawMessage(template)
	}
	return tool
}

func TestSearchAttributes(t *testing.T) {
	c := testenv.Client(t)
	name := createAttribute(t, c, enumspb.INDEXED_VALUE_TYPE_INT)
	found := check(t, c, with("", map[string]string{
		name: `"${args.count}"`, "WorkflowType": `"x"`,
		"MissingWord": `"${args.word}"`, "MissingList": `["a"]`, "MissingFlag": `true`, "MissingNumber": `1.5`,
	}))
	assert.Equal(t, cluster.Finding{
		Tool: "order", Level: cluster.OK, Subject: `search attribute "` + name + `"`, Message: "its type is Int",
	}, found[`search attribute "`+name+`"`])
	for missing, message := range map[string]string{
		"MissingWord": "does not exist: create it with `temporal operator search-attribute create " +
			"--namespace default --name MissingWord --type Keyword`",
		"MissingList":   "--name MissingList --type KeywordList`",
		"MissingFlag":   "--name MissingFlag --type Bool`",
		"MissingNumber": "--name MissingNumber --type Double`",
		"WorkflowType":  "is Temporal's own",
	} {
		f := found[`search attribute "`+missing+`"`]
		assert.Equal(t, cluster.Error, f.Level, missing)
		assert.Contains(t, f.Message, message)
	}
}

func TestAllMissingSearchAttributesAreInOneError(t *testing.T) {
	c := testenv.Client(t)
	name := createAttribute(t, c, enumspb.INDEXED_VALUE_TYPE_KEYWORD)
	present := with("", map[string]string{name: `"x"`})
	assert.NoError(t, on(c).CheckSearchAttributes(t.Context(), []*catalog.Tool{present, tool("none", "W", "q")}))

	err := on(c).CheckSearchAttributes(t.Context(), []*catalog.Tool{
		present, with("", map[string]string{"Team": `"x"`, "Tags": `["x"]`}), with("", map[string]string{"Team": `"y"`}),
		with("no-such-namespace", map[string]string{"Team": `"x"`}),
	})
	require.EqualError(t, err, "tools of the catalog cannot start their workflows:\n"+
		"search attribute \"Tags\" does not exist: create it with "+
		"`temporal operator search-attribute create --namespace default --name Tags --type KeywordList`\n"+
		"search attribute \"Team\" does not exist: create it with "+
		"`temporal operator search-attribute create --namespace default --name Team --type Keyword`\n"+
		"namespace \"no-such-namespace\" does not exist: create it with `temporal operator namespace create -n no-such-namespace`")
}

func TestMissingSearchAttributesAreCreated(t *testing.T) {
	c := testenv.Client(t)
	prefix := "A" + strings.ReplaceAll(uuid.NewString(), "-", "")
	tool := with("", map[string]string{prefix + "Team": `"x"`, prefix + "Count": `"${args.count}"`, prefix + "On": `true`})
	tool.InputSchema = json.RawMessage(`{"type":"object","properties":{"count":{"type":"integer"}}}`)
	for range 2 { // the second finds them all
		require.NoError(t, on(c).CreateSearchAttributes(t.Context(), []*catalog.Tool{tool}))
	}
	require.Eventually(t, func() bool {
		found := check(t, c, tool)
		return found[`search attribute "`+prefix+`Team"`].Message == "its type is Keyword" &&
			found[`search attribute "`+prefix+`Count"`].Message == "its type is Int" &&
			found[`search attribute "`+prefix+`On"`].Message == "its type is Bool"
	}, soon, 50*time.Millisecond)
}

func TestATemporalThatDoesNotAnswerIsAnError(t *testing.T) {
	options := client.Options{HostPort: testenv.Temporal(t).Address(), Logger: testenv.QuietLogger()}
	c, err := client.Dial(options)
	require.NoError(t, err)
	c.Close()
	_, err = on(c).Check(t.Context(), []*catalog.Tool{tool("order", "PlaceOrder", "q")})
	assert.ErrorContains(t, err, `namespace "default"`)
	err = on(c).CheckSearchAttributes(t.Context(), []*catalog.Tool{with("", map[string]string{"Team": `"x"`})})
	assert.ErrorContains(t, err, "check the search attributes of the catalog")
}

// TestWhatTemporalRefusesToTellIsANote refuses this client as Temporal refuses users without permissions.
func TestWhatTemporalRefusesToTellIsANote(t *testing.T) {
	refuse := func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption,
	) error {
		if strings.HasSuffix(method, "/GetSystemInfo") { // which connecting needs
			return invoke(ctx, method, req, reply, cc, o...)
		}
		return status.Error(codes.PermissionDenied, "not for you")
	}
	options := client.Options{HostPort: testenv.Temporal(t).Address(), Logger: testenv.QuietLogger()}
	options.ConnectionOptions.DialOptions = []grpc.DialOption{grpc.WithChainUnaryInterceptor(refuse)}
	c, err := client.Dial(options)
	require.NoError(t, err)
	t.Cleanup(c.Close)

	tool := with("", map[string]string{"Team": `"x"`})
	found := check(t, c, tool)
	require.Len(t, found, 4)
	for _, f := range found {
		assert.Equal(t, cluster.Note, f.Level, f)
		assert.Equal(t, "Temporal does not tell: not for you", f.Message)
	}
	assert.NoError(t, on(c).CheckSearchAttributes(t.Context(), []*catalog.Tool{tool}))
}
