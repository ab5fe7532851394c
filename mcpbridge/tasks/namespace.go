package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"
	"unicode/utf8"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
)

// callTimeout bounds a call to Temporal that is not a long-poll.
const callTimeout = 10 * time.Second

// unbroken is a context for such a call, which is not broken off when its caller goes away: it is short, and a Temporal on
// SQLite, such as the dev server, may not recover from a query that is interrupted.
func unbroken(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
}

// namespace is a Temporal namespace that tasks live in.
type namespace struct {
	name     string
	temporal client.Client
	data     converter.DataConverter
	failures converter.FailureConverter
	// keeps is the namespace's retention as last seen, in nanoseconds; 0 while unknown.
	keeps   atomic.Int64
	pollers pollers
}

func newNamespace(o Namespace) *namespace {
	if o.DataConverter == nil {
		o.DataConverter = converter.GetDefaultDataConverter()
	}
	failures := temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: o.DataConverter})
	return &namespace{name: o.Name, temporal: o.Temporal, data: o.DataConverter, failures: failures}
}

// service is for the calls that the client does not have, or not with all their fields.
func (n *namespace) service() workflowservice.WorkflowServiceClient {
	return n.temporal.WorkflowService()
}

// check asks Temporal for the namespace. The error says whether it is Temporal or the namespace that is not there.
func (n *namespace) check(ctx context.Context) error {
	response, err := n.service().DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: n.name})
	var missing *serviceerror.NamespaceNotFound
	if errors.As(err, &missing) {
		return fmt.Errorf("temporal has no namespace %q: create it with `temporal operator namespace create -n %s`", n.name, n.name)
	}
	if err != nil {
		return unavailable(err)
	}
	if keeps := response.GetConfig().GetWorkflowExecutionRetentionTtl(); keeps != nil {
		n.keeps.Store(int64(keeps.AsDuration()))
	}
	return nil
}

// retention is how long the namespace keeps what has ended; 0 while unknown.
func (n *namespace) retention() time.Duration { return time.Duration(n.keeps.Load()) }

// describe asks for a run of a workflow, the newest if runID is empty; the error is [ErrNotFound] if there is none. It is
// the call behind every read of a live task, so it goes without the compression that the SDK asks for by default: that
// costs both ends more than it saves on messages this small.
func (n *namespace) describe(ctx context.Context, workflow, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	ctx, cancel := unbroken(ctx)
	defer cancel()
	description, err := n.service().DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: n.name,
		Execution: execution(workflow, runID),
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

// describeChain asks for the newest of the runs that follow each other from firstRun on, as continue-as-new and retries
// make them: the workflow ID may be in use again since. An empty firstRun is the newest run of all.
func (n *namespace) describeChain(ctx context.Context, workflow, firstRun string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	description, err := n.describe(ctx, workflow, "")
	if err != nil || firstRun == "" || description.GetWorkflowExecutionInfo().GetFirstRunId() == firstRun {
		return description, err
	}
	for run, err := range n.chain(ctx, workflow, firstRun) {
		if err != nil {
			return nil, err
		}
		description = run
	}
	return description, nil
}

// chain are the runs that follow each other from one on.
func (n *namespace) chain(ctx context.Context, workflow, runID string) iter.Seq2[*workflowservice.DescribeWorkflowExecutionResponse, error] {
	return func(yield func(*workflowservice.DescribeWorkflowExecutionResponse, error) bool) {
		for runID != "" {
			description, err := n.describe(ctx, workflow, runID)
			if !yield(description, err) || err != nil || isRunning(description) {
				return
			}
			event, err := n.closeEvent(ctx, workflow, runID)
			if err != nil {
				yield(nil, err)
				return
			}
			runID = nextRun(event)
		}
	}
}

func isRunning(d *workflowservice.DescribeWorkflowExecutionResponse) bool {
	return d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// nextRun is the run that goes on after one that ended with event, "" if there is none.
func nextRun(event *historypb.HistoryEvent) string {
	if next := event.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(); next != "" {
		return next
	}
	if next := event.GetWorkflowExecutionFailedEventAttributes().GetNewExecutionRunId(); next != "" {
		return next
	}
	if next := event.GetWorkflowExecutionCompletedEventAttributes().GetNewExecutionRunId(); next != "" { // of a cron job
		return next
	}
	return event.GetWorkflowExecutionTimedOutEventAttributes().GetNewExecutionRunId()
}

// closeEvent is the event that closed a run, nil if Temporal has lost it.
func (n *namespace) closeEvent(ctx context.Context, workflow, runID string) (*historypb.HistoryEvent, error) {
	ctx, cancel := unbroken(ctx)
	defer cancel()
	events := n.temporal.GetWorkflowHistory(ctx, workflow, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	if !events.HasNext() {
		return nil, nil
	}
	event, err := events.Next()
	var (
		gone *serviceerror.NotFound
		lost *serviceerror.DataLoss
	)
	switch {
	case errors.As(err, &gone):
		// Deleted a moment ago, if the run itself is gone too.
		_, err = n.describe(ctx, workflow, runID)
		return nil, err
	case errors.As(err, &lost):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read close event: %w", unavailable(err))
	}
	return event, nil
}

// visibility lists workflows. A page that Temporal cannot use is an [InvalidInputError].
func (n *namespace) visibility(ctx context.Context, query string, page []byte, size int) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	ctx, cancel := unbroken(ctx)
	defer cancel()
	answer, err := n.service().ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace:     n.name,
		Query:         query,
		PageSize:      int32(size),
		NextPageToken: page,
	})
	if err == nil {
		return answer, nil
	}
	// A token that cannot be decoded is an internal error to some visibility stores.
	code := serviceerror.ToStatus(err).Code()
	if len(page) > 0 && (code == codes.InvalidArgument || code == codes.Unknown) {
		return nil, errNoSuchPage
	}
	return nil, fmt.Errorf("list workflows: %w", unavailable(err))
}

