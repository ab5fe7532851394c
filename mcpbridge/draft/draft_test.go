package draft_test

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"go.yaml.in/yaml/v4"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/codec"
	"taskbridge/mcpbridge/draft"
)

type order struct {
	Customer string   `json:"customer"`
	Lines    []line   `json:"lines"`
	Express  bool     `json:"express"`
	Coupon   *string  `json:"coupon"`
	Tags     []string `json:"tags"`
}

type line struct {
	Article string  `json:"article"`
	Count   int     `json:"count"`
	Price   float64 `json:"price"`
	Gift    string  `json:"gift,omitempty"`
}

var secretOrder = order{
	Customer: "Ada Secret",
	Lines:    []line{{"secret-1", 2, 9.5, ""}, {"secret-2", 1, 3, "secret card"}},
	Tags:     []string{},
}

type receipt struct {
	Number string `json:"number"`
	Total  int    `json:"total"`
}

func PlaceOrder(workflow.Context, order) (receipt, error) { return receipt{"secret-42", 22}, nil }

func CopyTable(_ workflow.Context, source string, limit int, _ any) (string, error) {
	return source, nil
}

func Refresh(workflow.Context) error { return nil }

func Fail(workflow.Context, map[string]any) error {
	return temporal.NewNonRetryableApplicationError("broken", "Broken", nil)
}

// CountDown continues as new with other arguments than it was started with.
func CountDown(ctx workflow.Context, from map[string]int) error {
	if from["left"] == 0 {
		return nil
	}
	return workflow.NewContinueAsNewError(ctx, CountDown, map[string]int{"left": from["left"] - 1, "passedOn": 1})
}

type decision struct {
	Approved bool     `json:"approved"`
	Comment  *string  `json:"comment"`
	Lines    []string `json:"lines"`
}

// Decide is an activity that somebody else completes.
func Decide(context.Context) (string, error) { return "", activity.ErrResultPending }

// Review waits for a decision by each way there is.
func Review(ctx workflow.Context) error {
	err := workflow.SetQueryHandler(ctx, "stage", func() (string, error) { return "waiting", nil })
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandler(ctx, "reprice", func(workflow.Context, float64) error { return nil })
	if err != nil {
		return err
	}
	workflow.GetSignalChannel(ctx, "never-sent")
	workflow.GetSignalChannel(ctx, "mcp.task.input")
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, ActivityID: "decide"})
	decided := workflow.ExecuteActivity(ctx, Decide)
	for _, name := range []string{"GoOn", "approve", "approve", "go-on", "split"} {
		workflow.GetSignalChannel(ctx, name).Receive(ctx, nil)
	}
	return decided.Get(ctx, nil)
}

// startWorker runs the workflows of these tests on the task queue of the test's name.
func startWorker(t *testing.T, c client.Client) {
	t.Helper()
	w := worker.New(c, t.Name(), worker.Options{})
	for _, run := range []any{PlaceOrder, CopyTable, Refresh, Fail, CountDown, Review} {
		w.RegisterWorkflow(run)
	}
	w.RegisterActivity(Decide)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
}

// execute runs a workflow to its end, however that is, and returns its ID.
func execute(t *testing.T, c client.Client, options client.StartWorkflowOptions, run any, args ...any) string {
	t.Helper()
	options.ID, options.TaskQueue = uuid.NewString(), t.Name()
	started, err := c.ExecuteWorkflow(t.Context(), options, run, args...)
	require.NoError(t, err)
	_ = started.Get(t.Context(), nil)
	return options.ID
}

// write drafts an entry and loads it.
func write(t *testing.T, c client.Client, id string, o draft.Options) (string, *catalog.Tool) {
	t.Helper()
	data, err := draft.Write(t.Context(), c, id, "", o)
	require.NoError(t, err)
	loaded, err := catalog.Parse("draft.yaml", data)
	require.NoError(t, err, "%s", data)
	require.Len(t, loaded.Tools(), 1)
	return string(data), loaded.Tools()[0]
}

