package mcpbridge

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"log/slog"

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

// start starts a call's task. Arguments must have been checked; a [tasks.InvalidInputError] says why Temporal would not
// take them all the same.
func (s *shared) start(ctx context.Context, owner string, start tasks.Start, arguments, confirmed stdjson.RawMessage) (*tasks.Task, error) {
	var err error
	if start.Arguments, err = start.Tool.WorkflowArguments(arguments, confirmed); err != nil {
		return nil, &tasks.InvalidInputError{Reason: err.Error()}
	}
	return s.service.Create(ctx, owner, start)
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
