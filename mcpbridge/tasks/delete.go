package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
)

const (
	// deleteTimeout is how long Delete waits for Temporal, which deletes a run only after a checkpoint since its end. By
	// default there is one every 30 to 35 s (history.transferProcessorUpdateAckInterval). Most clients wait for 60 s.
	deleteTimeout = 50 * time.Second
	// How long this process does not show a task whose deletion it has asked for.
	deletedLifetime = 10 * time.Minute
	deletedTasks    = 10_000
	runsPage        = 100
)

// errDeleting says that Temporal will have deleted a task in a while.
var errDeleting = errors.New("deletion of the task is under way: temporal finishes it by itself, usually within a minute")

// Delete removes a task that has ended, with all its runs, and returns once nobody can read it any more. That can take
// half a minute if it has just ended; after 50 s, or when ctx ends, it returns an error though Temporal goes on with it. A
// live task is an [InvalidInputError].
func (s *Service) Delete(ctx context.Context, owner, id string) error {
	at, err := s.address(owner, id)
	if err != nil {
		return err
	}
	task, err := s.read(ctx, at, id) // not from memory: a closed workflow can be reset
	switch {
	case err == nil && at.tool != nil:
		return invalidInput("the workflow was not started by a call of %s: it is not the caller's to delete", at.tool.Name)
	case err != nil:
		return err
	case task.expired(time.Now()) || s.isDeleted(task):
		return ErrNotFound
	case !task.Status.Terminal():
		return invalidInput("the task is %s: cancel it first, and delete it when it has ended", task.Status)
	}
	runs, err := task.pastRuns(ctx)
	if err != nil {
		return err
	}
	for _, runID := range append(runs, task.runID) { // the newest last, so that a failure leaves a task to delete
		if err := task.in.deleteRun(ctx, at.workflow, runID); err != nil {
			return err
		}
	}
	s.deleted.Set(task.runID, struct{}{})
	s.closed.Invalidate(at)
	s.changed(at.workflow)
	return task.in.awaitDeletion(ctx, at.workflow, task.runID)
}

// pastRuns are the closed runs of a task but its newest, as continue-as-new and reset leave them.
func (t *Task) pastRuns(ctx context.Context) (runs []string, err error) {
	if t.at.firstRun == "" {
		return t.in.pastRuns(ctx, t.at.workflow, t.runID)
	}
	for run, err := range t.in.chain(ctx, t.at.workflow, t.at.firstRun) {
		if err != nil {
			return nil, err
		}
		if runID := run.GetWorkflowExecutionInfo().GetExecution().GetRunId(); runID != t.runID {
			runs = append(runs, runID)
		}
	}
	return runs, nil
}

// pastRuns are the closed runs of a workflow but its newest.
func (n *namespace) pastRuns(ctx context.Context, workflow, newest string) (runs []string, err error) {
	query := fmt.Sprintf(`WorkflowId = %s AND ExecutionStatus != "Running"`, quote(workflow))
	for page := []byte(nil); ; {
		answer, err := n.visibility(ctx, query, page, runsPage)
		if err != nil {
			return nil, err
		}
		for _, run := range answer.GetExecutions() {
			if runID := run.GetExecution().GetRunId(); runID != newest {
				runs = append(runs, runID)
			}
		}
		if page = answer.GetNextPageToken(); len(page) == 0 {
			return runs, nil
		}
	}
}

func (n *namespace) deleteRun(ctx context.Context, workflow, runID string) error {
	ctx, cancel := unbroken(ctx)
	defer cancel()
	_, err := n.service().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace:         n.name,
		WorkflowExecution: execution(workflow, runID),
	})
	var gone *serviceerror.NotFound
	if err != nil && !errors.As(err, &gone) {
		return fmt.Errorf("delete workflow: %w", unavailable(err))
	}
	return nil
}

// awaitDeletion waits until a run is gone. Temporal itself tries again less and less often, but at once
// when it is asked again.
func (n *namespace) awaitDeletion(ctx context.Context, workflow, runID string) error {
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	for pause := firstPause; ; pause = longer(pause) {
		if _, err := n.describe(ctx, workflow, runID); errors.Is(err, ErrNotFound) {
			return nil
		}
		if !sleep(ctx, pause) {
			return errDeleting
		}
		_ = n.deleteRun(ctx, workflow, runID) // it was accepted before
	}
}

// isDeleted reports whether this process has asked Temporal to delete a task.
func (s *Service) isDeleted(task *Task) bool {
	_, deleted := s.deleted.GetIfPresent(task.runID)
	return deleted
}
