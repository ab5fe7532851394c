package workflows

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"taskbridge/activities"
	"taskbridge/signals"
)

const (
	defaultStepTimeout = time.Hour
	// A worker that says nothing for this long is lost, and its step runs again elsewhere.
	stepHeartbeatTimeout = 10 * time.Second
	// How many workers a step may take down before it counts as failed.
	stepWorkerLosses = 5
	// Beyond the command's own timeout: time to stop it and to report.
	stepOverhead = time.Minute
	retryPause   = time.Second
	// Output kept of all steps together. The result has it twice, as text and structured, and a control character is six
	// bytes of JSON; Temporal refuses payloads above 2 MiB.
	pipelineOutputBytes = 128 << 10
	stepOutputBytes     = 16 << 10
	// A step that succeeded is rarely read in full; all that was kept is in the structured content.
	succeededOutputLines = 10
)

// PipelineName is the workflow type of [Pipeline].
const PipelineName = "Pipeline"

// StepStatus is how a step ended.
type StepStatus string

// The ends a step can have.
const (
	StepSucceeded StepStatus = "succeeded"
	StepFailed    StepStatus = "failed"
	StepTimedOut  StepStatus = "timed_out"
	StepDeclined  StepStatus = "declined"
	StepSkipped   StepStatus = "skipped"
	StepCancelled StepStatus = "cancelled"
)

// StepResult is one step of a [PipelineResult].
type StepResult struct {
	Name       string     `json:"name"`
	Status     StepStatus `json:"status"`
	ExitCode   *int       `json:"exitCode,omitempty"`
	DurationMs int64      `json:"durationMs"`
	Attempts   int        `json:"attempts,omitempty"`
	// Output is the tail of what the command wrote; OmittedBytes is how much came before it.
	Output       string `json:"output,omitempty"`
	OmittedBytes int64  `json:"omittedBytes,omitempty"`
	// Message says why a step failed or did not run.
	Message string `json:"message,omitempty"`
	// Answer is the accepted form of an ask step.
	Answer map[string]json.RawMessage `json:"answer,omitempty"`
}

// PipelineResult is the structured content of a pipeline's tool result.
type PipelineResult struct {
	Status StepStatus   `json:"status"`
	Steps  []StepResult `json:"steps"`
}

// Pipeline runs the steps of a [PipelineSpec]. Its result lists every step and is an error result if one failed.
func Pipeline(ctx workflow.Context, in PipelineInput) (*signals.ToolResult, error) {
	task, err := NewTask(ctx, nil)
	if err != nil {
		return nil, err
	}
	if err := in.Pipeline.Validate(); err != nil {
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), "InvalidPipeline", nil)
	}
	run := newPipelineRun(task, in)
	run.counts = workflow.GetVersion(ctx, "progress", workflow.DefaultVersion, 1) == 1
	finished := workflow.NewWaitGroup(ctx)
	for i := range run.spec.Steps {
		finished.Add(1)
		workflow.GoNamed(ctx, run.spec.Steps[i].Name, func(ctx workflow.Context) {
			defer finished.Done()
			run.end(ctx, i, run.step(ctx, i))
		})
	}
	// Steps end by themselves when ctx is cancelled, and only once their commands are gone.
	waiting, _ := workflow.NewDisconnectedContext(ctx)
	finished.Wait(waiting)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if run.counts {
		steps := float64(len(run.results))
		task.Progress(ctx, steps, steps)
	}
	return run.result()
}

// pipelineRun is the state of a running [Pipeline]. results[i].Status is empty until step i has ended.
type pipelineRun struct {
	task    *Task
	spec    PipelineSpec
	env     map[string]string
	running []string
	results []StepResult
	// counts is false in runs that began before pipelines told their progress.
	counts bool
}

func newPipelineRun(task *Task, in PipelineInput) *pipelineRun {
	run := &pipelineRun{task: task, spec: in.Pipeline, env: map[string]string{}}
	run.results = make([]StepResult, len(run.spec.Steps))
	for i, step := range run.spec.Steps {
		run.results[i].Name = step.Name
	}
	maps.Copy(run.env, run.spec.Env)
	environment(run.env, "ARG", in.Arguments)
	return run
}

