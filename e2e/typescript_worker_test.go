package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"taskbridge/internal/mcpclient"
	"taskbridge/internal/testenv"
	"taskbridge/signals"
	"taskbridge/workflows"
)

// typescript builds the example of a worker in TypeScript, which users copy, and is the path of its folder.
var typescript = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs("../examples/typescript")
	if err != nil {
		return "", err
	}
	if err := installExample(dir); err != nil {
		return "", err
	}
	return dir, runIn(dir, "npm", "run", "build")
})

// installExample installs what an example's lock file pins, once for a lock file.
func installExample(dir string) error {
	wanted, err := digest(filepath.Join(dir, "package.json"), filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return err
	}
	stamp := filepath.Join(dir, "node_modules", ".installed")
	if installed, err := os.ReadFile(stamp); err == nil && string(installed) == wanted {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Temporal's package brings its native library along: no install script has to fetch it.
	if err := runIn(dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		return err
	}
	return os.WriteFile(stamp, []byte(wanted), 0o600)
}

func runIn(dir, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, output)
	}
	return nil
}

// startTypeScript starts the example's worker, and a front end that serves its catalog.
func startTypeScript(t *testing.T) *mcpclient.Client {
	t.Helper()
	dir, err := typescript()
	require.NoError(t, err)
	worker := startIn(t, dir, temporalEnv(t), tool(t, "node"), "lib/worker.js")
	_, c := startFrontEnd(t, filepath.Join(dir, "tools.yaml"))
	worker.waitFor(`state: 'RUNNING'`)
	return c
}

func TestTypeScriptWorker(t *testing.T) {
	c := startTypeScript(t)
	t.Run("conforms to the tasks extension", func(t *testing.T) {
		for _, scenario := range tasksScenarios(t) {
			t.Run(scenario, func(t *testing.T) {
				t.Parallel() // a scenario mostly waits
				check := suite(t, "server", "--url", c.Endpoint(), "--scenario", scenario, "--timeout", scenarioTimeout)
				assert.Zero(t, check.wait(), "exit status")
				assert.Regexp(t, regexp.MustCompile(`Passed: [1-9]\d*/\d+, 0 failed, 0 warnings`), check.stdout.String())
			})
		}
	})
	t.Run("tells its status and the progress of its activity, and stops when it is cancelled", func(t *testing.T) {
		id := createWith(t, c, "slow_compute", `{"seconds":600,"label":"pi"}`)
		untilTask(t, c, id, says(`^computing pi: \d+ of 600 seconds$`))
		require.NoError(t, c.CancelTask(t.Context(), id))
		untilTask(t, c, id, status("cancelled"))
	})
	t.Run("asks and hears the answer", func(t *testing.T) {
		id := createWith(t, c, "confirm_delete", `{"filename":"old.log"}`)
		asked := untilTask(t, c, id, status("input_required"))
		require.Contains(t, asked.InputRequests, "confirm-1")
		assert.Contains(t, string(asked.InputRequests["confirm-1"].Params), "Delete old.log?")
		answer := map[string]json.RawMessage{"confirm-1": json.RawMessage(`{"action":"accept","content":{"confirm":true}}`)}
		require.NoError(t, c.UpdateTask(t.Context(), id, answer))
		ended := untilTask(t, c, id, status("completed"))
		assert.JSONEq(t, `[{"type":"text","text":"old.log is deleted"}]`, asJSON(t, ended.Result.Content))
	})
	t.Run("is cancelled while it waits for answers", func(t *testing.T) {
		id := createWith(t, c, "multi_input", `{}`)
		asked := untilTask(t, c, id, status("input_required"))
		assert.Len(t, asked.InputRequests, 2)
		require.NoError(t, c.CancelTask(t.Context(), id))
		untilTask(t, c, id, status("cancelled"))
	})
}

func createWith(t *testing.T, c *mcpclient.Client, tool, arguments string) string {
	t.Helper()
	outcome, err := c.Call(t.Context(), tool, json.RawMessage(arguments), nil)
	require.NoError(t, err)
	require.NotNil(t, outcome.Task, "%+v", outcome)
	return outcome.Task.ID
}

func says(pattern string) func(*mcpclient.Task) bool {
	return func(task *mcpclient.Task) bool { return regexp.MustCompile(pattern).MatchString(task.StatusMessage) }
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	require.NoError(t, err)
	return string(encoded)
}

