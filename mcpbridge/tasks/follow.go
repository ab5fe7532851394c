package tasks

import (
	"context"
	"errors"
	"iter"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"

	"taskbridge/signals"
)

const (
	defaultPatience = time.Minute
	// Between two attempts to reach Temporal.
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
	// readTime is how long the reads at the begin of a long-poll take at most, in which it is not broken off; see unbroken.
	readTime = 500 * time.Millisecond
	// pollTimeout is longer than the server lets a history long-poll wait.
	pollTimeout = 65 * time.Second
)

// Follow yields a task's state now and then whenever a client sees it differ: in status, status message, progress, open
// input requests or in that cancellation was requested. States that follow each other faster than they can be read are
// skipped, but never the last. The terminal state is yielded even if the task is kept for no time after its end, and ends
// the sequence; so does an error. An error of ctx is yielded as it is.
//
// What leaves no trace in the workflow's history, such as a heartbeat or that no worker comes, is noticed when the task is
// read at the latest every so often; an every of 0 is never. Temporal may be away for a minute.
func (s *Service) Follow(ctx context.Context, owner, id string, every time.Duration) iter.Seq2[*Task, error] {
	return func(yield func(*Task, error) bool) {
		f := follower{service: s, owner: owner, id: id, every: every}
		nudged, leave := s.nudges.join(workflowID(owner, id))
		defer leave()
		defer f.unwatch()
		task, err := f.readPatiently(ctx)
		for shown := (*Task)(nil); ; task, err = f.next(ctx, task, nudged) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !task.looksLike(shown) {
				if !yield(task, nil) {
					return
				}
				shown = task
			}
			if task.Status.Terminal() {
				return
			}
		}
	}
}

// Await follows a task until it is terminal or input_required, or ctx ends.
func (s *Service) Await(ctx context.Context, owner, id string) (task *Task, err error) {
	for task, err = range s.Follow(ctx, owner, id, 0) {
		if err != nil || task.Status != Working {
			break
		}
	}
	return task, err
}

// looksLike reports whether a client sees no difference between two states of a task.
func (t *Task) looksLike(other *Task) bool {
	sameKey := func(_, _ signals.InputRequest) bool { return true } // keys are never used twice
	return other != nil && t.Status == other.Status && t.StatusMessage == other.StatusMessage &&
		t.CancelRequested == other.CancelRequested && sameProgress(t.Progress, other.Progress) &&
		maps.EqualFunc(t.InputRequests, other.InputRequests, sameKey)
}

func sameProgress(a, b *signals.Progress) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// follower is one call of Follow.
type follower struct {
	service   *Service
	owner, id string
	every     time.Duration
	// The watch is on one run; news holds the ID of the newest event worth a look.
	runID string
	news  chan int64
	stop  context.CancelFunc
}