// step waits for what step i needs, runs it and returns how it ended.
func (r *pipelineRun) step(ctx workflow.Context, i int) StepResult {
	step, result := r.spec.Steps[i], StepResult{Name: r.spec.Steps[i].Name}
	if workflow.Await(ctx, func() bool { return r.ended(step.Needs) }) != nil {
		result.Status = StepCancelled
		return result
	}
	if failed := r.failed(step.Needs); failed != "" {
		result.Status, result.Message = StepSkipped, fmt.Sprintf("needs %s, which did not succeed", failed)
		return result
	}
	r.running = append(r.running, r.label(i))
	r.tell(ctx)
	started := workflow.Now(ctx)
	if step.Ask != nil {
		r.ask(ctx, step, &result)
	} else {
		r.command(ctx, step, r.label(i), &result)
	}
	result.DurationMs = workflow.Now(ctx).Sub(started).Milliseconds()
	if ctx.Err() != nil {
		result.Status = StepCancelled
	}
	return result
}

// end records how step i ended: an attempt's status is not yet the step's. When nothing runs any more, the next to tell is a
// step that begins now, or the end of the pipeline.
func (r *pipelineRun) end(ctx workflow.Context, i int, result StepResult) {
	r.results[i] = result
	r.running = slices.DeleteFunc(r.running, func(label string) bool { return label == r.label(i) })
	if len(r.running) > 0 {
		r.tell(ctx)
	}
}

// tell publishes what runs and how much is done.
func (r *pipelineRun) tell(ctx workflow.Context) {
	if r.counts {
		r.task.progress = r.progress()
	}
	r.task.Status(ctx, "%s", strings.Join(r.running, ", "))
}

// progress counts the steps that have ended in any way.
func (r *pipelineRun) progress() *signals.Progress {
	progress := &signals.Progress{Total: float64(len(r.results))}
	for _, result := range r.results {
		if result.Status != "" {
			progress.Done++
		}
	}
	return progress
}

func (r *pipelineRun) label(i int) string {
	return fmt.Sprintf("%s (%d/%d)", r.spec.Steps[i].Name, i+1, len(r.spec.Steps))
}

func (r *pipelineRun) ask(ctx workflow.Context, step Step, result *StepResult) {
	question := Question{Name: step.Name, Message: step.Ask.Message, Schema: step.Ask.Schema}
	if question.Schema == nil {
		question.Schema = approvalSchema
	}
	answer, err := Elicit[map[string]json.RawMessage](ctx, r.task, question)
	switch {
	case err != nil:
		result.Status, result.Message = StepFailed, err.Error()
	case size(answer.Content) > maxAnswerBytes:
		answer.Content = nil
		result.Status, result.Message = StepFailed, fmt.Sprintf("the answer has more than %d bytes", maxAnswerBytes)
	case !answer.Accepted():
		result.Status, result.Message = StepDeclined, fmt.Sprintf("%s was declined (%s)", step.Name, answer.Action)
	case string(answer.Content["approve"]) == "false":
		result.Status, result.Message = StepDeclined, step.Name+" was not approved"
	default:
		result.Status = StepSucceeded
	}
	if result.Answer = answer.Content; result.Status == StepSucceeded {
		environment(r.env, "ASK_"+variableName(step.Name), answer.Content)
	}
}

// maxAnswerBytes is far below what an environment variable holds, and lets a result hold many answers.
const maxAnswerBytes = 32 << 10

func size(answer map[string]json.RawMessage) int {
	bytes := 0
	for name, value := range answer {
		bytes += len(name) + len(value)
	}
	return bytes
}

var approvalSchema = json.RawMessage(`{"type":"object","properties":{` +
	`"approve":{"type":"boolean","title":"Approve","description":"Go on with the pipeline","default":true},` +
	`"comment":{"type":"string","title":"Comment","maxLength":2000}},"required":["approve"]}`)

// command runs a step's command until it succeeds or its retries are used up.
func (r *pipelineRun) command(ctx workflow.Context, step Step, label string, result *StepResult) {
	timeout := cmp.Or(time.Duration(step.Timeout), defaultStepTimeout)
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: timeout + stepOverhead,
		HeartbeatTimeout:    stepHeartbeatTimeout,
		WaitForCancellation: true,
		Summary:             label,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: retryPause, MaximumAttempts: stepWorkerLosses},
	})
	command := activities.Command{
		Label:     label,
		Argv:      step.Run,
		Dir:       filepath.Join(r.spec.Dir, step.Dir),
		Env:       r.stepEnv(step),
		TimeoutMs: timeout.Milliseconds(),
		TailBytes: min(stepOutputBytes, pipelineOutputBytes/len(r.spec.Steps)),
	}
	for result.Attempts = 1; ; result.Attempts++ {
		var commands *activities.Commands
		var outcome activities.CommandResult
		err := workflow.ExecuteActivity(ctx, commands.RunCommand, command).Get(ctx, &outcome)
		result.report(outcome, err)
		if result.Status == StepSucceeded || err != nil || result.Attempts > step.Retries {
			return
		}
		if workflow.Sleep(ctx, retryPause) != nil {
			return
		}
	}
}

