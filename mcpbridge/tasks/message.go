package tasks

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"taskbridge/signals"
)

// unclaimedAfter is how long work may lie on a task queue before the status message says that it waits for a worker.
const unclaimedAfter = 2 * time.Second

// statusMessage is what a live task is doing, in one line: what its running activities report, else what its workflow
// says, else what Temporal tells about it; and if nothing can go on, why.
func (n *namespace) statusMessage(said string, d *workflowservice.DescribeWorkflowExecutionResponse) string {
	queue := d.GetExecutionConfig().GetTaskQueue().GetName()
	var reported, derived, stuck []string
	for _, activity := range d.GetPendingActivities() {
		if message := n.heartbeat(activity); message != "" {
			reported = append(reported, message)
			continue
		}
		name := activity.GetActivityType().GetName()
		switch {
		case unclaimed(activity):
			stuck = append(stuck, fmt.Sprintf("waiting for a worker on task queue %s to run %s", queue, name))
		case activity.GetAttempt() > 1:
			stuck = append(stuck, n.retrying(name, activity))
		default:
			derived = append(derived, "running "+name)
		}
	}
	if message := stuckWorkflowTask(queue, d.GetPendingWorkflowTask()); message != "" {
		stuck = append(stuck, message)
	}
	doing := cmp.Or(strings.Join(reported, "; "), said, strings.Join(derived, "; "))
	if doing != "" {
		stuck = append([]string{doing}, stuck...)
	}
	return strings.Join(stuck, "; ")
}

// heartbeat is the message of an activity that is running and reports progress by the contract.
func (n *namespace) heartbeat(activity *workflowpb.PendingActivityInfo) string {
	payloads := activity.GetHeartbeatDetails().GetPayloads()
	if activity.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED || len(payloads) == 0 {
		return ""
	}
	var beat signals.Heartbeat
	n.decode(payloads[0], &beat)
	return beat.StatusMessage
}

func unclaimed(activity *workflowpb.PendingActivityInfo) bool {
	return activity.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED &&
		activity.GetAttempt() <= 1 && older(activity.GetScheduledTime().AsTime())
}

func (n *namespace) retrying(name string, activity *workflowpb.PendingActivityInfo) string {
	message := fmt.Sprintf("%s is in attempt %d", name, activity.GetAttempt())
	if failure, _ := n.failure(activity.GetLastFailure()); failure != "" {
		message += fmt.Sprintf(" after: %s", failure)
	}
	return message
}

// stuckWorkflowTask says why the workflow itself does not go on, if it does not.
func stuckWorkflowTask(queue string, pending *workflowpb.PendingWorkflowTaskInfo) string {
	switch {
	case pending == nil:
		return ""
	case pending.GetAttempt() > 1:
		return fmt.Sprintf("workflow task is failing (attempt %d)", pending.GetAttempt())
	case pending.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED && older(pending.GetScheduledTime().AsTime()):
		return fmt.Sprintf("waiting for a worker on task queue %s", queue)
	}
	return ""
}

func older(since time.Time) bool { return time.Since(since) > unclaimedAfter }
