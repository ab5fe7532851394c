package tasks_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/tasks"
)

// asking is a tool that asks.
func asking(t *testing.T, workflowType string, inputs ...catalog.Input) *catalog.Tool {
	t.Helper()
	tool, err := catalog.NewTool(catalog.Tool{Name: "asking", Workflow: workflowType, TaskQueue: t.Name(), Inputs: inputs})
	require.NoError(t, err)
	return tool
}

const accepted = `{"action":"accept","content":{}}`

// Approve wants one approval, and returns how many it got. It says so in its memo and to a query, which takes a while when
// it is slow.
func Approve(ctx workflow.Context) (int, error) {
	state := "waiting"
	if err := workflow.SetQueryHandler(ctx, "state", func() (string, error) {
		if slowQueries.Load() {
			time.Sleep(700 * time.Millisecond)
		}
		return state, nil
	}); err != nil {
		return 0, err
	}
	_ = workflow.UpsertMemo(ctx, map[string]any{"state": state})
	approvals := workflow.GetSignalChannel(ctx, "approve")
	approvals.Receive(ctx, nil)
	state = "approved"
	_ = workflow.UpsertMemo(ctx, map[string]any{"state": state})
	err := workflow.Sleep(ctx, 2*time.Second)
	got := 1
	for approvals.ReceiveAsync(nil) {
		got++
	}
	return got, err
}

var slowQueries atomic.Bool

// TestASettledQuestionStaysSettled reads a task again and again after its answer: neither a query that takes long nor a
// history that is read a little later than the rest may open the question once more.
func TestASettledQuestionStaysSettled(t *testing.T) {
	temporal := testenv.Client(t)
	for name, input := range map[string]catalog.Input{
		"slow query": {Query: "state", When: "query == 'waiting'"},
		"memo":       {When: "memo.state == 'waiting'"},
	} {
		t.Run(name, func(t *testing.T) {
			input.Name, input.Message = "approve", "ok?"
			input.Accept, input.Decline = catalog.Effect{Signal: "approve"}, catalog.Effect{Cancel: true}
			tool := asking(t, "Approve", input)
			service, owner := newViewed(t, temporal, tool, Approve), newOwner()
			slowQueries.Store(false)
			id := create(t, service, owner, tasks.Start{Tool: tool}).ID
			awaitKey(t, service, owner, id, "approve-1")
			slowQueries.Store(true)
			defer slowQueries.Store(false)
			require.NoError(t, service.Answer(t.Context(), owner, id, answer("approve-1", accepted)))
			for {
				task := get(t, service, owner, id)
				require.Empty(t, task.InputRequests)
				if task.Status.Terminal() {
					assert.JSONEq(t, `{"type":"text","text":"1"}`, string(task.Result.Content[0]))
					return
				}
			}
		})
	}
}

// Sign waits for two signatures, each by the same signal.
func Sign(ctx workflow.Context) (string, error) {
	open := map[string]bool{"legal": true, "finance": true}
	if err := workflow.SetQueryHandler(ctx, "open", func() (map[string]bool, error) { return open, nil }); err != nil {
		return "", err
	}
	for open["legal"] || open["finance"] {
		var by string
		workflow.GetSignalChannel(ctx, "sign").Receive(ctx, &by)
		open[by] = false
	}
	return "signed", nil
}

func TestTwoQuestionsWithOneSignal(t *testing.T) {
	temporal := testenv.Client(t)
	signature := func(by string) catalog.Input {
		return catalog.Input{
			Name: by, Query: "open", When: "query." + by, Message: "Sign?", Once: true,
			Accept:  catalog.Effect{Signal: "sign", Payload: json.RawMessage(`"` + by + `"`)},
			Decline: catalog.Effect{Cancel: true},
		}
	}
	tool := asking(t, "Sign", signature("legal"), signature("finance"))
	service, owner := newViewed(t, temporal, tool, Sign), newOwner()
	id := create(t, service, owner, tasks.Start{Tool: tool}).ID
	awaitKey(t, service, owner, id, "finance-1")
	require.NoError(t, service.Answer(t.Context(), owner, id, answer("legal-1", accepted)))
	require.Eventually(t, func() bool {
		open := get(t, service, owner, id).InputRequests
		assert.Contains(t, open, "finance-1")
		_, both := open["legal-1"]
		return !both
	}, soon, 20*time.Millisecond)
	require.NoError(t, service.Answer(t.Context(), owner, id, answer("finance-1", accepted)))
	ended, err := service.Await(t.Context(), owner, id)
	require.NoError(t, err)
	assert.Equal(t, tasks.Completed, ended.Status)
}

// Decide is an activity that somebody else completes.
func Decide(context.Context) (string, error) { return "", activity.ErrResultPending }

// DecideTwice runs it twice, under one ID.
func DecideTwice(ctx workflow.Context) (string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{ActivityID: "decision", StartToCloseTimeout: time.Hour})
	var first, second string
	if err := workflow.ExecuteActivity(ctx, Decide).Get(ctx, &first); err != nil {
		return "", err
	}
	err := workflow.ExecuteActivity(ctx, Decide).Get(ctx, &second)
	return first + " " + second, err
}

