package mcpbridge

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/internal/seal"
	"taskbridge/mcpbridge/tasks"
	"taskbridge/signals"
)

// shared is what all dialects stand on.
type shared struct {
	service *tasks.Service
	tools   *toolSet
	sealer  *seal.Sealer
	waiting *waitingCalls
	// stopping ends when the server shuts down, and with it all calls that wait.
	stopping context.Context
	log      *slog.Logger
}

// checkArguments says what is wrong with a call's arguments, nil if nothing is.
func checkArguments(tool *catalog.Tool, arguments stdjson.RawMessage) error {
	if err := tasks.CheckSize("arguments", arguments); err != nil { // before work that grows with it
		return err
	}
	return tool.ValidateArguments(arguments)
}

// startTimeout is how long Temporal may take to start a workflow.
const startTimeout = 30 * time.Second

// given is what a caller has said of a call.
type given struct {
	arguments      stdjson.RawMessage // checked
	confirmed      stdjson.RawMessage // content of the accepted confirmation
	idempotencyKey jsontext.Value     // a string, unless the caller is mistaken; nil for none
}

// start starts a call's task. A [tasks.InvalidInputError] says why what is given cannot be used after all. A start is not
// broken off when the call ends, as nobody would know then whether it happened.
func (s *shared) start(ctx context.Context, owner string, start tasks.Start, call given) (*tasks.Task, error) {
	var err error
	if start.Call, err = start.Tool.Resolve(call.arguments, call.confirmed); err != nil {
		return nil, &tasks.InvalidInputError{Reason: err.Error()}
	}
	start.Given = call.arguments
	if call.idempotencyKey != nil {
		if err := json.Unmarshal(call.idempotencyKey, &start.IdempotencyKey); err != nil || start.IdempotencyKey == "" {
			return nil, &tasks.InvalidInputError{Reason: "_meta[" + catalog.IdempotencyKey + "] must be a string that is not empty"}
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	return s.service.Create(ctx, owner, start)
}

// abandon cancels the workflow of a task that nobody can follow, even though its call is over. Others may follow a shared
// one.
func (s *shared) abandon(ctx context.Context, owner, taskID string) {
	if tasks.Shared(taskID) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
	defer cancel()
	err := patiently(ctx, func() error { return s.service.Cancel(ctx, owner, taskID) })
	if err != nil && !errors.Is(err, tasks.ErrNotFound) {
		// It goes on then; its execution timeout is what ends it.
		s.log.Warn("workflow of an abandoned call not cancelled", "task", taskID, "error", err)
	}
}

// abandonTimeout is how long cancelling an abandoned workflow may take. Nobody waits for it.
const abandonTimeout = time.Minute

// patiently does something that a Temporal which is away for a while shall not keep from being done.
func patiently(ctx context.Context, do func() error) error {
	const pause = 500 * time.Millisecond
	for {
		err := do()
		if !errors.Is(err, tasks.ErrUnavailable) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

// refusal is the result that tells the caller of a tool what is wrong with the call; nil if the error is about
// something else.
func refusal(err error) *signals.ToolResult {
	var invalid *tasks.InvalidInputError
	if errors.As(err, &invalid) {
		return toolError("%v", err)
	}
	return nil
}
