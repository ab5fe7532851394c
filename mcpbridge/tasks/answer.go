package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"

	enumspb "go.temporal.io/api/enums/v1"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/signals"
)

// identity names this program in histories.
const identity = "taskbridge"

// Answer sends responses to a task's open input requests. Keys that are not open are ignored. It returns once Temporal
// has stored them; a response that does not fit its request is an [InvalidInputError] and then none is sent.
func (s *Service) Answer(ctx context.Context, owner, id string, responses map[string]json.RawMessage) error {
	task, err := s.asking(ctx, owner, id, responses)
	if err != nil {
		return err
	}
	answers, err := task.answers(responses)
	if err != nil || len(answers) == 0 {
		return err
	}
	effects, err := task.effects(answers)
	if err != nil {
		return err
	}
	ctx, cancel := unbroken(ctx)
	defer cancel()
	if len(answers) > 0 {
		err := s.signalAnswers(ctx, task, answers)
		s.settle(task)
		if err != nil {
			return err
		}
	}
	if len(effects) == 0 {
		return nil
	}
	defer s.changed(task.at.workflow)
	for _, key := range slices.Sorted(maps.Keys(effects)) {
		if err := s.take(ctx, task, key, effects[key]); err != nil {
			return err
		}
	}
	return nil
}

// asking is a task to answer. If memory does not know all that is to be answered, another process may have shown newer
// requests.
func (s *Service) asking(ctx context.Context, owner, id string, responses map[string]json.RawMessage) (*Task, error) {
	task, err := s.Get(ctx, owner, id)
	if err != nil || task.Status.Terminal() {
		return task, err
	}
	for key := range responses {
		if _, open := task.InputRequests[key]; !open || task.viewed {
			s.changed(task.at.workflow)
			return s.Get(ctx, owner, id)
		}
	}
	return task, nil
}

// answers are the responses to open requests, checked.
func (t *Task) answers(responses map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	answers := map[string]json.RawMessage{}
	for key, response := range responses {
		request, open := t.InputRequests[key]
		if !open {
			continue
		}
		if err := checkResponse(request, response); err != nil {
			return nil, invalidInput("inputResponses[%q]: %v", key, err)
		}
		answers[key] = response
	}
	return answers, CheckSize("responses", slices.Collect(maps.Values(answers))...)
}

// effect is what the answer to a question of the catalog does.
type effect struct {
	catalog.Effect
	payload  json.RawMessage
	question string // name of the question
	activity string // ID of the activity to complete, if that is what it does
}

// effects takes the answers to questions of the catalog out of answers and says what they do.
func (t *Task) effects(answers map[string]json.RawMessage) (map[string]effect, error) {
	effects := map[string]effect{}
	for key, q := range t.questions {
		response, answered := answers[key]
		if !answered {
			continue
		}
		delete(answers, key)
		action, content, err := catalog.DecodeAnswer(response)
		if err != nil {
			return nil, invalidInput("inputResponses[%q]: %v", key, err)
		}
		does, payload, err := q.input.Effect(action, content, q.facts)
		var misfit *catalog.ArgumentError
		if err != nil && !errors.As(err, &misfit) {
			err = fmt.Errorf("the catalog of this server says nothing that can be sent: %w", err)
		}
		if err != nil {
			return nil, invalidInput("inputResponses[%q]: %v", key, err)
		}
		if err := CheckSize("responses", payload); err != nil {
			return nil, err
		}
		effects[key] = effect{does, payload, q.input.Name, q.activity}
	}
	return effects, nil
}

// signalAnswers sends answers to the questions of a workflow that follows the contract.
func (s *Service) signalAnswers(ctx context.Context, task *Task, answers map[string]json.RawMessage) error {
	err := task.in.temporal.SignalWorkflow(ctx, task.at.workflow, task.chainRun(), signals.InputSignal, signals.Input{Responses: answers})
	if err != nil {
		return ended("signal workflow", err)
	}
	s.markAnswered(task.runID, slices.Collect(maps.Keys(answers))...)
	return nil
}

// chainRun is the run to send something to; "" is the workflow's newest.
func (t *Task) chainRun() string {
	if t.at.firstRun == "" {
		return ""
	}
	return t.runID
}

