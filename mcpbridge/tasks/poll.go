package tasks

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"

	"taskbridge/signals"
)

const (
	// maxPolls is how many history long-polls there are at once. By default a Temporal frontend takes 1,200 for a namespace
	// (frontend.namespaceCount), which others want too: so four processes like this one fit. Each costs about 30 KiB here.
	maxPolls = 256
	// readTime is how long the reads at the begin of a long-poll take at most, in which it is not broken off; see unbroken.
	readTime = 500 * time.Millisecond
	// pollTimeout is longer than the server lets a history long-poll wait.
	pollTimeout = 65 * time.Second
	// recovery is how long no more long-polls are tried after Temporal has refused one as too many.
	recovery = 10 * time.Second
)

// polls are the long-polls of all watches. What has to wait for one is looked after by pace.
type polls struct {
	limit, most, running int // most is less than the limit for a while after Temporal has refused one
	refused              time.Time
	waiting              []*watch
	pacing               bool
}

// feed is where a watch hears from that there is something new about a run.
type feed struct {
	runID string
	// live says that a long-poll has told all that was there, and goes on.
	live bool
	stop context.CancelFunc // of the long-poll; nil while the watch waits for one
	row  uint64             // what visibility has last shown of the task; see markOf
}

// attend has the newest run of the task fed as long as somebody follows it.
func (w *watch) attend() {
	run := ""
	if len(w.followers) > 0 && !w.over && w.state != nil {
		run = w.state.runID
	}
	if run == w.feed.runID {
		return
	}
	polls := &w.service.watches.polls
	if w.feed.stop != nil {
		w.feed.stop()
	} else if w.feed.runID != "" {
		polls.waiting = slices.DeleteFunc(polls.waiting, func(other *watch) bool { return other == w })
	}
	w.feed = feed{runID: run}
	if run != "" {
		polls.waiting = append(polls.waiting, w)
		w.service.poll()
	}
}

// poll begins as many long-polls as may be, and looks after those watches in another way that have to wait for one.
func (s *Service) poll() {
	polls := &s.watches.polls
	for len(polls.waiting) > 0 && polls.running < polls.most {
		w := polls.waiting[0]
		polls.waiting = polls.waiting[1:]
		ctx, stop := context.WithCancel(context.Background())
		w.feed.stop = stop
		polls.running++
		go w.poll(ctx, w.state)
	}
	if len(polls.waiting) > 0 && !polls.pacing {
		polls.pacing = true
		go s.pace()
	}
}

// poll follows the history of a run until ctx ends.
func (w *watch) poll(ctx context.Context, known *Task) {
	defer w.endPoll()
	n, workflow := known.in, known.at.workflow
	request := &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace:    n.name,
		Execution:    execution(workflow, known.runID),
		WaitNewEvent: true,
		SkipArchival: true,
	}
	var told account
	for pause := firstPause; ctx.Err() == nil; {
		page, err := n.history(ctx, request)
		var limited *serviceerror.ResourceExhausted
		if errors.As(err, &limited) {
			w.refuse(ctx)
			return
		}
		token := page.GetNextPageToken()
		news, now := told.read(w.service, known, page)
		w.hear(ctx, len(token) > 0, news, now)
		if len(token) > 0 {
			request.NextPageToken, pause = token, firstPause
			continue
		}
		if !errors.Is(unavailable(err), ErrUnavailable) { // the history has ended, or perhaps it is the token
			request.NextPageToken, told = nil, account{}
		}
		if !sleep(ctx, pause) {
			return
		}
		pause = longer(pause)
	}
}

// hear takes note of what a page of history tells. It may be that the long-poll does not go on.
func (w *watch) hear(ctx context.Context, goesOn bool, news int64, now *Task) {
	w.lock()
	defer w.unlock()
	if ctx.Err() != nil {
		return
	}
	w.feed.live = goesOn
	isNewer := news > w.state.lastEvent
	switch {
	case now != nil && (now.Status.Terminal() || goesOn && isNewer):
		w.told = time.Now()
		w.show(now)
	case !goesOn || isNewer:
		w.refresh()
	}
}

// refuse has the watch fed in another way for a while, since Temporal has too many long-polls.
func (w *watch) refuse(ctx context.Context) {
	w.lock()
	defer w.unlock()
	polls := &w.service.watches.polls
	polls.refused = time.Now()
	polls.most = max(1, polls.running-1)
	if ctx.Err() == nil {
		w.feed = feed{runID: w.feed.runID}
		polls.waiting = append(polls.waiting, w)
	}
}

func (w *watch) endPoll() {
	w.lock()
	defer w.unlock()
	w.service.watches.polls.running--
	w.service.poll()
}