// vectorsFile has in JSON what workflows and front ends tell each other by the contract.
const vectorsFile = "../docs/contract-vectors.json"

func readVectors(t *testing.T, into any) {
	t.Helper()
	content, err := os.ReadFile(vectorsFile)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(content, into))
}

// TestContractVectorsOfWorkflows checks both helpers for workflows by the script that comes with the TypeScript one.
func TestContractVectorsOfWorkflows(t *testing.T) {
	dir, err := typescript()
	require.NoError(t, err)
	file, err := filepath.Abs(vectorsFile)
	require.NoError(t, err)
	check := func(t *testing.T, args ...string) {
		t.Helper()
		args = append([]string{"lib/contract/check.js", file}, args...)
		assert.Zero(t, startIn(t, dir, temporalEnv(t), tool(t, "node"), args...).wait(), "exit status")
	}
	t.Run("TypeScript", func(t *testing.T) {
		check(t)
	})
	t.Run("Go", func(t *testing.T) {
		w := worker.New(testenv.Client(t), t.Name(), workflows.WorkerOptions())
		w.RegisterWorkflowWithOptions(contractVector, workflow.RegisterOptions{Name: "contractVector"})
		w.RegisterActivity(work)
		require.NoError(t, w.Start())
		defer w.Stop()
		check(t, t.Name())
	})
}

// vectorStep is one thing that a workflow does, as in src/contract/workflow.ts.
type vectorStep struct {
	Status        *string
	Progress      *signals.Progress
	Ask           *vectorQuestion
	Answers       bool
	Work          *string
	ContinueAsNew bool
	Text, Error   *string
	RPCError      *struct {
		Code    int64
		Message string
		Data    any
	}
}

type vectorQuestion struct {
	Name, Message   string
	RequestedSchema json.RawMessage
}

type vectorAnswer struct {
	Action  workflows.Action `json:"action"`
	Content map[string]any   `json:"content,omitempty"`
}

// contractVector is contractVector of src/contract/workflow.ts for package workflows.
func contractVector(ctx workflow.Context, steps []vectorStep, carried *workflows.Carry, given []vectorAnswer) (any, error) {
	task, err := workflows.NewTask(ctx, carried)
	if err != nil {
		return nil, err
	}
	run := vectorRun{Task: task, given: append([]vectorAnswer{}, given...)}
	for i, step := range steps {
		switch {
		case step.ContinueAsNew:
			return nil, workflow.NewContinueAsNewError(ctx, "contractVector", steps[i+1:], task.Carry(ctx), run.given)
		case step.Text != nil:
			return workflows.TextResult("%s", *step.Text), nil
		case step.Error != nil:
			return workflows.ErrorResult("%s", *step.Error), nil
		case step.RPCError != nil:
			return nil, workflows.RPCError(step.RPCError.Code, step.RPCError.Message, step.RPCError.Data)
		}
		if err := run.do(ctx, step); err != nil {
			return nil, err
		}
	}
	return run.given, nil
}

type vectorRun struct {
	*workflows.Task
	open  []*workflows.Pending[map[string]any]
	given []vectorAnswer
}

func (r *vectorRun) do(ctx workflow.Context, step vectorStep) error {
	switch {
	case step.Status != nil:
		r.Status(ctx, "%s", *step.Status)
	case step.Progress != nil:
		r.Progress(ctx, step.Progress.Done, step.Progress.Total)
	case step.Ask != nil:
		question := workflows.Question{Name: step.Ask.Name, Message: step.Ask.Message, Schema: step.Ask.RequestedSchema}
		pending, err := workflows.Ask[map[string]any](ctx, r.Task, question)
		r.open = append(r.open, pending)
		return err
	case step.Answers:
		return r.answers(ctx)
	case step.Work != nil:
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: patience, HeartbeatTimeout: stopGrace, WaitForCancellation: true,
		})
		return workflow.ExecuteActivity(ctx, work, *step.Work).Get(ctx, nil)
	}
	return nil
}

func (r *vectorRun) answers(ctx workflow.Context) error {
	for _, pending := range r.open {
		answer, err := pending.Get(ctx)
		if err != nil {
			return err
		}
		delete(answer.Content, "note") // which is no field: a struct would not have it
		r.given = append(r.given, vectorAnswer(answer))
	}
	r.open = nil
	return nil
}

