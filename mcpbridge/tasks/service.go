package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/maypok86/otter/v2"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/signals"
)

const (
	// maxPayload is the size above which Temporal refuses a workflow's arguments or a signal, in bytes.
	maxPayload = 2 << 20
	// maxTaskID keeps workflow IDs well below Temporal's limit of 1000 bytes.
	maxTaskID = 256

	// Closed tasks never change; a deleted one is noticed this much later at most.
	closedTaskLifetime = 30 * time.Second
	closedTaskBytes    = 64 << 20
	// How long a stored answer hides its question from this process's readers while no worker takes it.
	answeredLifetime = 10 * time.Minute
	answeredTasks    = 10_000
)

// Anonymous owns the tasks of callers without an identity.
const Anonymous = "anonymous"

// Options of a [Service].
type Options struct {
	// Namespace is the Temporal namespace of the client, "default" if empty.
	Namespace string
	// DataConverter is the client's own, for memos, results and failures. Default converter.GetDefaultDataConverter().
	DataConverter converter.DataConverter
}

// Service is the task service on one Temporal namespace.
type Service struct {
	temporal  client.Client
	namespace string
	data      converter.DataConverter
	failures  converter.FailureConverter
	closed    *otter.Cache[string, *Task]
	answered  *otter.Cache[string, map[string]bool]
	deleted   *otter.Cache[string, struct{}] // by run ID
	created   recent
	nudges    nudges
	patience  time.Duration // how long a follower bears with a Temporal that does not answer
	// keeps is the namespace's retention as last seen, in nanoseconds; 0 while unknown.
	keeps atomic.Int64
}

// New returns a service on a connected Temporal client.
func New(temporalClient client.Client, o Options) (*Service, error) {
	if o.Namespace == "" {
		o.Namespace = client.DefaultNamespace
	}
	if o.DataConverter == nil {
		o.DataConverter = converter.GetDefaultDataConverter()
	}
	closed, err := otter.New(&otter.Options[string, *Task]{
		MaximumWeight:    closedTaskBytes,
		Weigher:          weight,
		ExpiryCalculator: otter.ExpiryWriting[string, *Task](closedTaskLifetime),
	})
	if err != nil {
		return nil, fmt.Errorf("cache of closed tasks: %w", err)
	}
	answered, err := otter.New(&otter.Options[string, map[string]bool]{
		MaximumSize:      answeredTasks,
		ExpiryCalculator: otter.ExpiryWriting[string, map[string]bool](answeredLifetime),
	})
	if err != nil {
		return nil, fmt.Errorf("cache of answered questions: %w", err)
	}
	deleted, err := otter.New(&otter.Options[string, struct{}]{
		MaximumSize:      deletedTasks,
		ExpiryCalculator: otter.ExpiryWriting[string, struct{}](deletedLifetime),
	})
	if err != nil {
		return nil, fmt.Errorf("cache of deleted tasks: %w", err)
	}
	return &Service{
		temporal:  temporalClient,
		namespace: o.Namespace,
		data:      o.DataConverter,
		failures:  temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: o.DataConverter}),
		closed:    closed,
		answered:  answered,
		deleted:   deleted,
		patience:  defaultPatience,
		nudges:    nudges{followers: map[string][]chan struct{}{}},
	}, nil
}

// weight is about what a closed task costs in memory, its encoded form included, in bytes.
func weight(workflowID string, t *Task) uint32 {
	content := len(t.Tool) + len(t.Dialect) + len(t.StatusMessage)
	if t.Error != nil {
		content += len(t.Error.Message) + len(t.Error.Data)
	}
	if t.Result != nil {
		content += len(t.Result.StructuredContent)
		for _, block := range t.Result.Content {
			content += len(block)
		}
		for name, value := range t.Result.Meta {
			content += len(name) + len(value)
		}
	}
	return uint32(min(1024+len(workflowID)+2*content, closedTaskBytes))
}

// Check asks Temporal for the namespace. It returns nil when Temporal is there and the namespace exists, else an error
// that says which of them is not.
func (s *Service) Check(ctx context.Context) error {
	response, err := s.temporal.WorkflowService().DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: s.namespace})
	var missing *serviceerror.NamespaceNotFound
	if errors.As(err, &missing) {
		return fmt.Errorf("temporal has no namespace %q: create it with `temporal operator namespace create -n %s`", s.namespace, s.namespace)
	}
	if err != nil {
		return unavailable(err)
	}
	if keeps := response.GetConfig().GetWorkflowExecutionRetentionTtl(); keeps != nil {
		s.keeps.Store(int64(keeps.AsDuration()))
	}
	return nil
}

