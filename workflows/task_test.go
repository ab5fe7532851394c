package workflows_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"taskbridge/signals"
	"taskbridge/workflows"
)

func TestStatusIsPublishedWhenItChanges(t *testing.T) {
	run := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (any, error) {
		task.Status(ctx, "building %s", "api")
		if err := workflow.Sleep(ctx, 5*time.Second); err != nil {
			return nil, err
		}
		task.Status(ctx, "building %s", "api")
		if err := workflow.Sleep(ctx, 5*time.Second); err != nil {
			return nil, err
		}
		task.Status(ctx, "%d%% built", 100)
		return nil, nil
	})
	run.start(nil)
	require.NoError(t, run.GetWorkflowError())
	assert.Equal(t, []signals.TaskState{
		{Version: 1, StatusMessage: "building api", UpdatedAt: begin},
		{Version: 1, StatusMessage: "100% built", UpdatedAt: begin.Add(10 * time.Second)},
	}, run.published)
	assert.Equal(t, run.published[1], run.state(), "the query says the same")
}

func TestProgressIsPublishedWhenItChanges(t *testing.T) {
	run := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (any, error) {
		task.Progress(ctx, 0, 0)
		task.Progress(ctx, 0, 0)
		task.Status(ctx, "copying")
		task.Progress(ctx, 2.5, 10)
		task.Progress(ctx, math.NaN(), 10)
		task.Progress(ctx, 1, math.Inf(1))
		return nil, nil
	})
	run.start(nil)
	require.NoError(t, run.GetWorkflowError())
	assert.Equal(t, []signals.TaskState{
		{Version: 1, Progress: &signals.Progress{}, UpdatedAt: begin},
		{Version: 1, Progress: &signals.Progress{}, StatusMessage: "copying", UpdatedAt: begin},
		{Version: 1, Progress: &signals.Progress{Done: 2.5, Total: 10}, StatusMessage: "copying", UpdatedAt: begin},
	}, run.published)
	assert.Equal(t, run.published[2], run.state(), "the query says the same")
}

func TestContinueAsNewKeepsTheProgress(t *testing.T) {
	first := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (any, error) {
		task.Progress(ctx, 3, 9)
		return nil, continueAsNew(ctx, task)
	})
	carry := carried(first, nil)

	second := newTaskRun(t, func(workflow.Context, *workflows.Task) (any, error) { return nil, nil })
	second.start(carry)
	assert.Equal(t, &signals.Progress{Done: 3, Total: 9}, second.state().Progress)
}

func TestATaskThatSaysNothingPublishesNothing(t *testing.T) {
	run := newTaskRun(t, func(workflow.Context, *workflows.Task) (any, error) { return nil, nil })
	run.start(nil)
	assert.Empty(t, run.published)
	assert.Equal(t, signals.TaskState{Version: 1}, run.state())
}

func TestQuestionsArePublishedInTheContractsForm(t *testing.T) {
	run := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (any, error) {
		task.Status(ctx, "deploying")
		return workflows.Elicit[approval](ctx, task, workflows.Question{Name: "approve", Message: "Deploy?"})
	})
	run.answers = map[string]string{"approve-1": `{"action":"decline"}`}
	run.start(nil)
	require.NoError(t, run.GetWorkflowError())
	require.Len(t, run.published, 3, "the status, the question, its end")

	asked, err := json.Marshal(run.published[1])
	require.NoError(t, err)
	assert.JSONEq(t, `{
		"v": 1,
		"statusMessage": "deploying",
		"inputRequests": {"approve-1": {"method": "elicitation/create", "params": {
			"mode": "form",
			"message": "Deploy?",
			"requestedSchema": {
				"type": "object",
				"properties": {
					"approve": {"type": "boolean", "description": "Go on"},
					"comment": {"type": "string"}
				},
				"required": ["approve"]
			}
		}}},
		"updatedAt": "2026-07-28T12:00:00Z"
	}`, string(asked))
	assert.Equal(t, signals.TaskState{Version: 1, StatusMessage: "deploying", UpdatedAt: begin}, run.published[2])
}

// askCounts asks one question after the other, all under one name, and returns the answers.
func askCounts(questions int) func(workflow.Context, *workflows.Task) ([]int, error) {
	return func(ctx workflow.Context, task *workflows.Task) (counts []int, err error) {
		for range questions {
			answer, err := workflows.Elicit[counted](ctx, task, workflows.Question{Name: "count", Message: "How many?"})
			if err != nil {
				return nil, err
			}
			counts = append(counts, answer.Content.Count)
		}
		return counts, nil
	}
}