var errNoSuchPage = &InvalidInputError{"the list cannot be continued here: begin again with its first page"}

func execution(workflow, runID string) *commonpb.WorkflowExecution {
	return &commonpb.WorkflowExecution{WorkflowId: workflow, RunId: runID}
}

// payloads encodes a JSON value; nil is none.
func (n *namespace) payloads(value json.RawMessage) (*commonpb.Payloads, error) {
	if value == nil {
		return nil, nil
	}
	return n.data.ToPayloads(value)
}

func (n *namespace) decode(payload *commonpb.Payload, into any) bool {
	return payload != nil && n.data.FromPayload(payload, into) == nil
}

// value is the JSON of a payload. Bytes that are not JSON become a JSON string.
func (n *namespace) value(payload *commonpb.Payload) (json.RawMessage, error) {
	var inner converter.RawValue // without what a codec does
	if err := n.data.FromPayload(payload, &inner); err == nil {
		switch encoding := string(inner.Payload().GetMetadata()[converter.MetadataEncoding]); encoding {
		case converter.MetadataEncodingNil:
			return json.RawMessage("null"), nil
		case converter.MetadataEncodingJSON, converter.MetadataEncodingProtoJSON:
			if value := bytes.TrimSpace(inner.Payload().GetData()); json.Valid(value) {
				return value, nil
			}
		case converter.MetadataEncodingProto:
			return nil, fmt.Errorf("it is a protobuf message in binary (%s); have the workflow's data converter write it as JSON (%s)",
				encoding, converter.MetadataEncodingProtoJSON)
		}
	}
	var value json.RawMessage
	if err := n.data.FromPayload(payload, &value); err == nil && json.Valid(value) {
		return bytes.TrimSpace(value), nil
	}
	var raw []byte
	if err := n.data.FromPayload(payload, &raw); err != nil {
		return nil, err
	}
	if utf8.Valid(raw) {
		return json.Marshal(string(raw))
	}
	return json.Marshal(raw)
}

// failure decodes a failure, whose message may be encoded until then.
func (n *namespace) failure(failure *failurepb.Failure) (message string, err error) {
	if failure == nil {
		return "", nil
	}
	err = n.failures.FailureToError(failure)
	return failure.GetMessage(), err
}