// Start is the start of a task.
type Start struct {
	// ID is the task's; empty for a new random one. A start with the ID of an existing task of the same owner returns
	// that task and starts nothing, so a start can be repeated safely.
	ID string
	// New makes a start with the ID of an existing task [ErrExists] instead. The ID must not be empty then.
	New       bool
	Tool      *catalog.Tool
	Arguments []json.RawMessage
	// Dialect is the name of the protocol era, recorded with the task.
	Dialect string
	// TTL is for how long after its creation the client wants to read the task, KeepAlive for how long after its end. Both
	// are bounded by what the namespace keeps. If there is a TTL, it counts; if there is neither, the tool's retention.
	TTL, KeepAlive *time.Duration
}

// Create starts a task's workflow and returns once Temporal has it, so that a Get by anyone finds it.
func (s *Service) Create(ctx context.Context, owner string, start Start) (*Task, error) {
	if err := CheckSize("arguments", start.Arguments...); err != nil {
		return nil, err
	}
	if start.ID == "" && !start.New {
		start.ID = uuid.NewString()
	}
	if !validID(start.ID) {
		return nil, invalidInput("the task ID has to be 1 to %d printable ASCII characters", maxTaskID)
	}
	meta, err := s.newMeta(start)
	if err != nil {
		return nil, err
	}
	tool, workflow := start.Tool, workflowID(owner, start.ID)
	arguments := make([]any, len(start.Arguments))
	for i, argument := range start.Arguments {
		arguments[i] = argument
	}
	run, err := s.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                                       workflow,
		TaskQueue:                                tool.TaskQueue,
		WorkflowExecutionTimeout:                 tool.ExecutionTimeout,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		Memo:                                     map[string]any{signals.MetaMemo: meta},
		StaticSummary:                            tool.Name,
	}, tool.Workflow, arguments...)
	var exists *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case errors.As(err, &exists) && start.New:
		return nil, ErrExists
	case errors.As(err, &exists):
		return s.Get(ctx, owner, start.ID)
	case err != nil:
		return nil, fmt.Errorf("start workflow %s: %w", tool.Workflow, unavailable(err))
	}
	s.closed.Invalidate(workflow) // an earlier task of that ID may have been deleted elsewhere
	s.created.add(owner, start.ID, run.GetRunID())
	task := &Task{ID: start.ID, Status: Working, Queued: true, UpdatedAt: meta.CreatedAt, runID: run.GetRunID()}
	task.record(meta)
	task.TTL = liveTTL(tool.ExecutionTimeout, meta)
	return task, nil
}

// newMeta is what is recorded about a task that starts now.
func (s *Service) newMeta(start Start) (signals.Meta, error) {
	tool := start.Tool
	meta := signals.Meta{
		Version:        signals.Version,
		Tool:           tool.Name,
		CreatedAt:      time.Now().UTC().Truncate(time.Millisecond),
		PollIntervalMs: tool.PollInterval.Milliseconds(),
		Result:         string(tool.Result),
		Cancel:         string(tool.Cancel),
		Dialect:        start.Dialect,
	}
	return meta, s.bound(start, &meta)
}

// CheckSize is an [InvalidInputError] if values are together larger than Temporal takes; what names them in it.
func CheckSize(what string, values ...json.RawMessage) error {
	size := 0
	for _, value := range values {
		size += len(value)
	}
	if size > maxPayload {
		return invalidInput("the %s have %d bytes and Temporal takes at most %d: pass a reference to the data, such as a URL or a path, instead of the data", what, size, maxPayload)
	}
	return nil
}

// Get returns a task's state now: from one describe call for a live task, from memory for one known to be closed.
func (s *Service) Get(ctx context.Context, owner, id string) (*Task, error) {
	task, err := s.load(ctx, owner, id)
	if err == nil && task.expired(time.Now()) {
		return nil, ErrNotFound
	}
	return task, err
}

