//go:build unix

package workflows_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"taskbridge/activities"
	"taskbridge/internal/testenv"
	"taskbridge/signals"
	"taskbridge/workflows"
)

// record makes TestReplay record one of its histories on a dev server: go test ./workflows -run TestReplay -record NAME.
// Give a change its own recording. Record an old one anew only when a change is meant to break running workflows; else it
// must go on replaying.
var record = flag.String("record", "", "the name of the history to record in testdata")

// recorder is the identity under which histories are recorded: the SDK's own names the machine.
const recorder = "recorder"

// recordings are real runs. Each is kept as testdata/<name>-<n>.json, where n counts the runs of the workflow.
var recordings = map[string]struct {
	workflow string
	args     []any
	client   func(*testing.T, client.Client, client.WorkflowRun)
	// files and the kinds of event that must be in them for the recording to be worth something
	runs [][]enumspb.EventType
}{
	"survey": {
		workflow: "Survey", args: []any{nil}, client: answerSurvey,
		runs: [][]enumspb.EventType{
			{enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW},
			{enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED},
		},
	},
	// The first two pipelines are of a time when they told no progress.
	"pipeline": {
		workflow: workflows.PipelineName, client: answerPipeline,
		args: []any{pipelineInput(workflows.PipelineSpec{Steps: []workflows.Step{
			shell("vet", "echo vetted"),
			{Name: "lint", Run: []string{"sh", "-c", "echo sloppy; exit 1"}, Retries: 1, ContinueOnError: true},
			shell("test", `echo "$ARG_PACKAGE"`, "vet", "lint"),
			question("approve", "test"),
			shell("deploy", `echo "$ASK_APPROVE_COMMENT"`, "approve"),
			question("announce", "deploy"),
			shell("mail", "echo sent", "announce"),
		}}, arguments{"package": `"./..."`})},
		runs: [][]enumspb.EventType{{
			enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, enumspb.EVENT_TYPE_TIMER_FIRED,
			enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
		}},
	},
	"pipeline-cancelled": {
		workflow: workflows.PipelineName, client: cancelPipeline,
		args: []any{pipelineInput(workflows.PipelineSpec{Steps: []workflows.Step{
			shell("test", "sleep 300"),
			question("approve"),
			shell("deploy", "echo deployed", "test", "approve"),
		}}, nil)},
		runs: [][]enumspb.EventType{{enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED}},
	},
	"pipeline-progress": {
		workflow: workflows.PipelineName, client: approvePipeline,
		args: []any{pipelineInput(workflows.PipelineSpec{Steps: []workflows.Step{
			shell("vet", "echo vetted"),
			{Name: "lint", Run: []string{"sh", "-c", "echo sloppy; exit 1"}},
			shell("fix", "echo fixed", "lint"),
			question("approve", "vet"),
			shell("deploy", "echo deployed", "approve"),
		}}, nil)},
		runs: [][]enumspb.EventType{{
			enumspb.EVENT_TYPE_MARKER_RECORDED, enumspb.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED,
			enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
		}},
	},
}

// survey asks everything a task can ask. Its first run ends with one question open and the answer to another unread.
func survey(ctx workflow.Context, carried *workflows.Carry) (string, error) {
	task, err := workflows.NewTask(ctx, carried)
	if err != nil {
		return "", err
	}
	task.Status(ctx, "surveying")
	count, err := workflows.Ask[counted](ctx, task, workflows.Question{Name: "count", Message: "How many?"})
	if err != nil {
		return "", err
	}
	approve, err := workflows.Ask[approval](ctx, task, workflows.Question{Name: "approve", Message: "Go on?"})
	if err != nil {
		return "", err
	}
	if carried == nil {
		if _, err := workflows.Elicit[named](ctx, task, workflows.Question{Name: "name", Message: "Who?"}); err != nil {
			return "", err
		}
		return "", workflow.NewContinueAsNewError(ctx, "Survey", task.Carry(ctx))
	}
	goOn, err := approve.Get(ctx)
	if err != nil {
		return "", err
	}
	many, err := count.Get(ctx)
	if err != nil {
		return "", err
	}
	login, err := workflows.ElicitURL(ctx, task, "login", "Log in, please.", "https://example.com/login")
	if err != nil {
		return "", err
	}
	roots, err := workflows.ListRoots(ctx, task)
	if err != nil {
		return "", err
	}
	task.Status(ctx, "summing up")
	summary, err := workflows.Sample(ctx, task, "summary", workflows.Sampling{MaxTokens: 10})
	return fmt.Sprintf("%s %d %s %d %s", goOn.Action, many.Content.Count, login, len(roots), summary.Model), err
}

