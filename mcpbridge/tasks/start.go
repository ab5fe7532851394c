package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/signals"
)

// Start is the start of a task.
type Start struct {
	// ID is the task's; empty for a new random one. A start with the ID of an existing task of the same owner returns
	// that task and starts nothing, so a start can be repeated safely.
	ID string
	// New makes a start with the ID of an existing task [ErrExists] instead. The ID must not be empty then, and becomes the
	// task's as it is.
	New  bool
	Tool *catalog.Tool
	// Call is what the tool makes of the caller's arguments.
	Call catalog.Call
	// Given are the arguments as the caller gave them, and IdempotencyKey names the call: they tell the calls of a tool
	// apart whose repeated calls share a task.
	Given          json.RawMessage
	IdempotencyKey string
	// Dialect is the name of the protocol era, recorded with the task.
	Dialect string
	// TTL is for how long after its creation the client wants to read the task, KeepAlive for how long after its end. Both
	// are bounded by what the namespace keeps. If there is a TTL, it counts; if there is neither, the tool's retention.
	TTL, KeepAlive *time.Duration
}

// Create starts a task's workflow and returns once Temporal has it, so that a Get by anyone finds it. If the tool attaches
// to a workflow, or shares the task of an earlier call, it finds that one.
func (s *Service) Create(ctx context.Context, owner string, start Start) (*Task, error) {
	if err := start.checkSize(); err != nil {
		return nil, err
	}
	n, err := s.namespace(start.Tool)
	if err != nil {
		return nil, err
	}
	switch {
	case start.Tool.Attach != nil:
		return s.attach(ctx, n, start)
	case start.isShared():
		return s.startOnce(ctx, owner, n, start)
	}
	return s.start(ctx, owner, n, start)
}

// start starts a task of one call's own.
func (s *Service) start(ctx context.Context, owner string, n *namespace, start Start) (*Task, error) {
	if err := s.name(ctx, owner, n, &start); err != nil {
		return nil, err
	}
	at := address{workflow: workflowID(owner, start.ID)}
	task, err := n.start(ctx, at, start, enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE)
	switch {
	case errors.Is(err, ErrExists) && !start.New:
		return s.Get(ctx, owner, start.ID)
	case err != nil:
		return nil, err
	}
	s.closed.Invalidate(at) // an earlier task of that ID may have been deleted elsewhere
	s.changed(at.workflow)
	s.remember(at, n)
	s.created.add(owner, task)
	return task, nil
}

// name completes the ID of a task to start and checks it.
func (s *Service) name(ctx context.Context, owner string, n *namespace, start *Start) error {
	if start.ID == "" && !start.New {
		start.ID = uuid.NewString()
	}
	if suffix := start.Call.IDSuffix; suffix != "" && !start.New {
		start.ID += "-" + suffix
	}
	switch {
	case !validID(start.ID):
		return invalidInput("the task ID has to be 1 to %d printable ASCII characters", maxTaskID)
	case Shared(start.ID):
		return invalidInput("the task ID must not begin with %s: or %s:", attachedKind, onceKind)
	case start.New:
		return s.isFree(ctx, owner, n, start.ID)
	}
	return nil
}

// checkSize checks what the caller's arguments have been made of. Memo and search attributes are bounded as a whole, too.
func (start Start) checkSize() error {
	call := start.Call
	if err := CheckSize("arguments", call.Arguments...); err != nil {
		return err
	}
	memo := slices.Collect(maps.Values(call.Memo))
	if err := CheckSize("memo fields that the tool makes of the arguments", memo...); err != nil {
		return err
	}
	return CheckSize("arguments and memo fields that the tool makes of them", append(memo, call.Arguments...)...)
}

// isFree checks that no task of an owner has an ID in another namespace than this. In this, Temporal itself does.
func (s *Service) isFree(ctx context.Context, owner string, n *namespace, id string) error {
	for _, other := range s.others(n) {
		if _, err := other.describe(ctx, workflowID(owner, id), ""); !errors.Is(err, ErrNotFound) {
			if err == nil {
				err = ErrExists
			}
			return err
		}
	}
	return nil
}