// take does to a workflow what the answer to a question of the catalog does. However often the same is done for one key, it
// happens once.
func (s *Service) take(ctx context.Context, task *Task, key string, e effect) error {
	payloads, err := task.in.payloads(e.payload)
	if err != nil {
		return err
	}
	request := uuid.NewSHA1(uuid.Nil, []byte(task.runID+"/"+key)).String()
	switch {
	case e.Cancel:
		err = task.stop(ctx)
	case e.Activity != "":
		err = task.completeActivity(ctx, &workflowservice.RespondActivityTaskCompletedByIdRequest{
			Namespace: task.in.name, WorkflowId: task.at.workflow, RunId: task.runID, ActivityId: e.activity,
			Result: payloads, Identity: identity,
		})
	case e.Update != "":
		err = task.update(ctx, request, e, payloads)
	default:
		_, err = task.in.service().SignalWorkflowExecution(ctx, &workflowservice.SignalWorkflowExecutionRequest{
			Namespace: task.in.name, WorkflowExecution: execution(task.at.workflow, task.runID),
			SignalName: e.Signal, Input: payloads, RequestId: request, Identity: identityOf(e.question),
		})
	}
	if err = ended("answer "+key, err); err != nil {
		return err
	}
	s.markAnswered(task.runID, key)
	return nil
}

// completeActivity completes an activity. That nothing waits for that is an [InvalidInputError]: the answer would be lost.
func (t *Task) completeActivity(ctx context.Context, request *workflowservice.RespondActivityTaskCompletedByIdRequest) error {
	_, err := t.in.service().RespondActivityTaskCompletedById(ctx, request)
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return invalidInput("the activity does not wait for an answer any more: it has been answered, has timed out or is tried again")
	}
	return err
}

// update sends an update and waits until the workflow has accepted it. That it rejects it is an [InvalidInputError].
func (t *Task) update(ctx context.Context, id string, e effect, args *commonpb.Payloads) error {
	response, err := t.in.service().UpdateWorkflowExecution(ctx, &workflowservice.UpdateWorkflowExecutionRequest{
		Namespace:         t.in.name,
		WorkflowExecution: execution(t.at.workflow, t.runID),
		WaitPolicy:        &updatepb.WaitPolicy{LifecycleStage: enumspb.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED},
		Request: &updatepb.Request{
			Meta:  &updatepb.Meta{UpdateId: id, Identity: identityOf(e.question)},
			Input: &updatepb.Input{Name: e.Update, Args: args},
		},
	})
	if err != nil {
		return err
	}
	if response.GetStage() < enumspb.UPDATE_WORKFLOW_EXECUTION_LIFECYCLE_STAGE_ACCEPTED {
		return fmt.Errorf("%w: no worker has taken update %s", ErrUnavailable, e.Update)
	}
	if failure := response.GetOutcome().GetFailure(); failure != nil {
		message, _ := t.in.failure(failure)
		return invalidInput("the workflow does not take the answer: %s", message)
	}
	return nil
}

// cancelReason is the reason that Temporal records when Cancel terminates a workflow.
const cancelReason = "cancelled by the client"

// Cancel asks a task's workflow to stop, or terminates it if its tool says so. A task that has ended is left as it is. The
// next Get says that cancellation was requested.
func (s *Service) Cancel(ctx context.Context, owner, id string) error {
	task, err := s.Get(ctx, owner, id)
	if err != nil {
		return err
	}
	if task.Status.Terminal() {
		return nil
	}
	if err := task.checkGrant(func(a *catalog.Attach) bool { return a.Cancel }, "cancel"); err != nil {
		return err
	}
	ctx, done := unbroken(ctx)
	defer done()
	defer s.changed(task.at.workflow)
	return ended("cancel workflow", task.stop(ctx))
}

// stop cancels the workflow in the way of its tool.
func (t *Task) stop(ctx context.Context) error {
	if t.meta.Cancel == string(catalog.CancelTerminate) {
		_, err := t.in.service().TerminateWorkflowExecution(ctx, &workflowservice.TerminateWorkflowExecutionRequest{
			Namespace: t.in.name, WorkflowExecution: execution(t.at.workflow, ""), FirstExecutionRunId: t.at.firstRun,
			Identity: identity, Reason: cancelReason,
		})
		return err
	}
	_, err := t.in.service().RequestCancelWorkflowExecution(ctx, &workflowservice.RequestCancelWorkflowExecutionRequest{
		Namespace: t.in.name, WorkflowExecution: execution(t.at.workflow, ""), FirstExecutionRunId: t.at.firstRun,
		Identity: identity, RequestId: uuid.NewString(), Reason: cancelReason,
	})
	return err
}

// ended is an error of Temporal about a task that was there a moment ago: that it is not there now is none, since nothing of
// it is open any more.
func ended(doing string, err error) error {
	var (
		gone    *serviceerror.NotFound
		invalid *InvalidInputError
	)
	switch {
	case err == nil, errors.As(err, &gone):
		return nil
	case errors.As(err, &invalid):
		return err
	}
	return fmt.Errorf("%s: %w", doing, unavailable(err))
}
