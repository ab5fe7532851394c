package draft

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

const (
	// metadataQuery is answered by workers of all current SDKs, with a sdkpb.WorkflowMetadata.
	metadataQuery = "__temporal_workflow_metadata"
	// metadataTimeout is how long a worker may take to answer; there may be none.
	metadataTimeout = 3 * time.Second
)

// execution is what Temporal tells of one.
type execution struct {
	status  enumspb.WorkflowExecutionStatus
	started *historypb.WorkflowExecutionStartedEventAttributes
	closed  *historypb.HistoryEvent // nil while it runs
	ways    []*way                  // in the order of their first use, then those that were not used
	queries []string                // that its worker answers
	defined bool                    // whether a worker told the queries, and ways that were not used
}

// kind is a way from outside into a running workflow.
type kind string

const (
	signal   kind = "signal"
	update   kind = "update"
	activity kind = "activity"
)

// way is one by which something can come in.
type way struct {
	kind     kind
	name     string               // of the signal, update, or type of the activity
	payloads []*commonpb.Payloads // what came in
}

// look reads an execution. Without a run ID it takes the last run, but starts as the first one did.
func look(ctx context.Context, temporal client.Client, workflowID, runID string) (*execution, error) {
	described, err := temporal.DescribeWorkflow(ctx, workflowID, runID)
	if missing := new(serviceerror.NotFound); errors.As(err, &missing) {
		return nil, notFound(workflowID, runID)
	}
	if err != nil {
		return nil, fmt.Errorf("describe workflow %q: %w", workflowID, err)
	}
	run := described.WorkflowExecution.RunID
	e := &execution{status: described.Status}
	if err := e.readHistory(ctx, temporal, workflowID, run); err != nil {
		return nil, err
	}
	if first := e.started.GetFirstExecutionRunId(); runID == "" && first != run {
		e.restart(ctx, temporal, workflowID, first)
	}
	e.define(ctx, temporal, workflowID, run)
	return e, nil
}

func notFound(workflowID, runID string) error {
	run := ""
	if runID != "" {
		run = fmt.Sprintf(" and run ID %q", runID)
	}
	return fmt.Errorf("no execution has workflow ID %q%s here: check the ID and the namespace; "+
		"Temporal drops executions when the namespace's retention is over", workflowID, run)
}

func (e *execution) readHistory(ctx context.Context, temporal client.Client, workflowID, runID string) error {
	activities := activityReader{types: map[int64]string{}, workers: map[int64]string{}}
	events := temporal.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return fmt.Errorf("read the history of workflow %q: %w", workflowID, err)
		}
		e.read(event, activities)
	}
	if e.status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		e.closed = nil
	}
	if e.started == nil {
		return fmt.Errorf("the history of workflow %q does not say how it started", workflowID)
	}
	return nil
}

func (e *execution) read(event *historypb.HistoryEvent, activities activityReader) {
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
		e.started = event.GetWorkflowExecutionStartedEventAttributes()
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		attributes := event.GetWorkflowExecutionSignaledEventAttributes()
		e.receive(signal, attributes.GetSignalName(), attributes.GetInput())
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:
		input := event.GetWorkflowExecutionUpdateAcceptedEventAttributes().GetAcceptedRequest().GetInput()
		e.receive(update, input.GetName(), input.GetArgs())
	default:
		if name, result, ok := activities.completedElsewhere(event); ok {
			e.receive(activity, name, result)
		}
	}
	e.closed = event
}

func (e *execution) receive(k kind, name string, payloads *commonpb.Payloads) {
	if w := e.way(k, name); w != nil {
		w.payloads = append(w.payloads, payloads)
	}
}

// way finds or adds one. It is nil for what is no business of catalogs.
func (e *execution) way(k kind, name string) *way {
	if internal(name) {
		return nil
	}
	i := slices.IndexFunc(e.ways, func(w *way) bool { return w.kind == k && w.name == name })
	if i < 0 {
		i = len(e.ways)
		e.ways = append(e.ways, &way{kind: k, name: name})
	}
	return e.ways[i]
}

// internal names belong to Temporal or to taskbridge's contract with workflows. Handlers for any name have none.
func internal(name string) bool {
	return name == "" || strings.HasPrefix(name, "__") || strings.HasPrefix(name, "mcp.")
}

// restart takes the start of the first run, if it is still there: those of later ones are what the workflow passed on.
func (e *execution) restart(ctx context.Context, temporal client.Client, workflowID, runID string) {
	events := temporal.GetWorkflowHistory(ctx, workflowID, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if !events.HasNext() {
		return
	}
	event, err := events.Next()
	if attributes := event.GetWorkflowExecutionStartedEventAttributes(); err == nil && attributes != nil {
		e.started = attributes
	}
}

// define asks a worker what the workflow type can be asked and told.
func (e *execution) define(ctx context.Context, temporal client.Client, workflowID, runID string) {
	ctx, cancel := context.WithTimeout(ctx, metadataTimeout)
	defer cancel()
	answer, err := temporal.QueryWorkflow(ctx, workflowID, runID, metadataQuery)
	if err != nil {
		return
	}
	var metadata sdkpb.WorkflowMetadata
	if answer.Get(&metadata) != nil {
		return
	}
	e.defined = true
	definition := metadata.GetDefinition()
	for _, query := range definition.GetQueryDefinitions() {
		if !internal(query.GetName()) {
			e.queries = append(e.queries, query.GetName())
		}
	}
	for _, defined := range definition.GetSignalDefinitions() {
		e.way(signal, defined.GetName())
	}
	for _, defined := range definition.GetUpdateDefinitions() {
		e.way(update, defined.GetName())
	}
}

// activityReader finds activities that somebody else completed than the worker that began them.
type activityReader struct {
	types   map[int64]string // by the event that scheduled it
	workers map[int64]string // identity, by the event that started it
}

func (r activityReader) completedElsewhere(event *historypb.HistoryEvent) (name string, result *commonpb.Payloads, ok bool) {
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		r.types[event.GetEventId()] = event.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName()
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		r.workers[event.GetEventId()] = event.GetActivityTaskStartedEventAttributes().GetIdentity()
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		completed := event.GetActivityTaskCompletedEventAttributes()
		if completed.GetIdentity() != r.workers[completed.GetStartedEventId()] {
			return r.types[completed.GetScheduledEventId()], completed.GetResult(), true
		}
	}
	return "", nil, false
}