func TestOneObject(t *testing.T) {
	c := testenv.Client(t)
	startWorker(t, c)
	id := execute(t, c, client.StartWorkflowOptions{}, PlaceOrder, secretOrder)

	text, tool := write(t, c, id, draft.Options{})
	assert.Equal(t, "place_order", tool.Name)
	assert.Equal(t, "PlaceOrder", tool.Workflow)
	assert.Equal(t, t.Name(), tool.TaskQueue)
	assert.Equal(t, catalog.ArgumentsObject, tool.Arguments)
	assert.Equal(t, catalog.ResultJSON, tool.Result)
	assert.JSONEq(t, `{
		"type": "object",
		"properties": {
			"customer": {"type": "string"},
			"lines": {
				"type": "array",
				"items": {
					"type": "object",
					"properties": {
						"article": {"type": "string"},
						"count": {"type": "integer"},
						"price": {"type": "number"},
						"gift": {"type": "string"}
					},
					"required": ["article", "count", "price"]
				}
			},
			"express": {"type": "boolean"},
			"coupon": {},
			"tags": {"type": "array"}
		},
		"required": ["customer", "lines", "express", "tags"],
		"additionalProperties": false
	}`, string(tool.InputSchema))
	assert.Contains(t, text, "coupon: {} # was null")
	assert.NotContains(t, strings.ToLower(text), "secret", "values stay where they are")
	assert.NoError(t, tool.ValidateArguments(marshal(t, secretOrder)), "what was given is valid")
	assert.JSONEq(t, `{
		"type": "object",
		"properties": {"number": {"type": "string"}, "total": {"type": "integer"}},
		"required": ["number", "total"]
	}`, string(uncommented(t, text, "output").OutputSchema))
}

func marshal(t *testing.T, v any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return data
}

// uncommented takes one suggestion of a draft and returns the tool with it.
func uncommented(t *testing.T, draft, field string) *catalog.Tool {
	t.Helper()
	block := regexp.MustCompile(`(?m)^    # ` + field + `:.*\n(^    #   .*\n)*`)
	require.Regexp(t, block, draft)
	data := block.ReplaceAllStringFunc(draft, func(lines string) string { return strings.ReplaceAll(lines, "    # ", "    ") })
	loaded, err := catalog.Parse("draft.yaml", []byte(data))
	require.NoError(t, err, data)
	return loaded.Tools()[0]
}

func TestExamplesAreShownOnDemand(t *testing.T) {
	c := testenv.Client(t)
	startWorker(t, c)
	id := execute(t, c, client.StartWorkflowOptions{}, PlaceOrder, secretOrder)
	text, _ := write(t, c, id, draft.Options{Examples: true})
	assert.Contains(t, text, `customer: {type: string} # such as "Ada Secret"`)
	assert.Contains(t, text, `number: {type: string} # such as "secret-42"`)
}

func TestSeveralArguments(t *testing.T) {
	c := testenv.Client(t)
	startWorker(t, c)
	id := execute(t, c, client.StartWorkflowOptions{}, CopyTable, "orders", 3, map[string]any{"mode": "all"})
	text, tool := write(t, c, id, draft.Options{Name: "copy"})
	assert.Equal(t, "copy", tool.Name)
	assert.Equal(t, catalog.ArgumentsPositional, tool.Arguments)
	assert.Equal(t, []string{"argument1", "argument2", "argument3"}, tool.Positional)
	assert.Equal(t, catalog.ResultText, tool.Result)
	assert.JSONEq(t, `{
		"type": "object",
		"properties": {
			"argument1": {"type": "string"},
			"argument2": {"type": "integer"},
			"argument3": {"type": "object", "properties": {"mode": {"type": "string"}}, "required": ["mode"]}
		},
		"required": ["argument1", "argument2", "argument3"],
		"additionalProperties": false
	}`, string(tool.InputSchema))
	assert.Contains(t, text, "# Give these names")
}

func TestNoArguments(t *testing.T) {
	c := testenv.Client(t)
	startWorker(t, c)
	_, tool := write(t, c, execute(t, c, client.StartWorkflowOptions{}, Refresh), draft.Options{})
	assert.Equal(t, catalog.ArgumentsNone, tool.Arguments)
	assert.Equal(t, catalog.ResultAuto, tool.Result)
}

func TestHowItWasStarted(t *testing.T) {
	c := testenv.Client(t)
	startWorker(t, c)
	id := execute(t, c, client.StartWorkflowOptions{
		WorkflowExecutionTimeout: 90 * time.Minute,
		WorkflowRunTimeout:       time.Hour,
		WorkflowTaskTimeout:      20 * time.Second,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval: 1500 * time.Millisecond, BackoffCoefficient: 1.5, MaximumInterval: time.Minute,
			MaximumAttempts: 3, NonRetryableErrorTypes: []string{"Broken"},
		},
	}, Fail, map[string]any{"<<": 1, "yes": 2, "a: b #": 3, "": 4, "é\n": 5})
	text, tool := write(t, c, id, draft.Options{})
	assert.Contains(t, text, "which failed")
	assert.Equal(t, 90*time.Minute, tool.ExecutionTimeout)
	assert.Equal(t, time.Hour, tool.RunTimeout)
	assert.Equal(t, 20*time.Second, tool.TaskTimeout)
	assert.Equal(t, &catalog.Retry{
		InitialInterval: 1500 * time.Millisecond, BackoffCoefficient: 1.5, MaximumInterval: time.Minute,
		MaximumAttempts: 3, NonRetryableErrorTypes: []string{"Broken"},
	}, tool.Retry)
	assert.NoError(t, tool.ValidateArguments([]byte(`{"<<":1,"yes":2,"a: b #":3,"":4,"é\n":5}`)), text)
}