func answerSurvey(t *testing.T, c client.Client, run client.WorkflowRun) {
	answerOpen(t, c, run, []string{"count-1", "approve-2", "name-3"}, input(
		"name-3", `{"action":"accept","content":{"name":"Ada"}}`, "approve-2", `{"action":"decline"}`))
	answerOpen(t, c, run, []string{"count-1"}, input("count-1", `{"action":"accept","content":{"count":"three"}}`))
	answerOpen(t, c, run, []string{"count-4"}, input("count-4", acceptCount(3)))
	answerOpen(t, c, run, []string{"login-5"}, input("login-5", `{"action":"accept"}`))
	answerOpen(t, c, run, []string{"roots-6"}, input("roots-6", `{"roots":[{"uri":"file:///src"}]}`))
	answerOpen(t, c, run, []string{"summary-7"}, input("summary-7", `{"role":"assistant","content":{"type":"text","text":"Well."},"model":"m-1"}`))
	var got string
	require.NoError(t, run.Get(t.Context(), &got))
	assert.Equal(t, "decline 3 accept 1 m-1", got)
}

func answerPipeline(t *testing.T, c client.Client, run client.WorkflowRun) {
	answerOpen(t, c, run, []string{"approve-1"}, input("approve-1", `{"action":"accept","content":{"approve":true,"comment":"fine"}}`))
	answerOpen(t, c, run, []string{"announce-2"}, input("announce-2", `{"action":"decline"}`))
	var tool signals.ToolResult
	require.NoError(t, run.Get(t.Context(), &tool))
	assert.True(t, tool.IsError)
}

func approvePipeline(t *testing.T, c client.Client, run client.WorkflowRun) {
	answerOpen(t, c, run, []string{"approve-1"}, input("approve-1", `{"action":"accept","content":{"approve":true}}`))
	require.NoError(t, run.Get(t.Context(), nil))
	assert.Equal(t, &signals.Progress{Done: 5, Total: 5}, memo(t, c, run).Progress)
}

func cancelPipeline(t *testing.T, c client.Client, run client.WorkflowRun) {
	require.Eventually(t, func() bool { return heartbeat(t, c, run) != "" }, waitFor, pollEvery)
	require.NoError(t, c.CancelWorkflow(t.Context(), run.GetID(), ""))
	var canceled *temporal.CanceledError
	require.ErrorAs(t, run.Get(t.Context(), nil), &canceled)
}

// answerOpen sends answers as soon as the task's memo has exactly these questions open.
func answerOpen(t *testing.T, c client.Client, run client.WorkflowRun, open []string, answers signals.Input) {
	t.Helper()
	slices.Sort(open)
	require.Eventually(t, func() bool { return slices.Equal(open, keys(memo(t, c, run))) }, waitFor, pollEvery, "waiting for questions %v", open)
	require.NoError(t, c.SignalWorkflow(t.Context(), run.GetID(), "", signals.InputSignal, answers))
}

func TestReplay(t *testing.T) {
	if *record != "" {
		recordAnew(t, *record)
	}
	for name, recording := range recordings {
		for i, events := range recording.runs {
			file := historyFile(name, i)
			t.Run(file, func(t *testing.T) {
				require.NoError(t, newReplayer(t, workflows.Pipeline).ReplayWorkflowHistoryFromJSONFile(testenv.QuietLogger(), file))
				assert.Subset(t, eventTypes(readHistory(t, file)), events)
			})
		}
	}
}

// A replay that accepts any workflow would guard nothing.
func TestReplayRefusesAChangedWorkflow(t *testing.T) {
	changes := map[string]func(workflow.Context, workflows.PipelineInput) (*signals.ToolResult, error){
		"one status more": func(ctx workflow.Context, in workflows.PipelineInput) (*signals.ToolResult, error) {
			task, err := workflows.NewTask(ctx, nil)
			if err != nil {
				return nil, err
			}
			task.Status(ctx, "starting")
			return workflows.Pipeline(ctx, in)
		},
		"one activity more": func(ctx workflow.Context, in workflows.PipelineInput) (*signals.ToolResult, error) {
			in.Pipeline.Steps = append(in.Pipeline.Steps, shell("new", "true"))
			return workflows.Pipeline(ctx, in)
		},
		"other needs": func(ctx workflow.Context, in workflows.PipelineInput) (*signals.ToolResult, error) {
			in.Pipeline.Steps[0].Needs, in.Pipeline.Steps[2].Needs = in.Pipeline.Steps[2].Needs[1:], nil
			return workflows.Pipeline(ctx, in)
		},
		"no retries": func(ctx workflow.Context, in workflows.PipelineInput) (*signals.ToolResult, error) {
			in.Pipeline.Steps[1].Retries = 0
			return workflows.Pipeline(ctx, in)
		},
	}
	for name, changed := range changes {
		t.Run(name, func(t *testing.T) {
			silent := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
			err := newReplayer(t, changed).ReplayWorkflowHistoryFromJSONFile(silent, historyFile("pipeline", 0))
			require.ErrorContains(t, err, "TMPRL1100", "Temporal's code for nondeterminism")
		})
	}
}