// history is a page of a run's history, with what is new since the token of the request.
func (n *namespace) history(ctx context.Context, request *workflowservice.GetWorkflowExecutionHistoryRequest) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	begin := time.Now()
	polling, cancel := context.WithTimeout(context.WithoutCancel(ctx), pollTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		time.Sleep(readTime - time.Since(begin))
		cancel()
	})()
	return n.service().GetWorkflowExecutionHistory(polling, request, grpc.UseCompressor(encoding.Identity))
}

// account is what the events of a run tell that counts for how it ends.
type account struct {
	state *commonpb.Payload // memo mcp.task
	// unsure says that the end cannot be told from events: what the front end recorded was changed, or they cannot be read.
	unsure          bool
	cancelRequested bool
	activities      int  // that are pending
	pending         bool // a workflow task is
	last            *historypb.HistoryEvent
}

// anyEvent is newer than any event.
const anyEvent = math.MaxInt64

// read takes in a page of history. It returns the ID of the last event that may change what a client sees, 0 if there is
// none, and the state in which the task is since then, if events tell it.
func (a *account) read(s *Service, known *Task, page *workflowservice.GetWorkflowExecutionHistoryResponse) (news int64, now *Task) {
	defer func() {
		if cause := recover(); cause != nil { // see watch.fly
			logPanic(cause, known.at)
			a.unsure, news, now = true, anyEvent, nil
		}
	}()
	if news = a.add(page); closes(a.last) {
		return news, a.endOf(known)
	}
	if news > known.lastEvent {
		now = a.stateOf(s, known)
	}
	return news, now
}

func (a *account) add(page *workflowservice.GetWorkflowExecutionHistoryResponse) (news int64) {
	events, err := eventsOf(page)
	if err != nil {
		a.unsure = true
		return anyEvent
	}
	for _, event := range events {
		a.note(event)
		if visible(event) {
			news = event.GetEventId()
		}
	}
	return news
}

func (a *account) note(event *historypb.HistoryEvent) {
	a.last = event
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		a.state = event.GetWorkflowExecutionStartedEventAttributes().GetMemo().GetFields()[signals.StateMemo]
	case enumspb.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED:
		memo := event.GetWorkflowPropertiesModifiedEventAttributes().GetUpsertedMemo().GetFields()
		if state, ok := memo[signals.StateMemo]; ok {
			a.state = state
		}
		if _, ok := memo[signals.MetaMemo]; ok {
			a.unsure = true
		}
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		a.cancelRequested = true
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		a.activities++
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED,
		enumspb.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT, enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCELED:
		a.activities--
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED,
		enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT:
		a.pending = true
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
		a.pending = false
	}
}

// task is one of whose run this is the account.
func (a *account) task(known *Task, state signals.TaskState) *Task {
	task := &Task{
		ID:              known.ID,
		Progress:        state.Progress,
		TTL:             known.TTL,
		CancelRequested: a.cancelRequested,
		at:              known.at,
		in:              known.in,
		runID:           known.runID,
		firstRun:        known.firstRun,
		lastEvent:       a.last.GetEventId(),
	}
	task.record(known.meta)
	return task
}

// stateOf is the state of a task whose run goes on; nil if events do not tell all of it. What a workflow says of itself is
// all that there is as long as no activity and no workflow task is pending, and the catalog has no view of the task.
func (a *account) stateOf(s *Service, known *Task) *Task {
	if a.unsure || a.activities != 0 || a.pending || s.viewer(known) != nil {
		return nil
	}
	state := known.in.state(a.state)
	task := a.task(known, state)
	task.UpdatedAt = later(task.CreatedAt, state.UpdatedAt)
	task.StatusMessage = state.StatusMessage
	task.mark = markOf(task.runID, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, a.state)
	s.run(task, state.InputRequests)
	return task
}

// endOf is the terminal state of a task whose run has ended; nil if the task may go on in another one, as it does after a
// termination if that was part of a reset.
func (a *account) endOf(known *Task) *Task {
	terminated := a.last.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED
	if a.unsure || terminated || nextRun(a.last) != "" {
		return nil
	}
	end := a.task(known, known.in.state(a.state))
	end.close(a.last.GetEventTime().AsTime(), a.last)
	return end
}

// closes reports whether a run has ended with an event.
func closes(event *historypb.HistoryEvent) bool {
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:
		return true
	}
	return false
}

// visible reports whether an event may change what a client sees. All that a workflow does comes with the completion of a
// workflow task. The close of a run is not in question, since its history ends there.
func visible(event *historypb.HistoryEvent) bool {
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
		enumspb.EVENT_TYPE_WORKFLOW_TASK_FAILED,
		enumspb.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
		enumspb.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
		return true
	}
	return false
}
