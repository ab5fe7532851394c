package mcpbridge_test

import (
	"encoding/json"
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"taskbridge/signals"
	"taskbridge/workflows"
)

// Echo returns what it is given.
func Echo(_ workflow.Context, in json.RawMessage) (json.RawMessage, error) { return in, nil }

// Sleep is a workflow that takes a while.
func Sleep(ctx workflow.Context, in struct {
	Seconds float64 `json:"seconds"`
}) (string, error) {
	task, err := workflows.NewTask(ctx, nil)
	if err != nil {
		return "", err
	}
	task.Status(ctx, "sleeping")
	return "slept", workflow.Sleep(ctx, time.Duration(in.Seconds*float64(time.Second)))
}

// Form is the answer to Ask.
type Form struct {
	Color string `json:"color"`
	Count int    `json:"count,omitempty"`
}

// Ask asks one question and returns the answer.
func Ask(ctx workflow.Context, _ struct{}) (string, error) {
	task, err := workflows.NewTask(ctx, nil)
	if err != nil {
		return "", err
	}
	answer, err := workflows.Elicit[Form](ctx, task, workflows.Question{Name: "color", Message: "Which color?"})
	if err != nil {
		return "", err
	}
	if !answer.Accepted() {
		return string(answer.Action), nil
	}
	return answer.Content.Color, nil
}

// Fail ends in the way it is told to.
func Fail(_ workflow.Context, in struct {
	How string `json:"how"`
}) (*signals.ToolResult, error) {
	switch in.How {
	case "result":
		return workflows.ErrorResult("told to fail"), nil
	case "rpc":
		return nil, workflows.RPCError(-31999, "told to break", map[string]int64{"number": 9007199254740993})
	case "typed":
		return nil, temporal.NewNonRetryableApplicationError("told to fail", "Told", errors.New("cause"))
	}
	return nil, errors.New("told to fail")
}

// Stubborn ignores cancellation.
func Stubborn(ctx workflow.Context, _ struct{}) (string, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	return "done", workflow.Sleep(ctx, time.Hour)
}

// Again continues as new until it has run often enough, asking each time and carrying its task along.
func Again(ctx workflow.Context, in struct {
	Runs  int              `json:"runs"`
	Carry *workflows.Carry `json:"carry,omitempty"`
	Said  string           `json:"said,omitempty"`
}) (string, error) {
	task, err := workflows.NewTask(ctx, in.Carry)
	if err != nil {
		return "", err
	}
	answer, err := workflows.Elicit[Form](ctx, task, workflows.Question{Name: "color", Message: "Which color?"})
	if err != nil {
		return "", err
	}
	in.Said += answer.Content.Color
	if in.Runs--; in.Runs == 0 {
		return in.Said, nil
	}
	in.Carry = task.Carry(ctx)
	return "", workflow.NewContinueAsNewError(ctx, "Again", in)
}