// next waits until there may be something new about a task and reads it.
func (f *follower) next(ctx context.Context, known *Task, nudged <-chan struct{}) (*Task, error) {
	if f.runID != known.runID {
		f.unwatch()
		f.watch(ctx, known.runID)
	}
	var due <-chan time.Time
	if f.every > 0 {
		due = time.After(f.every)
	}
	for event := int64(0); event <= known.lastEvent; {
		select {
		case event = <-f.news:
		case <-nudged:
			event = anyEvent
		case <-due:
			event = anyEvent
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return f.readPatiently(ctx)
}

// readPatiently reads a task, and tries for a while as long as Temporal is away. The pause after the last attempt lets ctx
// end whose deadline Temporal saw first.
func (f *follower) readPatiently(ctx context.Context) (*Task, error) {
	begin := time.Now()
	for pause := firstPause; ; pause = longer(pause) {
		task, err := f.read(ctx)
		if !errors.Is(err, ErrUnavailable) {
			return task, err
		}
		if !sleep(ctx, pause) {
			return nil, ctx.Err()
		}
		if time.Since(begin) > f.service.patience {
			return nil, err
		}
	}
}

// read reads a task. One that is over for less than a grace is not: it may be kept for no time at all.
func (f *follower) read(ctx context.Context) (*Task, error) {
	task, err := f.service.load(ctx, f.owner, f.id)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case task.expired(time.Now().Add(-graceAfterEnd)):
		return nil, ErrNotFound
	}
	return task, nil
}

func (f *follower) watch(ctx context.Context, runID string) {
	ctx, f.stop = context.WithCancel(ctx)
	f.runID, f.news = runID, make(chan int64, 1)
	go f.service.watch(ctx, workflowID(f.owner, f.id), runID, f.news)
}

func (f *follower) unwatch() {
	if f.stop != nil {
		f.stop()
	}
}

// anyEvent is newer than any event.
const anyEvent = math.MaxInt64

// watch follows the history of a run until ctx ends, and keeps in news, whose only sender it is, the ID of the newest event
// that may change what a client sees; [anyEvent] when it cannot tell. That is so when the history has ended or cannot be
// read, and then said again, less and less often.
func (s *Service) watch(ctx context.Context, workflow, runID string, news chan int64) {
	request := &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace:    s.namespace,
		Execution:    &commonpb.WorkflowExecution{WorkflowId: workflow, RunId: runID},
		WaitNewEvent: true,
		SkipArchival: true,
	}
	for pause := firstPause; ctx.Err() == nil; {
		page, err := s.history(ctx, request)
		if err == nil && len(page.GetNextPageToken()) > 0 {
			request.NextPageToken, pause = page.GetNextPageToken(), firstPause
			if event := newest(page); event > 0 {
				replace(news, event)
			}
			continue
		}
		replace(news, anyEvent)
		if err != nil && !errors.Is(err, ErrUnavailable) {
			request.NextPageToken = nil // perhaps it is the token
		}
		if !sleep(ctx, pause) {
			return
		}
		pause = longer(pause)
	}
}

func (s *Service) history(ctx context.Context, request *workflowservice.GetWorkflowExecutionHistoryRequest) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	begin := time.Now()
	polling, cancel := context.WithTimeout(context.WithoutCancel(ctx), pollTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		time.Sleep(readTime - time.Since(begin))
		cancel()
	})()
	page, err := s.temporal.WorkflowService().GetWorkflowExecutionHistory(polling, request)
	return page, unavailable(err)
}

// newest is the ID of the last event of a page that may change what a client sees, 0 if there is none.
func newest(page *workflowservice.GetWorkflowExecutionHistoryResponse) int64 {
	if len(page.GetRawHistory()) > 0 { // an encoding that servers can be set to
		return anyEvent
	}
	for _, event := range slices.Backward(page.GetHistory().GetEvents()) {
		if visible(event) {
			return event.GetEventId()
		}
	}
	return 0
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

// replace puts a value into a channel of one, in place of the one that nobody has taken.
func replace(news chan int64, event int64) {
	select {
	case <-news:
	default:
	}
	news <- event
}

func longer(pause time.Duration) time.Duration { return min(2*pause, longestPause) }

// sleep reports whether a pause went by before ctx ended.
func sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

// nudges tell the followers of a task what this process itself has done to it, which history shows later or not at all.
type nudges struct {
	mutex     sync.Mutex
	followers map[string][]chan struct{} // by workflow ID
}

func (n *nudges) join(workflow string) (nudged <-chan struct{}, leave func()) {
	joined := make(chan struct{}, 1)
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.followers[workflow] = append(n.followers[workflow], joined)
	return joined, func() { n.leave(workflow, joined) }
}

func (n *nudges) leave(workflow string, joined chan struct{}) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	others := slices.DeleteFunc(n.followers[workflow], func(other chan struct{}) bool { return other == joined })
	if n.followers[workflow] = others; len(others) == 0 {
		delete(n.followers, workflow)
	}
}

func (n *nudges) send(workflow string) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, follower := range n.followers[workflow] {
		select {
		case follower <- struct{}{}:
		default: // it has not even looked after the last one
		}
	}
}
