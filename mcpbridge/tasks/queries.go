package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
	enumspb "go.temporal.io/api/enums/v1"
	querypb "go.temporal.io/api/query/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
)

const (
	// A reader waits that long for the answer to a query, then takes the one before; the query goes on in the background.
	queryPatience = 300 * time.Millisecond
	queryTimeout  = 5 * time.Second
	// An answer is good until the workflow's history grows, and that long at most: some workflows answer by the clock.
	answerLifetime = time.Minute
	askedQueries   = 10_000
	askedLifetime  = time.Hour
	// Whether a task queue has a worker is asked that often at most. A worker polls at least once a minute.
	pollersLifetime = 5 * time.Second
	pollerSilence   = 75 * time.Second
)

// queries are the queries that the catalog has of running workflows. They are asked only while a worker is there to answer,
// and no reader waits for them for long.
type queries struct {
	asked *otter.Cache[queryKey, *asked]
}

type queryKey struct{ runID, name string }

// asked is a query of one run.
type asked struct {
	mutex  sync.Mutex
	answer answer
	at     time.Time
	flight chan struct{} // closed when the query that is under way has been answered; nil if none is
	// After a failure the next query waits for a pause, ever longer.
	pause   time.Duration
	retryAt time.Time
}

// answer is what a workflow said to a query.
type answer struct {
	value  json.RawMessage // nil if it has never answered
	length int64           // of the history that the value is about, at the time of asking
	failed string          // why there was no answer when it was last asked, "" if there was
}

// ask gets the answers of a running workflow to queries, as fresh as they can be had at once.
func (s *Service) ask(ctx context.Context, task *Task, queue string, names []string) map[string]answer {
	answers := make(map[string]answer, len(names))
	var flights []<-chan struct{}
	entries := make(map[string]*asked, len(names))
	for _, name := range names {
		entry, _ := s.queries.asked.ComputeIfAbsent(queryKey{task.runID, name}, func() (*asked, bool) { return new(asked), false })
		entries[name] = entry
		if flight := s.refresh(entry, task, queue, name); flight != nil {
			flights = append(flights, flight)
		}
	}
	waiting, cancel := context.WithTimeout(ctx, queryPatience)
	defer cancel()
	for _, flight := range flights {
		select {
		case <-flight:
		case <-waiting.Done():
		}
	}
	for name, entry := range entries {
		answers[name] = entry.get()
	}
	return answers
}

func (a *asked) get() answer {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.answer
}

// refresh asks a query unless its answer is fresh or it is being asked; it returns what tells the end of that.
func (s *Service) refresh(entry *asked, task *Task, queue, name string) <-chan struct{} {
	entry.mutex.Lock()
	defer entry.mutex.Unlock()
	now := time.Now()
	switch {
	case entry.answer.length == task.lastEvent && now.Sub(entry.at) < answerLifetime:
		return nil
	case entry.flight != nil:
		return entry.flight
	case now.Before(entry.retryAt):
		return nil
	}
	flight := make(chan struct{})
	entry.flight = flight
	go func() {
		found := task.in.askWorker(task, queue, name)
		differs, retry := entry.land(found, task.lastEvent)
		close(flight)
		if differs {
			s.changed(task.at.workflow)
		}
		if retry > 0 { // nothing else tells followers when the worker is back
			time.AfterFunc(retry, func() { s.changed(task.at.workflow) })
		}
	}()
	return flight
}

// land takes the answer to a query about a history of some length. It reports whether that differs from the one before, or is
// about more, and after a failure when to try again.
func (a *asked) land(found answer, length int64) (differs bool, retry time.Duration) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.flight = nil
	before := a.answer
	if found.failed != "" {
		a.pause = longer(max(a.pause, firstPause))
		a.retryAt = time.Now().Add(a.pause)
		a.answer.failed = found.failed
	} else {
		found.length = length
		a.pause, a.at, a.answer = 0, time.Now(), found
	}
	return before.failed != a.answer.failed || before.length != a.answer.length || string(before.value) != string(a.answer.value), a.pause
}

// askWorker asks a query of a workflow, if there is a worker. A panic is an answer too; see watch.fly.
func (n *namespace) askWorker(task *Task, queue, name string) (found answer) {
	defer func() {
		if cause := recover(); cause != nil {
			logPanic(cause, task.at)
			found = answer{failed: fmt.Sprintf("query %s: the answer cannot be read", name)}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
	defer cancel()
	if !n.pollers.any(ctx, n, queue) {
		return answer{failed: noWorker}
	}
	response, err := n.service().QueryWorkflow(ctx, &workflowservice.QueryWorkflowRequest{
		Namespace:            n.name,
		Execution:            execution(task.at.workflow, task.runID),
		Query:                &querypb.WorkflowQuery{QueryType: name},
		QueryRejectCondition: enumspb.QUERY_REJECT_CONDITION_NOT_OPEN,
	})
	switch {
	case ctx.Err() != nil:
		return answer{failed: fmt.Sprintf("query %s is not answered", name)}
	case err != nil:
		return answer{failed: fmt.Sprintf("query %s: %v", name, err)}
	case response.GetQueryRejected() != nil:
		return answer{failed: noWorker} // it has ended
	}
	value := json.RawMessage("null")
	if payloads := response.GetQueryResult().GetPayloads(); len(payloads) > 0 {
		if value, err = n.value(payloads[0]); err != nil {
			return answer{failed: fmt.Sprintf("query %s: %v", name, err)}
		}
	}
	return answer{value: value}
}

// noWorker is why nothing is asked. The status message tells it in its own words.
const noWorker = "no worker"

// pollers knows which task queues have workers.
type pollers struct {
	mutex sync.Mutex
	seen  map[string]pollersSeen
}

type pollersSeen struct {
	any bool
	at  time.Time
}

// any reports whether a worker polls a task queue for workflow tasks. If Temporal does not tell, there may be one.
func (p *pollers) any(ctx context.Context, n *namespace, queue string) bool {
	p.mutex.Lock()
	seen, known := p.seen[queue]
	p.mutex.Unlock()
	if known && time.Since(seen.at) < pollersLifetime {
		return seen.any
	}
	response, err := n.service().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
		Namespace:     n.name,
		TaskQueue:     &taskqueuepb.TaskQueue{Name: queue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		TaskQueueType: enumspb.TASK_QUEUE_TYPE_WORKFLOW,
	})
	seen = pollersSeen{any: err != nil, at: time.Now()}
	for _, poller := range response.GetPollers() {
		if time.Since(poller.GetLastAccessTime().AsTime()) < pollerSilence {
			seen.any = true
		}
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.seen == nil || len(p.seen) > 1000 { // of many catalogs
		p.seen = map[string]pollersSeen{}
	}
	p.seen[queue] = seen
	return seen.any
}