// load is Get for tasks that have expired too.
func (s *Service) load(ctx context.Context, owner, id string) (*Task, error) {
	workflow, err := address(owner, id)
	if err != nil {
		return nil, err
	}
	if task, ok := s.closed.GetIfPresent(workflow); ok && !s.isDeleted(task) {
		return task, nil
	}
	task, err := s.read(ctx, workflow, id)
	if err != nil {
		return nil, err
	}
	if s.isDeleted(task) {
		return nil, ErrNotFound
	}
	if task.Status.Terminal() {
		s.closed.Set(workflow, task)
	}
	return task, nil
}

// Answer sends responses to a task's open input requests. Keys that are not open are ignored. It returns once Temporal
// has stored them; a response that does not fit its request is an [InvalidInputError] and then none is sent.
func (s *Service) Answer(ctx context.Context, owner, id string, responses map[string]json.RawMessage) error {
	task, err := s.Get(ctx, owner, id)
	if err != nil {
		return err
	}
	answers := map[string]json.RawMessage{}
	for key, response := range responses {
		request, open := task.InputRequests[key]
		if !open {
			continue
		}
		if err := checkResponse(request, response); err != nil {
			return invalidInput("inputResponses[%q]: %v", key, err)
		}
		answers[key] = response
	}
	if len(answers) == 0 {
		return nil
	}
	if err := CheckSize("responses", slices.Collect(maps.Values(answers))...); err != nil {
		return err
	}
	workflow := workflowID(owner, id)
	ctx, cancel := unbroken(ctx)
	defer cancel()
	err = s.temporal.SignalWorkflow(ctx, workflow, "", signals.InputSignal, signals.Input{Responses: answers})
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) { // it was there a moment ago: closed by now, so nothing is open any more
		return nil
	}
	if err != nil {
		return fmt.Errorf("signal workflow: %w", unavailable(err))
	}
	s.markAnswered(task.runID, answers)
	s.nudges.send(workflow)
	return nil
}

// markAnswered lets the next read through this process know about answers that a run has not yet taken.
func (s *Service) markAnswered(runID string, answers map[string]json.RawMessage) {
	s.answered.Compute(runID, func(before map[string]bool, _ bool) (map[string]bool, otter.ComputeOp) {
		keys := maps.Clone(before)
		if keys == nil {
			keys = map[string]bool{}
		}
		for key := range answers {
			keys[key] = true
		}
		return keys, otter.WriteOp
	})
}

// cancelReason is the reason that Temporal records when Cancel terminates a workflow.
const cancelReason = "cancelled by the client"

// Cancel asks a task's workflow to stop, or terminates it if its tool says so. A task that has ended is left as it is. The
// next Get says that cancellation was requested.
func (s *Service) Cancel(ctx context.Context, owner, id string) error {
	task, err := s.Get(ctx, owner, id)
	if err != nil {
		return err
	}
	if task.Status.Terminal() {
		return nil
	}
	workflow := workflowID(owner, id)
	ctx, stop := unbroken(ctx)
	defer stop()
	if task.cancel == string(catalog.CancelTerminate) {
		err = s.temporal.TerminateWorkflow(ctx, workflow, "", cancelReason)
	} else {
		err = s.temporal.CancelWorkflow(ctx, workflow, "")
	}
	var gone *serviceerror.NotFound
	if errors.As(err, &gone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cancel workflow: %w", unavailable(err))
	}
	s.nudges.send(workflow)
	return nil
}

// workflowID is where a task lives. An owner has no colon, so that one owner's IDs never reach into another's.
func workflowID(owner, id string) string {
	return "mcp:" + owner + ":" + id
}

// address is workflowID for an ID that a client sent.
func address(owner, id string) (string, error) {
	if !validID(id) {
		return "", ErrNotFound
	}
	return workflowID(owner, id), nil
}

// validID reports whether a task may have this ID. Temporal's client puts workflow IDs into gRPC headers, which carry
// printable ASCII only.
func validID(id string) bool {
	unprintable := func(r rune) bool { return r < ' ' || r > '~' }
	return id != "" && len(id) <= maxTaskID && !strings.ContainsFunc(id, unprintable)
}

// unavailable marks those errors of Temporal that may pass.
func unavailable(err error) error {
	var (
		down    *serviceerror.Unavailable
		slow    *serviceerror.DeadlineExceeded
		limited *serviceerror.ResourceExhausted
	)
	if errors.As(err, &down) || errors.As(err, &slow) || errors.As(err, &limited) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