func (result *StepResult) report(outcome activities.CommandResult, err error) {
	if err != nil {
		result.Status, result.Message = StepFailed, rootMessage(err)
		return
	}
	result.ExitCode = &outcome.ExitCode
	result.Output, result.OmittedBytes = outcome.Output, outcome.OmittedBytes
	switch outcome.Outcome {
	case activities.Succeeded:
		result.Status, result.Message = StepSucceeded, ""
	case activities.TimedOut:
		result.Status, result.Message = StepTimedOut, "the command took too long and was stopped"
	default:
		result.Status, result.Message = StepFailed, fmt.Sprintf("exit status %d", outcome.ExitCode)
		if outcome.Signal != "" {
			result.Message = "ended by signal: " + outcome.Signal
		}
	}
}

func (r *pipelineRun) stepEnv(step Step) map[string]string {
	env := maps.Clone(r.env)
	maps.Copy(env, step.Env)
	return env
}

func (r *pipelineRun) ended(needs []string) bool {
	return r.firstNeed(needs, func(i int) bool { return r.results[i].Status == "" }) == ""
}

func (r *pipelineRun) failed(needs []string) string {
	return r.firstNeed(needs, func(i int) bool { return !r.passed(i) })
}

// firstNeed is the name of the first needed step that matches, else "".
func (r *pipelineRun) firstNeed(needs []string, matches func(step int) bool) string {
	for _, need := range needs {
		if matches(slices.IndexFunc(r.spec.Steps, func(step Step) bool { return step.Name == need })) {
			return need
		}
	}
	return ""
}

// passed reports whether a step succeeded, or failed and may.
func (r *pipelineRun) passed(i int) bool {
	switch r.results[i].Status {
	case StepSucceeded:
		return true
	case StepFailed, StepTimedOut:
		return r.spec.Steps[i].ContinueOnError
	}
	return false
}

func (r *pipelineRun) result() (*signals.ToolResult, error) {
	whole := PipelineResult{Status: StepSucceeded, Steps: r.results}
	for i := range r.results {
		if !r.passed(i) {
			whole.Status = StepFailed
		}
	}
	structured, err := json.Marshal(whole)
	if err != nil {
		return nil, fmt.Errorf("pipeline result: %w", err)
	}
	return &signals.ToolResult{
		Content:           []json.RawMessage{signals.Text(whole.text())},
		StructuredContent: structured,
		IsError:           whole.Status != StepSucceeded,
	}, nil
}

// text is the result for a reader: one line a step and what it wrote, all that was kept if it did not succeed.
func (p PipelineResult) text() string {
	var text strings.Builder
	fmt.Fprintf(&text, "Pipeline %s.\n", p.Status)
	for _, step := range p.Steps {
		fmt.Fprintf(&text, "- %s: %s", step.Name, step.Status)
		if step.Status != StepSkipped {
			fmt.Fprintf(&text, " in %s", (time.Duration(step.DurationMs) * time.Millisecond).Round(100*time.Millisecond))
		}
		if step.Attempts > 1 {
			fmt.Fprintf(&text, ", attempt %d", step.Attempts)
		}
		if step.Message != "" {
			fmt.Fprintf(&text, ": %s", step.Message)
		}
		text.WriteByte('\n')
		if output := step.shownOutput(); output != "" {
			fmt.Fprintf(&text, "%s\n", output)
		}
	}
	return text.String()
}

// shownOutput is what a reader is shown of a step's output, indented.
func (result StepResult) shownOutput() string {
	lines := strings.Split(strings.TrimSpace(result.Output), "\n")
	if result.Status == StepSucceeded && len(lines) > succeededOutputLines {
		lines = append([]string{"…"}, lines[len(lines)-succeededOutputLines:]...)
	}
	if len(lines) == 1 && lines[0] == "" {
		return ""
	}
	return "    " + strings.Join(lines, "\n    ")
}

// rootMessage is what went wrong with an activity, without the SDK's frame of IDs and types around it.
func rootMessage(err error) string {
	var application *temporal.ApplicationError
	if errors.As(err, &application) {
		return application.Message()
	}
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) {
		return fmt.Sprintf("its worker was lost too often (%s)", timeout.Message())
	}
	return err.Error()
}