func TestContinuedAsNewStartsAsTheFirstRunDid(t *testing.T) {
	c := testenv.Client(t)
	startWorker(t, c)
	id := execute(t, c, client.StartWorkflowOptions{}, CountDown, map[string]int{"left": 2})
	text, tool := write(t, c, id, draft.Options{})
	assert.Contains(t, text, "which completed")
	assert.NotContains(t, string(tool.InputSchema), "passedOn")

	last, err := c.DescribeWorkflow(t.Context(), id, "")
	require.NoError(t, err)
	data, err := draft.Write(t.Context(), c, id, last.WorkflowExecution.RunID, draft.Options{})
	require.NoError(t, err)
	assert.Contains(t, string(data), "passedOn", "a run that is named is the one that counts")
}

// review tells a Review everything that it waits for, and returns its ID once it is finished.
func review(t *testing.T, c client.Client) (id string) {
	t.Helper()
	id = uuid.NewString()
	started, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: t.Name()}, Review)
	require.NoError(t, err)
	comment := "secret"
	for _, sent := range []struct {
		name    string
		payload any
	}{
		{"GoOn", nil},
		{"approve", decision{true, &comment, []string{"a"}}}, {"approve", decision{}},
		{"go-on", "secret"},
		{"split", []int{1}},
	} {
		require.NoError(t, c.SignalWorkflow(t.Context(), id, "", sent.name, sent.payload))
	}
	updated, err := c.UpdateWorkflow(t.Context(), client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: "reprice", Args: []any{9.5}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	require.NoError(t, err)
	require.NoError(t, updated.Get(t.Context(), nil))

	person, err := client.Dial(client.Options{
		HostPort: testenv.Temporal(t).Address(), Identity: "person", Logger: testenv.QuietLogger(),
	})
	require.NoError(t, err)
	t.Cleanup(person.Close)
	require.Eventually(t, func() bool {
		return person.CompleteActivityByID(t.Context(), client.DefaultNamespace, id, "", "decide", "yes", nil) == nil
	}, 20*time.Second, 50*time.Millisecond)
	require.NoError(t, started.Get(t.Context(), nil))
	return id
}

// suggested is what a suggestion in the comments of a draft says, as JSON.
func suggested(t *testing.T, draft, field string) string {
	t.Helper()
	block := regexp.MustCompile(`(?m)^    # ` + field + `:.*\n(?:^    #   .*\n)*`).FindString(draft)
	require.NotEmpty(t, block, draft)
	var suggestion map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(block, "    # ", "")), &suggestion), block)
	return string(marshal(t, suggestion[field]))
}

func TestQuestionsAreSuggestedForWhatCameFromOutside(t *testing.T) {
	c := testenv.Client(t)
	startWorker(t, c)
	id := review(t, c)
	text, _ := write(t, c, id, draft.Options{})
	assert.JSONEq(t, `{"query": "stage"}`, suggested(t, text, "status"))
	assert.JSONEq(t, `{
		"go_on": {
			"query": "stage", "when": "false", "message": "What should the answer to \"GoOn\" be?",
			"accept": {"signal": "GoOn"}, "decline": "cancel"
		},
		"approve": {
			"query": "stage", "when": "false", "message": "What should the answer to \"approve\" be?",
			"schema": {
				"type": "object", "properties": {"approved": {"type": "boolean"}, "comment": {"type": "string"}},
				"required": ["approved"]
			},
			"accept": {"signal": "approve", "payload": "${answer}"}, "decline": "cancel"
		},
		"go_on_2": {
			"query": "stage", "when": "false", "message": "What should the answer to \"go-on\" be?",
			"schema": {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]},
			"accept": {"signal": "go-on", "payload": "${answer.answer}"}, "decline": "cancel"
		},
		"split": {
			"query": "stage", "when": "false", "message": "What should the answer to \"split\" be?",
			"accept": {"signal": "split"}, "decline": "cancel"
		},
		"reprice": {
			"query": "stage", "when": "false", "message": "What should the answer to \"reprice\" be?",
			"schema": {"type": "object", "properties": {"answer": {"type": "number"}}, "required": ["answer"]},
			"accept": {"update": "reprice", "payload": "${answer.answer}"}, "decline": "cancel"
		},
		"decide": {
			"message": "What should the answer to \"Decide\" be?",
			"schema": {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]},
			"accept": {"activity": "Decide", "payload": "${answer.answer}"}, "decline": "cancel"
		},
		"never_sent": {
			"query": "stage", "when": "false", "message": "What should the answer to \"never-sent\" be?",
			"accept": {"signal": "never-sent"}, "decline": "cancel"
		}
	}`, suggested(t, text, "inputs"))
	for _, remark := range []string{
		"a form cannot ask for lines", "it came with what no form can ask for: array", "did not come here",
		`such as query == "waiting"`,
	} {
		assert.Contains(t, text, remark)
	}
	assert.NotContains(t, text, "secret")
	assert.NotContains(t, text, "mcp.task")
}

