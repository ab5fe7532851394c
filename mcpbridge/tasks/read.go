package tasks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"

	"taskbridge/signals"
)

// callTimeout bounds a call to Temporal that is not a long-poll.
const callTimeout = 10 * time.Second

// unbroken is a context for such a call, which is not broken off when its caller goes away: it is short, and a Temporal on
// SQLite, such as the dev server, may not recover from a query that is interrupted.
func unbroken(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
}

// read builds a task from one describe call and, if its workflow has closed, from the event that closed it.
func (s *Service) read(ctx context.Context, workflow, id string) (*Task, error) {
	description, err := s.describe(ctx, workflow)
	if err != nil {
		return nil, err
	}
	info := description.GetWorkflowExecutionInfo()
	memo := info.GetMemo().GetFields()
	meta, state := s.meta(memo, info), s.state(memo)

	task := &Task{
		ID:              id,
		UpdatedAt:       meta.CreatedAt,
		Progress:        state.Progress,
		CancelRequested: description.GetWorkflowExtendedInfo().GetCancelRequested(),
		runID:           info.GetExecution().GetRunId(),
		lastEvent:       info.GetHistoryLength(),
	}
	task.record(meta)
	if state.UpdatedAt.After(task.UpdatedAt) {
		task.UpdatedAt = state.UpdatedAt
	}
	if info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		s.live(task, state, description)
		task.TTL = liveTTL(description.GetExecutionConfig().GetWorkflowExecutionTimeout().AsDuration(), meta)
		return task, nil
	}
	closed := info.GetCloseTime().AsTime()
	task.UpdatedAt, task.TTL = closed, s.closedTTL(closed, meta)
	return task, s.outcome(ctx, task, workflow, meta)
}

// describe asks for a workflow's newest run; the error is [ErrNotFound] if there is none. It is the call behind every read
// of a live task, so it goes without the compression that the SDK asks for by default: that costs both ends more than it
// saves on messages this small.
func (s *Service) describe(ctx context.Context, workflow string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	ctx, cancel := unbroken(ctx)
	defer cancel()
	description, err := s.temporal.WorkflowService().DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: s.namespace,
		Execution: &commonpb.WorkflowExecution{WorkflowId: workflow},
	}, grpc.UseCompressor(encoding.Identity))
	var unknown *serviceerror.NotFound
	if errors.As(err, &unknown) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("describe workflow: %w", unavailable(err))
	}
	return description, nil
}

// record takes over what the front end recorded about the task at its start.
func (t *Task) record(meta signals.Meta) {
	t.Tool, t.Dialect, t.CreatedAt, t.cancel = meta.Tool, meta.Dialect, meta.CreatedAt, meta.Cancel
	t.KeepAlive = milliseconds(meta.RetentionMs)
	t.PollInterval = milliseconds(meta.PollIntervalMs)
}

// meta is what the front end recorded at the start. A workflow that has none was started by someone else; its start
// time and Temporal's own retention then stand in.
func (s *Service) meta(memo map[string]*commonpb.Payload, info *workflowpb.WorkflowExecutionInfo) signals.Meta {
	meta := signals.Meta{
		CreatedAt:      info.GetStartTime().AsTime(),
		RetentionMs:    time.Duration(s.keeps.Load()).Milliseconds(),
		PollIntervalMs: time.Second.Milliseconds(),
	}
	s.decode(memo[signals.MetaMemo], &meta)
	return meta
}

// state is what the workflow last said of itself; nothing, if it never did or what it said cannot be read.
func (s *Service) state(memo map[string]*commonpb.Payload) signals.TaskState {
	var state signals.TaskState
	if !s.decode(memo[signals.StateMemo], &state) {
		return signals.TaskState{}
	}
	return state
}

func (s *Service) decode(payload *commonpb.Payload, into any) bool {
	return payload != nil && s.data.FromPayload(payload, into) == nil
}

// live fills in a running task.
func (s *Service) live(task *Task, state signals.TaskState, d *workflowservice.DescribeWorkflowExecutionResponse) {
	task.Status = Working
	task.InputRequests = s.open(task.runID, state.InputRequests)
	if len(task.InputRequests) > 0 {
		task.Status = InputRequired
	}
	task.StatusMessage = s.statusMessage(state.StatusMessage, d)
	task.Queued = queued(d)
}

// queued reports whether the first workflow task of a workflow has not been taken by a worker. Reset points tell that one
// was completed, but not all workers make them; a later workflow task is scheduled later.
func queued(d *workflowservice.DescribeWorkflowExecutionResponse) bool {
	info, pending := d.GetWorkflowExecutionInfo(), d.GetPendingWorkflowTask()
	return pending.GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_SCHEDULED && pending.GetAttempt() <= 1 &&
		info.GetFirstRunId() == info.GetExecution().GetRunId() &&
		len(info.GetAutoResetPoints().GetPoints()) == 0 &&
		pending.GetScheduledTime().AsTime().Sub(info.GetExecutionTime().AsTime()) < time.Second
}

// open is requests without those that were answered through this process a moment ago.
func (s *Service) open(runID string, requests map[string]signals.InputRequest) map[string]signals.InputRequest {
	if len(requests) == 0 {
		return nil
	}
	answered, ok := s.answered.GetIfPresent(runID)
	if !ok {
		return requests
	}
	requests = maps.Clone(requests)
	maps.DeleteFunc(requests, func(key string, _ signals.InputRequest) bool { return answered[key] })
	return requests
}