// start starts the workflow of a task. The error is [ErrExists] if its workflow ID is in use as the policy forbids.
func (n *namespace) start(ctx context.Context, at address, start Start, policy enumspb.WorkflowIdReusePolicy) (*Task, error) {
	meta, err := n.newMeta(start)
	if err != nil {
		return nil, err
	}
	tool := start.Tool
	options := startOptions(tool, start.Call)
	options.ID, options.WorkflowIDReusePolicy = at.workflow, policy
	options.Memo[signals.MetaMemo] = meta
	arguments := make([]any, len(start.Call.Arguments))
	for i, argument := range start.Call.Arguments {
		arguments[i] = argument
	}
	run, err := n.temporal.ExecuteWorkflow(ctx, options, tool.Workflow, arguments...)
	var exists *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &exists) {
		return nil, ErrExists
	}
	var invalid *serviceerror.InvalidArgument
	if errors.As(err, &invalid) && len(start.Call.SearchAttributes) > 0 { // whose values callers may have chosen
		return nil, invalidInput("temporal does not take the search attributes that the tool makes of the arguments: %s", invalid.Message)
	}
	if err != nil {
		return nil, fmt.Errorf("start workflow %s: %w", tool.Workflow, unavailable(err))
	}
	task := &Task{ID: at.id(start.ID, run.GetRunID()), Status: Working, Queued: true, UpdatedAt: meta.CreatedAt, at: at, in: n, runID: run.GetRunID()}
	task.record(meta)
	task.TTL = liveTTL(tool.ExecutionTimeout, meta)
	return task, nil
}

// startOptions are what a tool and a call of it say about the start of a workflow.
func startOptions(tool *catalog.Tool, call catalog.Call) client.StartWorkflowOptions {
	options := client.StartWorkflowOptions{
		TaskQueue:                                tool.TaskQueue,
		WorkflowExecutionTimeout:                 tool.ExecutionTimeout,
		WorkflowRunTimeout:                       tool.RunTimeout,
		WorkflowTaskTimeout:                      tool.TaskTimeout,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            tool.Name,
		Memo:                                     make(map[string]any, len(call.Memo)+1),
		VersioningOverride:                       versioningOverride(tool.Versioning),
	}
	for name, value := range call.Memo {
		options.Memo[name] = value
	}
	if len(call.SearchAttributes) > 0 {
		options.SearchAttributes = make(map[string]any, len(call.SearchAttributes)) //nolint:staticcheck // typed ones need types, which Temporal knows
	}
	for name, value := range call.SearchAttributes {
		options.SearchAttributes[name] = value //nolint:staticcheck // see above
	}
	if retry := tool.Retry; retry != nil {
		options.RetryPolicy = &temporal.RetryPolicy{
			InitialInterval:        retry.InitialInterval,
			BackoffCoefficient:     retry.BackoffCoefficient,
			MaximumInterval:        retry.MaximumInterval,
			MaximumAttempts:        retry.MaximumAttempts,
			NonRetryableErrorTypes: retry.NonRetryableErrorTypes,
		}
	}
	if priority := tool.Priority; priority != nil {
		options.Priority = temporal.Priority{
			PriorityKey:    priority.Key,
			FairnessKey:    priority.FairnessKey,
			FairnessWeight: float32(priority.FairnessWeight),
		}
	}
	return options
}

func versioningOverride(v *catalog.Versioning) client.VersioningOverride {
	switch {
	case v == nil:
		return nil
	case v.AutoUpgrade:
		return &client.AutoUpgradeVersioningOverride{}
	}
	return &client.PinnedVersioningOverride{
		Version: worker.WorkerDeploymentVersion{DeploymentName: v.Deployment, BuildID: v.BuildID},
	}
}

// newMeta is what is recorded about a task that starts now.
func (n *namespace) newMeta(start Start) (signals.Meta, error) {
	meta := signals.Meta{CreatedAt: time.Now().UTC().Truncate(time.Millisecond), Dialect: start.Dialect}
	if start.isShared() {
		digest, err := start.argumentsDigest()
		if err != nil {
			return meta, err
		}
		meta.ArgumentsDigest = digest
	}
	recordTool(&meta, start.Tool)
	return meta, n.bound(start, &meta)
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