func TestAnActivityIDThatIsUsedAgain(t *testing.T) {
	temporal := testenv.Client(t)
	tool := asking(t, "DecideTwice", catalog.Input{
		Name: "decide", Message: "ok?",
		Accept:  catalog.Effect{Activity: "Decide", Payload: json.RawMessage(`"yes"`)},
		Decline: catalog.Effect{Activity: "Decide", Payload: json.RawMessage(`"no"`)},
	})
	w := worker.New(temporal, t.Name(), worker.Options{})
	w.RegisterWorkflow(DecideTwice)
	w.RegisterActivity(Decide)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	service, err := tasks.New(temporal, tasks.Options{Tool: func(string) (*catalog.Tool, bool) { return tool, true }})
	require.NoError(t, err)
	owner := newOwner()
	id := create(t, service, owner, tasks.Start{Tool: tool}).ID
	awaitKey(t, service, owner, id, "decide-decision")
	require.NoError(t, service.Answer(t.Context(), owner, id, answer("decide-decision", accepted)))
	awaitKey(t, service, owner, id, "decide-decision-2")
	require.NoError(t, service.Answer(t.Context(), owner, id, answer("decide-decision", accepted)), "a late repetition")
	require.NoError(t, service.Answer(t.Context(), owner, id, answer("decide-decision-2", `{"action":"decline"}`)))
	ended, err := service.Await(t.Context(), owner, id)
	require.NoError(t, err)
	assert.JSONEq(t, `{"type":"text","text":"yes no"}`, string(ended.Result.Content[0]))
}

// Nothing returns nothing.
func Nothing(workflow.Context) (any, error) { return nil, nil }

// Proto returns a protobuf message, which Temporal's SDKs write as JSON.
func Proto(workflow.Context) (*commonpb.WorkflowExecution, error) {
	return &commonpb.WorkflowExecution{WorkflowId: "w"}, nil
}

// Silent answers a query with nothing.
func Silent(ctx workflow.Context) error {
	err := workflow.SetQueryHandler(ctx, "state", func() (any, error) { return nil, nil })
	if err != nil {
		return err
	}
	workflow.GetSignalChannel(ctx, "next").Receive(ctx, nil)
	return nil
}

func TestResultsOfOtherEncodings(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal, Nothing, Proto), newOwner()
	ended, err := service.Await(t.Context(), owner, create(t, service, owner, tasks.Start{Tool: newTool(t, "Nothing")}).ID)
	require.NoError(t, err)
	assert.Empty(t, ended.Result.Content)
	ended, err = service.Await(t.Context(), owner, create(t, service, owner, tasks.Start{Tool: newTool(t, "Proto")}).ID)
	require.NoError(t, err)
	require.Equal(t, tasks.Completed, ended.Status)
	assert.JSONEq(t, `{"workflowId":"w"}`, string(ended.Result.StructuredContent))
}

func TestAQueryThatIsAnsweredWithNothing(t *testing.T) {
	temporal := testenv.Client(t)
	tool, err := catalog.NewTool(catalog.Tool{
		Name: "silent", Workflow: "Silent", TaskQueue: t.Name(),
		Status: &catalog.Status{Query: "state", Message: "${query == null ? 'nothing' : 'something'}"},
	})
	require.NoError(t, err)
	service, owner := newViewed(t, temporal, tool, Silent), newOwner()
	id := create(t, service, owner, tasks.Start{Tool: tool}).ID
	require.Eventually(t, func() bool { return get(t, service, owner, id).StatusMessage == "nothing" }, soon, 50*time.Millisecond)
	signal(t, temporal, owner, id, "next")
}

func TestIDsOfSharedTasks(t *testing.T) {
	temporal := testenv.Client(t)
	prefix := "nightly-" + uuid.NewString() + "-"
	service, tool := newAttached(t, temporal, prefix+"*", Renew)
	tool.Attach.Cancel = true
	owner := newOwner()
	workflowID := prefix + "a"
	begin(t, temporal, workflowID, Renew, 1)
	task := create(t, service, owner, tasks.Start{Tool: tool, Call: catalog.Call{WorkflowID: workflowID}})
	for _, malformed := range []string{"attached:follow:x:" + workflowID, "once:x:x", "once:" + strings.Repeat("0", 32) + ":x"} {
		_, err := service.Get(t.Context(), owner, malformed)
		assert.ErrorIs(t, err, tasks.ErrNotFound, malformed)
	}
	require.NoError(t, temporal.SignalWorkflow(t.Context(), workflowID, "", "next", nil))
	second := ""
	require.Eventually(t, func() bool {
		described, err := temporal.DescribeWorkflow(t.Context(), workflowID, "")
		require.NoError(t, err)
		second = described.WorkflowExecution.RunID
		return second != runOf(task)
	}, soon, 50*time.Millisecond)
	byLater := strings.Replace(task.ID, runOf(task), second, 1)
	assert.Equal(t, task.ID, get(t, service, owner, byLater).ID, "a task has one ID")
	require.NoError(t, service.Cancel(t.Context(), owner, byLater))
	require.Eventually(t, func() bool { return get(t, service, owner, task.ID).CancelRequested }, soon, 50*time.Millisecond)
}

func TestWhatTemporalDoesNotTakeOfACallIsTheCallersMistake(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal), newOwner()
	large := json.RawMessage(`"` + strings.Repeat("k", 1_100_000) + `"`)
	var invalid *tasks.InvalidInputError
	for name, call := range map[string]catalog.Call{
		"memo":                     {Memo: map[string]json.RawMessage{"a": large, "b": large}},
		"memo and arguments":       {Memo: map[string]json.RawMessage{"a": large}, Arguments: []json.RawMessage{large}},
		"unknown search attribute": {SearchAttributes: map[string]json.RawMessage{"NobodyMadeThis": json.RawMessage(`"x"`)}},
	} {
		_, err := service.Create(t.Context(), owner, tasks.Start{Tool: newTool(t, "Stubborn"), Call: call})
		assert.ErrorAs(t, err, &invalid, name)
	}
}