func TestKeysAreUnique(t *testing.T) {
	run := newTaskRun(t, askCounts(3))
	run.answers = map[string]string{"count-1": acceptCount(10), "count-2": acceptCount(20), "count-3": acceptCount(30)}
	assert.Equal(t, []int{10, 20, 30}, result[[]int](run, nil))
}

func TestTheFirstAnswerWins(t *testing.T) {
	run := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (int, error) {
		pending, err := workflows.Ask[counted](ctx, task, workflows.Question{Name: "count", Message: "How many?"})
		if err != nil {
			return 0, err
		}
		if err := workflow.Sleep(ctx, time.Minute); err != nil {
			return 0, err
		}
		answer, err := pending.Get(ctx)
		return answer.Content.Count, err
	})
	run.at(1*time.Second, func() { run.answer("count-1", acceptCount(1)) })
	run.at(2*time.Second, func() { run.answer("count-1", acceptCount(2)) })
	assert.Equal(t, 1, result[int](run, nil))
	assert.Len(t, run.published, 2, "the question and its answer; the second answer changes nothing")
}

func TestAnswersToOtherKeysAreIgnored(t *testing.T) {
	run := newTaskRun(t, askCounts(2))
	run.at(1*time.Second, func() {
		run.SignalWorkflow(signals.InputSignal, input(
			"count-2", acceptCount(666), // not issued yet
			"count-0", acceptCount(666),
			"mcp", acceptCount(666),
			"", acceptCount(666),
		))
	})
	run.at(2*time.Second, func() { assert.Equal(t, []string{"count-1"}, run.open()) })
	run.at(3*time.Second, func() { run.answer("count-1", acceptCount(1)) })
	run.at(4*time.Second, func() { run.answer("count-1", acceptCount(666)) }) // answered already
	run.at(5*time.Second, func() { assert.Equal(t, []string{"count-2"}, run.open()) })
	run.at(6*time.Second, func() { run.answer("count-2", acceptCount(2)) })
	assert.Equal(t, []int{1, 2}, result[[]int](run, nil))
	assert.Len(t, run.published, 4, "two questions and their ends")
}

func TestMalformedSignalsAreIgnored(t *testing.T) {
	run := newTaskRun(t, askCounts(1))
	run.at(1*time.Second, func() { run.SignalWorkflow(signals.InputSignal, "not an object") })
	run.at(2*time.Second, func() { run.SignalWorkflow(signals.InputSignal, map[string]any{"responses": []int{1}}) })
	run.at(3*time.Second, func() { run.SignalWorkflow(signals.InputSignal, map[string]any{}) })
	run.at(4*time.Second, func() { assert.Equal(t, []string{"count-1"}, run.open()) })
	run.at(5*time.Second, func() { run.answer("count-1", acceptCount(5)) })
	assert.Equal(t, []int{5}, result[[]int](run, nil))
}

func TestAnEarlyAnswerIsKeptUntilItIsRead(t *testing.T) {
	run := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (int, error) {
		pending, err := workflows.Ask[counted](ctx, task, workflows.Question{Name: "count", Message: "How many?"})
		if err != nil {
			return 0, err
		}
		if err := workflow.Sleep(ctx, time.Hour); err != nil {
			return 0, err
		}
		answer, err := pending.Get(ctx)
		return answer.Content.Count, err
	})
	run.at(1*time.Second, func() { run.answer("count-1", acceptCount(7)) })
	run.at(2*time.Second, func() { assert.Empty(t, run.open(), "the client has done its part") })
	assert.Equal(t, 7, result[int](run, nil))
}

func TestCancellationWithdrawsTheQuestion(t *testing.T) {
	run := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (any, error) {
		_, err := workflows.Elicit[counted](ctx, task, workflows.Question{Name: "count", Message: "How many?"})
		var canceled *temporal.CanceledError
		if assert.ErrorAs(t, err, &canceled) {
			waiting, _ := workflow.NewDisconnectedContext(ctx)
			return nil, workflow.Sleep(waiting, time.Minute)
		}
		return nil, err
	})
	run.at(1*time.Second, run.CancelWorkflow)
	run.at(2*time.Second, func() { assert.Empty(t, run.open()) })
	run.at(3*time.Second, func() { run.answer("count-1", acceptCount(1)) }) // too late
	run.start(nil)
	require.NoError(t, run.GetWorkflowError())
	require.Len(t, run.published, 2)
	assert.Empty(t, run.published[1].InputRequests)
}

func TestATaskStillListensWhenItsWorkflowIsCancelled(t *testing.T) {
	run := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (int, error) {
		cleanup, _ := workflow.NewDisconnectedContext(ctx)
		if err := workflow.Sleep(ctx, time.Hour); !temporal.IsCanceledError(err) {
			return 0, err
		}
		answer, err := workflows.Elicit[counted](cleanup, task, workflows.Question{Name: "undo", Message: "How many to undo?"})
		return answer.Content.Count, err
	})
	run.at(1*time.Second, run.CancelWorkflow)
	run.at(2*time.Second, func() { run.answer("undo-1", acceptCount(3)) })
	assert.Equal(t, 3, result[int](run, nil))
}

