package workflows_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"taskbridge/internal/testenv"
	"taskbridge/signals"
	"taskbridge/workflows"
)

// begin is when every run in the test environment starts.
var begin = time.Date(2026, 7, 28, 12, 0, 0, 0, time.UTC)

// run is one workflow run in the test environment, with the test as its MCP client. Time is skipped while nothing but
// timers is left to wait for.
type run struct {
	*testsuite.TestWorkflowEnvironment
	t *testing.T
	// published are the states the workflow upserted, in order.
	published []signals.TaskState
	// answers go out by themselves, each as soon as its key is open.
	answers map[string]string
}

// newRun prepares a run of a workflow function, which is registered as "test".
func newRun(t *testing.T, function any) *run {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(testenv.QuietLogger())
	r := &run{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t}
	r.SetStartTime(begin)
	r.SetTestTimeout(time.Minute)
	r.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the default of 1 s is short on a busy machine
	r.RegisterWorkflowWithOptions(function, workflow.RegisterOptions{Name: "test"})
	r.OnUpsertMemo(mock.Anything).Run(r.publish).Return(nil).Maybe()
	return r
}

// newTaskRun prepares a run of a workflow that makes its task, from a [workflows.Carry] if it is given one, and does body.
func newTaskRun[R any](t *testing.T, body func(workflow.Context, *workflows.Task) (R, error)) *run {
	t.Helper()
	return newRun(t, func(ctx workflow.Context, carried *workflows.Carry) (result R, err error) {
		task, err := workflows.NewTask(ctx, carried)
		if err != nil {
			return result, err
		}
		return body(ctx, task)
	})
}

func (r *run) publish(args mock.Arguments) {
	state := args.Get(0).(map[string]any)[signals.StateMemo].(signals.TaskState)
	r.published = append(r.published, state)
	for _, key := range slices.Sorted(maps.Keys(state.InputRequests)) {
		if result, ok := r.answers[key]; ok {
			delete(r.answers, key)
			r.answer(key, result)
		}
	}
}

// at does something at a time of the workflow's clock.
func (r *run) at(since time.Duration, do func()) { r.RegisterDelayedCallback(do, since) }

// answer sends the result of one input request.
func (r *run) answer(key, result string) { r.SignalWorkflow(signals.InputSignal, input(key, result)) }

// input is a signal's payload from pairs of key and result.
func input(pairs ...string) signals.Input {
	responses := map[string]json.RawMessage{}
	for pair := range slices.Chunk(pairs, 2) {
		responses[pair[0]] = json.RawMessage(pair[1])
	}
	return signals.Input{Responses: responses}
}

// state is the answer to the state query.
func (r *run) state() (state signals.TaskState) {
	r.t.Helper()
	value, err := r.QueryWorkflow(signals.StateQuery)
	require.NoError(r.t, err)
	require.NoError(r.t, value.Get(&state))
	return state
}

// open are the keys of the open input requests.
func (r *run) open() []string {
	r.t.Helper()
	return keys(r.state())
}

func keys(state signals.TaskState) []string { return slices.Sorted(maps.Keys(state.InputRequests)) }

// start runs the workflow to its end.
func (r *run) start(args ...any) {
	r.ExecuteWorkflow("test", args...)
	require.True(r.t, r.IsWorkflowCompleted())
}

// result runs the workflow to its end and returns its result.
func result[R any](r *run, args ...any) (value R) {
	r.t.Helper()
	r.start(args...)
	require.NoError(r.t, r.GetWorkflowError())
	require.NoError(r.t, r.GetWorkflowResult(&value))
	return value
}

// carried runs the workflow until it continues as new and returns what it takes along.
func carried(r *run, args ...any) (carry *workflows.Carry) {
	r.t.Helper()
	r.start(args...)
	var again *workflow.ContinueAsNewError
	require.ErrorAs(r.t, r.GetWorkflowError(), &again)
	require.NoError(r.t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &carry))
	return carry
}

// continueAsNew is what a workflow of these tests returns to go on as a new run.
func continueAsNew(ctx workflow.Context, task *workflows.Task) error {
	return workflow.NewContinueAsNewError(ctx, "test", task.Carry(ctx))
}