func TestHistoriesNameNoMachine(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		for _, event := range readHistory(t, file).Events {
			encoded, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(event)
			require.NoError(t, err)
			assert.NotRegexp(t, `(?i)"[^"]*/(home|root|users|tmp|work|var|usr|opt)/|\d+@|sticky|"buildId"|checksum|stackTrace`, string(encoded), file)
		}
	}
}

func historyFile(name string, run int) string {
	return filepath.Join("testdata", fmt.Sprintf("%s-%d.json", name, run+1))
}

// newReplayer replays the recorded workflows; pipeline stands for [workflows.Pipeline].
func newReplayer(t *testing.T, pipeline any) worker.WorkflowReplayer {
	t.Helper()
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableDeadlockDetection: true})
	require.NoError(t, err)
	replayer.RegisterWorkflowWithOptions(survey, workflow.RegisterOptions{Name: "Survey"})
	replayer.RegisterWorkflowWithOptions(pipeline, workflow.RegisterOptions{Name: workflows.PipelineName})
	return replayer
}

func readHistory(t *testing.T, file string) *historypb.History {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err, "record it with -record NAME")
	history, err := client.HistoryFromJSON(bytes.NewReader(data), client.HistoryJSONOptions{})
	require.NoError(t, err)
	return history
}

func eventTypes(history *historypb.History) (types []enumspb.EventType) {
	for _, event := range history.Events {
		types = append(types, event.EventType)
	}
	return types
}

func recordAnew(t *testing.T, name string) {
	require.Contains(t, recordings, name)
	recording := recordings[name]
	c, err := client.Dial(client.Options{HostPort: testenv.Temporal(t).Address(), Identity: recorder, Logger: testenv.QuietLogger()})
	require.NoError(t, err)
	defer c.Close()
	w := worker.New(c, recorder, workflows.WorkerOptions())
	w.RegisterWorkflowWithOptions(survey, workflow.RegisterOptions{Name: "Survey"})
	w.RegisterWorkflowWithOptions(workflows.Pipeline, workflow.RegisterOptions{Name: workflows.PipelineName})
	w.RegisterActivity(&activities.Commands{Grace: time.Second})
	require.NoError(t, w.Start())
	defer w.Stop()

	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: name, TaskQueue: recorder}, recording.workflow, recording.args...)
	require.NoError(t, err)
	first := run.GetRunID() // Get moves the run on to the last one
	recording.client(t, c, run)
	for i, runID := range runIDs(t, c, name, first) {
		writeHistory(t, historyFile(name, i), fetchHistory(t, c, name, runID))
	}
}

// runIDs are the runs of a workflow from the first on.
func runIDs(t *testing.T, c client.Client, id, run string) (runs []string) {
	for run != "" {
		runs = append(runs, run)
		history := fetchHistory(t, c, id, run)
		last := history.Events[len(history.Events)-1]
		run = last.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return runs
}

func fetchHistory(t *testing.T, c client.Client, id, run string) *historypb.History {
	t.Helper()
	history := new(historypb.History)
	events := c.GetWorkflowHistory(context.Background(), id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		history.Events = append(history.Events, event)
	}
	return history
}

// writeHistory writes a history without what names the machine and the binary.
func writeHistory(t *testing.T, file string, history *historypb.History) {
	t.Helper()
	encoded, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(history)
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	var tree any
	require.NoError(t, decoder.Decode(&tree))
	anonymize(tree)
	encoded, err = json.MarshalIndent(tree, "", " ")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, append(encoded, '\n'), 0o644))
}

// anonymize makes sticky task queues, which are named after the machine, normal ones, and removes the binary's checksum.
func anonymize(tree any) {
	switch node := tree.(type) {
	case []any:
		for _, child := range node {
			anonymize(child)
		}
	case map[string]any:
		if normal, ok := node["normalName"]; ok {
			node["name"], node["kind"] = normal, "TASK_QUEUE_KIND_NORMAL"
			delete(node, "normalName")
		}
		delete(node, "workerVersion")
		delete(node, "prevAutoResetPoints")
		for _, child := range node {
			anonymize(child)
		}
	}
}