func TestContinueAsNewKeepsKeysUnique(t *testing.T) {
	first := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (any, error) {
		if _, err := askCounts(2)(ctx, task); err != nil {
			return nil, err
		}
		return nil, continueAsNew(ctx, task)
	})
	first.answers = map[string]string{"count-1": acceptCount(1), "count-2": acceptCount(2)}
	carry := carried(first, nil)

	second := newTaskRun(t, askCounts(1))
	second.answers = map[string]string{"count-1": acceptCount(666), "count-3": acceptCount(3)}
	assert.Equal(t, []int{3}, result[[]int](second, carry))
}

// askTwo opens two questions under two names.
func askTwo(ctx workflow.Context, task *workflows.Task) (a, b *workflows.Pending[counted], err error) {
	if a, err = workflows.Ask[counted](ctx, task, workflows.Question{Name: "a", Message: "How many a?"}); err != nil {
		return nil, nil, err
	}
	b, err = workflows.Ask[counted](ctx, task, workflows.Question{Name: "b", Message: "How many b?"})
	return a, b, err
}

// answerTwo opens two questions, in either order, and returns the answers.
func answerTwo(ctx workflow.Context, task *workflows.Task) (counts []int, err error) {
	a, b, err := askTwo(ctx, task)
	if err != nil {
		return nil, err
	}
	for _, pending := range []*workflows.Pending[counted]{a, b} {
		answer, err := pending.Get(ctx)
		if err != nil {
			return nil, err
		}
		counts = append(counts, answer.Content.Count)
	}
	return counts, nil
}

// askTwoAndContinue opens two questions and continues as new after a minute, whatever has been answered.
func askTwoAndContinue(ctx workflow.Context, task *workflows.Task) (any, error) {
	if _, _, err := askTwo(ctx, task); err != nil {
		return nil, err
	}
	if err := workflow.Sleep(ctx, time.Minute); err != nil {
		return nil, err
	}
	return nil, continueAsNew(ctx, task)
}

func TestContinueAsNewKeepsAnswersAndOpenQuestions(t *testing.T) {
	first := newTaskRun(t, askTwoAndContinue)
	first.at(1*time.Second, func() { first.answer("b-2", acceptCount(20)) })
	carry := carried(first, nil)

	second := newTaskRun(t, answerTwo)
	second.at(1*time.Second, func() {
		assert.Equal(t, []string{"a-1"}, second.open(), "b is answered, a keeps its key")
		second.answer("a-1", acceptCount(10))
	})
	assert.Equal(t, []int{10, 20}, result[[]int](second, carry))
}

// An answer and the end of the run can come in one workflow task; the answer must not get lost between the two.
func TestContinueAsNewKeepsAnAnswerThatCameAtTheLastMoment(t *testing.T) {
	first := newTaskRun(t, askTwoAndContinue)
	first.at(59*time.Second, func() {
		first.SignalWorkflowSkippingWorkflowTask(signals.InputSignal, input("a-1", acceptCount(10)))
		first.SignalWorkflowSkippingWorkflowTask(signals.InputSignal, input("b-2", acceptCount(20)))
	})
	carry := carried(first, nil)
	assert.Equal(t, []int{10, 20}, result[[]int](newTaskRun(t, answerTwo), carry))
}

func TestAnAnswerMayComeBeforeTheNewRunHasAskedAgain(t *testing.T) {
	carry := carried(newTaskRun(t, askTwoAndContinue), nil)

	second := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) ([]int, error) {
		if err := workflow.Sleep(ctx, time.Minute); err != nil {
			return nil, err
		}
		return answerTwo(ctx, task)
	})
	second.at(1*time.Second, func() {
		assert.Empty(t, second.open(), "nobody has asked yet")
		second.SignalWorkflow(signals.InputSignal, input("a-1", acceptCount(10), "b-2", acceptCount(20)))
	})
	assert.Equal(t, []int{10, 20}, result[[]int](second, carry))
}

func TestAnAnswerSurvivesRunsThatDoNotAskForIt(t *testing.T) {
	carry := carried(newTaskRun(t, askTwoAndContinue), nil)

	second := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (any, error) {
		if err := workflow.Sleep(ctx, time.Minute); err != nil {
			return nil, err
		}
		return nil, continueAsNew(ctx, task)
	})
	second.at(1*time.Second, func() {
		second.SignalWorkflow(signals.InputSignal, input("a-1", acceptCount(10), "b-2", acceptCount(20)))
	})
	assert.Equal(t, []int{10, 20}, result[[]int](newTaskRun(t, answerTwo), carried(second, carry)))
}