// work heartbeats a message until it is cancelled.
func work(ctx context.Context, message string) error {
	for ctx.Err() == nil {
		activity.RecordHeartbeat(ctx, signals.Heartbeat{Version: signals.Version, StatusMessage: message})
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return ctx.Err()
}

// TestContractVectorsOfPayloads: package signals reads and writes every payload as the vectors have it.
func TestContractVectorsOfPayloads(t *testing.T) {
	var vectors struct {
		Payloads []struct {
			Type string
			JSON json.RawMessage
		}
	}
	readVectors(t, &vectors)
	require.NotEmpty(t, vectors.Payloads)
	for _, vector := range vectors.Payloads {
		payload, ok := map[string]any{
			"Meta": &signals.Meta{}, "TaskState": &signals.TaskState{}, "Input": &signals.Input{}, "Heartbeat": &signals.Heartbeat{},
		}[vector.Type]
		require.True(t, ok, vector.Type)
		decoder := json.NewDecoder(bytes.NewReader(vector.JSON))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(payload), vector.Type)
		assert.JSONEq(t, string(vector.JSON), asJSON(t, payload), vector.Type)
	}
}

// vectorOutcome is how a workflow ends: with a result, or with an application error.
type vectorOutcome struct {
	Returns json.RawMessage `json:"returns"`
	Fails   *vectorFailure  `json:"fails,omitempty"`
}

type vectorFailure struct {
	Type    string            `json:"type"`
	Message string            `json:"message"`
	Details []json.RawMessage `json:"details"`
}

func contractOutcome(_ workflow.Context, end vectorOutcome) (json.RawMessage, error) {
	if end.Fails == nil {
		return end.Returns, nil
	}
	var details []any
	for _, detail := range end.Fails.Details {
		details = append(details, detail)
	}
	return nil, temporal.NewNonRetryableApplicationError(end.Fails.Message, end.Fails.Type, nil, details...)
}

const outcomesCatalog = `
version: 1
x-outcome: &outcome { workflow: contractOutcome, input: { type: object, properties: { returns: {}, fails: { type: object } } } }
defaults: { taskQueue: contract-outcomes, pollInterval: 100ms }
tools:
  auto: { <<: *outcome, description: Mode auto., result: auto }
  text: { <<: *outcome, description: Mode text., result: text }
  json: { <<: *outcome, description: Mode json., result: json }
  mcp: { <<: *outcome, description: Mode mcp., result: mcp }
`

// TestContractVectorsOfOutcomes: clients get from the front end what the vectors make of a workflow's end.
func TestContractVectorsOfOutcomes(t *testing.T) {
	var vectors struct {
		Outcomes []struct {
			vectorOutcome
			Name, Mode string
			Task       struct {
				Status        string
				Result, Error json.RawMessage
			}
		}
	}
	readVectors(t, &vectors)
	require.NotEmpty(t, vectors.Outcomes)
	w := worker.New(testenv.Client(t), "contract-outcomes", workflows.WorkerOptions())
	w.RegisterWorkflowWithOptions(contractOutcome, workflow.RegisterOptions{Name: "contractOutcome"})
	require.NoError(t, w.Start())
	defer w.Stop()
	catalog := filepath.Join(t.TempDir(), "tools.yaml")
	require.NoError(t, os.WriteFile(catalog, []byte(outcomesCatalog), 0o600))
	_, c := startFrontEnd(t, catalog)
	for _, vector := range vectors.Outcomes {
		t.Run(vector.Name, func(t *testing.T) {
			id := createWith(t, c, vector.Mode, asJSON(t, vector.vectorOutcome))
			ended := untilTask(t, c, id, func(task *mcpclient.Task) bool { return task.Status.Terminal() })
			var got struct {
				Status string
				Result map[string]json.RawMessage
				Error  json.RawMessage
			}
			require.NoError(t, json.Unmarshal(ended.Raw, &got))
			assert.Equal(t, vector.Task.Status, got.Status)
			if vector.Task.Error != nil {
				assert.JSONEq(t, string(vector.Task.Error), string(got.Error))
				return
			}
			delete(got.Result, "resultType") // the protocol's, not the tool's
			assert.JSONEq(t, string(vector.Task.Result), asJSON(t, got.Result))
		})
	}
}
