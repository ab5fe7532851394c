package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"taskbridge/mcpbridge"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/signals"
	"taskbridge/workflows"
)

// codeInternalError is JSON-RPC's code for errors of the server.
const codeInternalError = -32603

// addTaskFixtures registers the workflows which the suite's tasks scenarios call, with the worker that runs them and
// the bridge that offers them as tools.
func addTaskFixtures(w worker.Registry, bridge *mcpbridge.Bridge) error {
	for _, run := range []any{Greet, SlowCompute, FailingJob, ProtocolErrorJob, ConfirmDelete, MultiInput, WithTask} {
		w.RegisterWorkflow(run)
	}
	return errors.Join(
		mcpbridge.AddTool(bridge, fixture("greet", "Greets.", catalog.TaskNever), Greet),
		mcpbridge.AddTool(bridge, fixture("slow_compute", "Sleeps for some seconds.", catalog.TaskOptional), SlowCompute),
		mcpbridge.AddTool(bridge, fixture("failing_job", "Fails after a second.", catalog.TaskRequired), FailingJob),
		mcpbridge.AddTool(bridge, fixture("protocol_error_job", "Ends with a JSON-RPC error.", catalog.TaskOptional), ProtocolErrorJob),
		mcpbridge.AddTool(bridge, fixture("confirm_delete", "Asks before it deletes nothing.", catalog.TaskOptional), ConfirmDelete),
		mcpbridge.AddTool(bridge, fixture("multi_input", "Asks two questions at once.", catalog.TaskOptional), MultiInput),
		mcpbridge.AddTool(bridge, withTask(), WithTask),
	)
}

func fixture(name, description string, task catalog.TaskMode) catalog.Tool {
	return catalog.Tool{
		Name: name, Description: description, TaskQueue: taskQueue, Task: task, PollInterval: 200 * time.Millisecond,
	}
}

// withTask asks for the user's name before it starts, and passes it to the workflow.
func withTask() catalog.Tool {
	tool := fixture("test_tool_with_task", "Asks for a name, then greets in a task.", catalog.TaskRequired)
	tool.InputSchema = json.RawMessage(`{"type":"object","properties":{}}`)
	tool.Confirm = &catalog.Confirm{
		Message:  "What is your name?",
		Schema:   json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`),
		Argument: "user_name",
	}
	return tool
}

// Person is somebody to greet.
type Person struct {
	Name string `json:"name"`
}

// Greet returns a greeting at once.
func Greet(_ workflow.Context, who Person) (string, error) {
	return fmt.Sprintf("Hello, %s!", who.Name), nil
}

// Computation takes some seconds.
type Computation struct {
	Seconds float64 `json:"seconds"`
	Label   string  `json:"label,omitempty"`
}

// SlowCompute sleeps, and ends cancelled when it is cancelled meanwhile.
func SlowCompute(ctx workflow.Context, in Computation) (string, error) {
	task, err := workflows.NewTask(ctx, nil)
	if err != nil {
		return "", err
	}
	task.Status(ctx, "computing for %g seconds", in.Seconds)
	if err := workflow.Sleep(ctx, time.Duration(in.Seconds*float64(time.Second))); err != nil {
		return "", err
	}
	return fmt.Sprintf("computed %s for %g seconds", in.Label, in.Seconds), nil
}

// FailingJob runs for a second and fails as a tool does.
func FailingJob(ctx workflow.Context, _ struct{}) (string, error) {
	if err := workflow.Sleep(ctx, time.Second); err != nil {
		return "", err
	}
	return "", temporal.NewNonRetryableApplicationError("the job failed", "JobFailed", nil)
}

// ProtocolErrorJob fails as a protocol does.
func ProtocolErrorJob(workflow.Context, struct{}) (string, error) {
	return "", workflows.RPCError(codeInternalError, "the job broke the protocol", map[string]string{"job": "protocol_error_job"})
}

// File is a file to delete.
type File struct {
	Filename string `json:"filename"`
}

// Confirmation is what a person says to a deletion.
type Confirmation struct {
	Confirm bool `json:"confirm" jsonschema:"Delete the file"`
}

// ConfirmDelete asks one question.
func ConfirmDelete(ctx workflow.Context, file File) (*signals.ToolResult, error) {
	task, err := workflows.NewTask(ctx, nil)
	if err != nil {
		return nil, err
	}
	answer, err := workflows.Elicit[Confirmation](ctx, task, workflows.Question{
		Name: "confirm", Message: fmt.Sprintf("Delete %s?", file.Filename),
	})
	if err != nil {
		return nil, err
	}
	if !answer.Accepted() || !answer.Content.Confirm {
		return workflows.TextResult("%s is kept", file.Filename), nil
	}
	return workflows.TextResult("%s is deleted", file.Filename), nil
}

// MultiInput asks two questions at once.
func MultiInput(ctx workflow.Context, _ struct{}) (string, error) {
	task, err := workflows.NewTask(ctx, nil)
	if err != nil {
		return "", err
	}
	name, err := workflows.Ask[Person](ctx, task, workflows.Question{Name: "name", Message: "What is your name?"})
	if err != nil {
		return "", err
	}
	confirm, err := workflows.Ask[Confirmation](ctx, task, workflows.Question{Name: "confirm", Message: "Go on?"})
	if err != nil {
		return "", err
	}
	person, err := name.Get(ctx)
	if err != nil {
		return "", err
	}
	confirmation, err := confirm.Get(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s says %t", person.Content.Name, confirmation.Content.Confirm), nil
}

// Named carries the answer to the question that test_tool_with_task asks before it starts.
type Named struct {
	UserName Person `json:"user_name"`
}

// WithTask greets the one who confirmed.
func WithTask(_ workflow.Context, in Named) (string, error) {
	return fmt.Sprintf("Hello, %s!", in.UserName.Name), nil
}