func TestQuestionsOfOneNameAreCarriedInTheirOrder(t *testing.T) {
	ask := func(ctx workflow.Context, task *workflows.Task) (pending []*workflows.Pending[counted], err error) {
		for range 2 {
			p, err := workflows.Ask[counted](ctx, task, workflows.Question{Message: "How many?"})
			if err != nil {
				return nil, err
			}
			pending = append(pending, p)
		}
		return pending, nil
	}
	first := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (any, error) {
		if _, err := ask(ctx, task); err != nil {
			return nil, err
		}
		if err := workflow.Sleep(ctx, time.Minute); err != nil {
			return nil, err
		}
		return nil, continueAsNew(ctx, task)
	})
	first.at(1*time.Second, func() { first.answer("question-2", acceptCount(2)) })
	carry := carried(first, nil)

	second := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (counts []int, err error) {
		pending, err := ask(ctx, task)
		for i := 0; err == nil && i < len(pending); i++ {
			var answer workflows.Answer[counted]
			answer, err = pending[i].Get(ctx)
			counts = append(counts, answer.Content.Count)
		}
		return counts, err
	})
	second.answers = map[string]string{"question-1": acceptCount(1)}
	assert.Equal(t, []int{1, 2}, result[[]int](second, carry))
}

func TestRPCErrorKeepsItsDetails(t *testing.T) {
	tests := []struct {
		name string
		data any
		want json.RawMessage
	}{
		{"with data", map[string]any{"quota": 9007199254740993, "names": []string{"a"}}, json.RawMessage(`{"names":["a"],"quota":9007199254740993}`)},
		{"without data", nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			run := newTaskRun(t, func(workflow.Context, *workflows.Task) (any, error) {
				return nil, workflows.RPCError(-32050, "quota is used up", test.data)
			})
			run.start(nil)
			var application *temporal.ApplicationError
			require.ErrorAs(t, run.GetWorkflowError(), &application)
			assert.Equal(t, signals.RPCErrorType, application.Type())
			assert.True(t, application.NonRetryable())
			assert.Equal(t, "quota is used up", application.Message())

			var details signals.RPCError
			require.NoError(t, application.Details(&details))
			assert.Equal(t, signals.RPCError{Code: -32050, Message: "quota is used up", Data: test.want}, details)
		})
	}
}

func TestRPCErrorSaysWhenItsDataCannotBeEncoded(t *testing.T) {
	err := workflows.RPCError(-32050, "quota is used up", make(chan int))
	require.ErrorContains(t, err, "data of JSON-RPC error -32050")
	var rpcError *signals.RPCError
	require.ErrorAs(t, err, &rpcError)
	assert.Equal(t, "quota is used up", rpcError.Message)
}

func TestResults(t *testing.T) {
	text, err := json.Marshal(workflows.TextResult("%d files in %q", 3, "a"))
	require.NoError(t, err)
	assert.JSONEq(t, `{"content":[{"type":"text","text":"3 files in \"a\""}]}`, string(text))

	failure, err := json.Marshal(workflows.ErrorResult("no %s", "disk"))
	require.NoError(t, err)
	assert.JSONEq(t, `{"content":[{"type":"text","text":"no disk"}],"isError":true}`, string(failure))
}

func TestAnAnswerCountsForTheSameQuestionOnly(t *testing.T) {
	ask := func(message string) func(workflow.Context, *workflows.Task) (string, error) {
		return func(ctx workflow.Context, task *workflows.Task) (string, error) {
			if _, err := workflows.Ask[approval](ctx, task, workflows.Question{Name: "deploy", Message: message}); err != nil {
				return "", err
			}
			return "", continueAsNew(ctx, task)
		}
	}
	first := newTaskRun(t, ask("Deploy 1?"))
	carry := carried(first, nil)
	second := newTaskRun(t, ask("Deploy 2?"))
	assert.Equal(t, 2, carried(second, carry).NextKey, "another question has another key")
	again := newTaskRun(t, ask("Deploy 1?"))
	assert.Equal(t, 1, carried(again, carry).NextKey, "the same goes on under its own")
}

func TestALongStatusMessageIsCut(t *testing.T) {
	run := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (string, error) {
		task.Status(ctx, "%s", strings.Repeat("é", 4<<20))
		return "done", nil
	})
	assert.Equal(t, "done", result[string](run, nil))
	message := run.published[len(run.published)-1].StatusMessage
	assert.Less(t, len(message), 5000)
	assert.True(t, utf8.ValidString(message))
	assert.True(t, strings.HasSuffix(message, "é…"))
}