func TestWithoutAWorkerTheDraftSaysWhatIsMissing(t *testing.T) {
	c := testenv.Client(t)
	id := uuid.NewString()
	_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: t.Name()}, Review)
	require.NoError(t, err)
	require.NoError(t, c.SignalWorkflow(t.Context(), id, "", "approve", decision{}))
	text, _ := write(t, c, id, draft.Options{})
	assert.Contains(t, text, "which is running")
	assert.Contains(t, text, "No worker told which queries, signals and updates there are")
	assert.Contains(t, suggested(t, text, "inputs"), `"approve"`)
	assert.NotContains(t, text, "status:")
}

// reversed is a codec: it turns payloads round.
type reversed struct{}

func (reversed) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	var encoded []*commonpb.Payload
	for _, p := range payloads {
		data, err := p.Marshal()
		if err != nil {
			return nil, err
		}
		encoded = append(encoded, &commonpb.Payload{
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte("binary/reversed")}, Data: turn(data),
		})
	}
	return encoded, nil
}

func (reversed) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	decoded := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		decoded[i] = new(commonpb.Payload)
		if err := decoded[i].Unmarshal(turn(p.Data)); err != nil {
			return nil, err
		}
	}
	return decoded, nil
}

func turn(data []byte) []byte {
	turned := make([]byte, len(data))
	for i, b := range data {
		turned[len(data)-1-i] = b
	}
	return turned
}

func TestCodec(t *testing.T) {
	options := client.Options{HostPort: testenv.Temporal(t).Address(), Logger: testenv.QuietLogger()}
	codec.Use(&options, reversed{})
	c, err := client.Dial(options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	startWorker(t, c)
	id := execute(t, c, client.StartWorkflowOptions{}, PlaceOrder, secretOrder)

	_, tool := write(t, c, id, draft.Options{})
	assert.Contains(t, string(tool.InputSchema), "customer")
	assert.Equal(t, catalog.ResultJSON, tool.Result)

	_, err = draft.Write(t.Context(), testenv.Client(t), id, "", draft.Options{})
	assert.ErrorContains(t, err, `the arguments cannot be read: value 1 of 1: `+
		`its encoding "binary/reversed" is that of a codec which is missing here`)
}

func TestWhatThereIsNoDraftOf(t *testing.T) {
	c := testenv.Client(t)
	startWorker(t, c)
	id := execute(t, c, client.StartWorkflowOptions{}, Refresh)
	ours := catalog.Loader{Workflows: map[string]catalog.Workflow{"Refresh": {}}}
	for name, test := range map[string]struct {
		id, run string
		options draft.Options
		wanted  string
	}{
		"unknown workflow ID": {"never", "", draft.Options{},
			`no execution has workflow ID "never" here: check the ID and the namespace`},
		"unknown run ID":        {id, uuid.NewString(), draft.Options{}, `and run ID "`},
		"no run ID":             {id, "first", draft.Options{}, "Invalid RunId"},
		"no name of a tool":     {id, "", draft.Options{Name: "a b"}, `"a b" is not a tool name`},
		"our own workflow type": {id, "", draft.Options{Loader: ours}, "is taskbridge's own"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := draft.Write(context.WithoutCancel(t.Context()), c, test.id, test.run, test.options)
			assert.ErrorContains(t, err, test.wanted)
		})
	}
}
