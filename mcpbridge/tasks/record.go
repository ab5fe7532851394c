package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"taskbridge/mcpbridge/catalog"
)

const (
	recordedRuns   = 10_000
	recordLifetime = time.Hour
)

// records are what the histories of runs tell about answers. A history is read when a question is open, and then only
// what has been added to it.
type records struct {
	byRun *otter.Cache[recordKey, *record]
}

// recordKey tells apart what several tools that attach to one workflow ask.
type recordKey struct{ tool, runID string }

// record is what the history of one run tells.
type record struct {
	mutex sync.Mutex
	token []byte // where to read on
	read  int64  // ID of the last event that has been read
	// answers are the events that may have answered a question, by what they were.
	answers map[event]answerEvents
	// takings are the newest events by which the workflow's code has taken notice of others.
	takings []taking
	// scheduled counts how often activities were scheduled that answers complete, by activity ID; completes are their types.
	scheduled map[string]int
	completes []string
}

func newRecord(tool *catalog.Tool) *record {
	r := &record{}
	r.forget()
	for _, input := range tool.Inputs {
		r.completes = append(r.completes, input.Accept.Activity)
	}
	return r
}

// forget has the history read from its beginning.
func (r *record) forget() {
	r.token, r.read, r.takings = nil, 0, nil
	r.answers, r.scheduled = map[event]answerEvents{}, map[string]int{}
}

// event is a signal or an update.
type event struct {
	signal, update string
	by             string // name of the question that it answers; "" if somebody else has sent it
}

// answerEvents are events that may have answered a question.
type answerEvents struct {
	count int
	last  int64 // event ID
}

// taking is an event that shows that the workflow's code has taken notice of all events up to another.
type taking struct{ event, upTo int64 }

// keptTakings are more than what is known of a run can be behind its history.
const keptTakings = 256

// answered tells how many events of a run may have answered a question, and whether the workflow's code has yet to see the
// last of them as far as a part of its history tells, which ends with an event.
func (r *record) answered(input *catalog.Input, end int64) (count int, pending bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	events := map[event]bool{}
	for _, by := range []string{input.Name, ""} {
		events[event{input.Accept.Signal, input.Accept.Update, by}] = true
		events[event{input.Decline.Signal, input.Decline.Update, by}] = true
	}
	last := int64(0)
	for e := range events {
		count += r.answers[e].count
		last = max(last, r.answers[e].last)
	}
	return count, last > r.taken(end)
}

// execution tells apart activities that had the same ID one after the other: it counts them.
func (r *record) execution(activityID string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.scheduled[activityID]
}

// taken is the last event that the workflow's code has taken notice of in a part of its history.
func (r *record) taken(end int64) int64 {
	for _, t := range slices.Backward(r.takings) {
		if t.event <= end {
			return t.upTo
		}
	}
	return 0
}

// record is what the history of a task's run tells, as far as the task shows it at least.
func (s *Service) record(ctx context.Context, task *Task, tool *catalog.Tool) (*record, error) {
	r, _ := s.records.byRun.ComputeIfAbsent(recordKey{tool.Name, task.runID}, func() (*record, bool) { return newRecord(tool), false })
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r, r.readUntil(ctx, task)
}

// readUntil reads a run's history as far as the task shows it.
func (r *record) readUntil(ctx context.Context, task *Task) error {
	for r.read < task.lastEvent {
		page, err := r.page(ctx, task)
		if err != nil {
			return err
		}
		events, err := eventsOf(page)
		if err != nil {
			return err
		}
		for _, e := range events {
			r.note(e)
		}
		if r.token = page.GetNextPageToken(); len(r.token) == 0 { // the run has ended meanwhile
			return nil
		}
	}
	return nil
}

// page is the next page of a history. With WaitNewEvent there is always a token to read on with; it need not wait, since
// there are events that have not been read.
func (r *record) page(ctx context.Context, task *Task) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	ctx, cancel := unbroken(ctx)
	defer cancel()
	page, err := task.in.service().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace:     task.in.name,
		Execution:     execution(task.at.workflow, task.runID),
		NextPageToken: r.token,
		WaitNewEvent:  true,
		SkipArchival:  true,
	})
	if err != nil {
		r.forget() // perhaps it is the token
		return nil, fmt.Errorf("read history: %w", unavailable(err))
	}
	return page, nil
}

// eventsOf are the events of a page, in whichever of two encodings a server is set to.
func eventsOf(page *workflowservice.GetWorkflowExecutionHistoryResponse) ([]*historypb.HistoryEvent, error) {
	events := page.GetHistory().GetEvents()
	for _, blob := range page.GetRawHistory() {
		var history historypb.History
		if blob.GetEncodingType() != enumspb.ENCODING_TYPE_PROTO3 {
			return nil, errors.New("read history: unknown encoding " + blob.GetEncodingType().String())
		}
		if err := proto.Unmarshal(blob.GetData(), &history); err != nil {
			return nil, fmt.Errorf("read history: %w", err)
		}
		events = append(events, history.GetEvents()...)
	}
	return events, nil
}

// note takes an event into account.
func (r *record) note(e *historypb.HistoryEvent) {
	if e.GetEventId() <= r.read {
		return
	}
	r.read = e.GetEventId()
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		signal := e.GetWorkflowExecutionSignaledEventAttributes()
		r.answeredBy(event{signal: signal.GetSignalName(), by: questionOf(signal.GetIdentity())})
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
		request := e.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest()
		r.answeredBy(event{update: request.GetInput().GetName(), by: questionOf(request.GetMeta().GetIdentity())})
		r.take(r.read) // its handler has run
	case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
		r.take(e.GetWorkflowTaskCompletedEventAttributes().GetStartedEventId())
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		activity := e.GetActivityTaskScheduledEventAttributes()
		if slices.Contains(r.completes, activity.GetActivityType().GetName()) {
			r.scheduled[activity.GetActivityId()]++
		}
	}
}

func (r *record) answeredBy(e event) {
	r.answers[e] = answerEvents{r.answers[e].count + 1, r.read}
}

func (r *record) take(upTo int64) {
	if n := len(r.takings); n > 0 {
		upTo = max(upTo, r.takings[n-1].upTo)
	}
	r.takings = append(r.takings, taking{r.read, upTo})
	if len(r.takings) > keptTakings {
		r.takings = slices.Delete(r.takings, 0, len(r.takings)-keptTakings/2)
	}
}

// identityOf names this program in histories, and the question that it answers.
func identityOf(question string) string { return identity + "/" + question }

// questionOf is the question that somebody answers with an identity; "" if it is not this program.
func questionOf(of string) string {
	question, ours := strings.CutPrefix(of, identity+"/")
	if !ours {
		return ""
	}
	return question
}
