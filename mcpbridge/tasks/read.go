package tasks

import (
	"cmp"
	"context"
	"maps"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/signals"
)

// read builds a task from one describe call and, if its workflow has closed, from the event that closed it.
func (s *Service) read(ctx context.Context, at address, id string) (*Task, error) {
	n, description, err := s.find(ctx, at)
	if err != nil {
		return nil, err
	}
	info := description.GetWorkflowExecutionInfo()
	if known, ok := s.closed.GetIfPresent(at); ok && known.task.runID == info.GetExecution().GetRunId() && !isRunning(description) {
		return known.task, nil
	}
	if at.firstRun != "" { // or a later run of the task, which clients have no reason to name
		at.firstRun = info.GetFirstRunId()
	}
	memo := info.GetMemo().GetFields()
	meta, state := n.meta(memo, info, at.tool), n.state(memo[signals.StateMemo])
	if at.tool != nil {
		meta.CreatedAt = n.begin(ctx, info)
	}

	task := &Task{
		ID:              at.id(id, info.GetFirstRunId()),
		Progress:        state.Progress,
		CancelRequested: description.GetWorkflowExtendedInfo().GetCancelRequested(),
		at:              at,
		in:              n,
		runID:           info.GetExecution().GetRunId(),
		firstRun:        info.GetFirstRunId() == info.GetExecution().GetRunId(),
		lastEvent:       info.GetHistoryLength(),
		mark:            markOf(info.GetExecution().GetRunId(), info.GetStatus(), memo[signals.StateMemo]),
	}
	task.record(meta)
	task.UpdatedAt = later(meta.CreatedAt, state.UpdatedAt)
	if isRunning(description) {
		if err := s.live(ctx, task, state, description); err != nil {
			return nil, err
		}
		task.TTL = liveTTL(description.GetExecutionConfig().GetWorkflowExecutionTimeout().AsDuration(), meta)
		return task, nil
	}
	event, err := n.closeEvent(ctx, at.workflow, task.runID)
	if err != nil {
		return nil, err
	}
	task.close(info.GetCloseTime().AsTime(), event)
	return task, nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// record takes over what the front end recorded about the task at its start.
func (t *Task) record(meta signals.Meta) {
	t.meta = meta
	t.Tool, t.Dialect, t.CreatedAt = meta.Tool, meta.Dialect, meta.CreatedAt
	t.KeepAlive = milliseconds(meta.RetentionMs)
	t.PollInterval = milliseconds(meta.PollIntervalMs)
}

// meta is what the front end recorded at the start. A workflow that has none was started by someone else; its start time,
// Temporal's own retention and what the tool says by which a caller attached to it then stand in.
func (n *namespace) meta(memo map[string]*commonpb.Payload, info *workflowpb.WorkflowExecutionInfo, tool *catalog.Tool) signals.Meta {
	meta := signals.Meta{
		CreatedAt:      info.GetStartTime().AsTime(),
		RetentionMs:    cmp.Or(n.retention(), shortestRetention).Milliseconds(),
		PollIntervalMs: time.Second.Milliseconds(),
	}
	if tool != nil {
		recordTool(&meta, tool)
		return meta
	}
	n.decode(memo[signals.MetaMemo], &meta)
	return meta
}

// begin is when the first run of a workflow started, as far as that is still there.
func (n *namespace) begin(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) time.Time {
	if first := info.GetFirstRunId(); first != info.GetExecution().GetRunId() {
		if description, err := n.describe(ctx, info.GetExecution().GetWorkflowId(), first); err == nil {
			info = description.GetWorkflowExecutionInfo()
		}
	}
	return info.GetStartTime().AsTime()
}

// recordTool records what a tool says about its tasks.
func recordTool(meta *signals.Meta, tool *catalog.Tool) {
	meta.Version = signals.Version
	meta.Tool = tool.Name
	meta.PollIntervalMs = tool.PollInterval.Milliseconds()
	meta.Result = string(tool.Result)
	meta.ResultPath = tool.ResultPath
	meta.Cancel = string(tool.Cancel)
}

// state is what the workflow last said of itself; nothing, if it never did or what it said cannot be read.
func (n *namespace) state(memo *commonpb.Payload) signals.TaskState {
	var state signals.TaskState
	if !n.decode(memo, &state) {
		return signals.TaskState{}
	}
	return state
}

// live fills in a running task.
func (s *Service) live(ctx context.Context, task *Task, state signals.TaskState, d *workflowservice.DescribeWorkflowExecutionResponse) error {
	task.Queued = queued(d)
	requests, said := state.InputRequests, state.StatusMessage
	if tool := s.viewer(task); tool != nil {
		task.viewed = true
		view, err := s.view(ctx, task, tool, d)
		if err != nil {
			return err
		}
		said = cmp.Or(said, view.said)
		task.Progress = cmp.Or(task.Progress, view.progress)
		task.questions = view.questions
		requests = view.join(requests)
	}
	s.run(task, requests)
	task.StatusMessage = task.in.statusMessage(said, d)
	return nil
}

// viewer is the tool of a task, if it has a view of it; nil if not.
func (s *Service) viewer(task *Task) *catalog.Tool {
	if tool, ok := s.tool(task.Tool); ok && (tool.Status != nil || len(tool.Inputs) > 0) {
		return tool
	}
	return nil
}

// run fills in what all running tasks have: how often to ask for it, open input requests, and the status by that.
func (s *Service) run(task *Task, requests map[string]signals.InputRequest) {
	task.PollInterval = pollInterval(task.PollInterval, time.Since(task.CreatedAt), s.reading.Load())
	task.Status = Working
	if task.mayBeAnswered() {
		task.InputRequests = s.open(task.runID, requests)
	}
	if len(task.InputRequests) > 0 {
		task.Status = InputRequired
	}
}

// mayBeAnswered reports whether callers may answer the task's questions.
func (t *Task) mayBeAnswered() bool { return t.at.tool == nil || t.at.tool.Attach.Answer }

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
