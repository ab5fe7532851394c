package tasks

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"taskbridge/mcpbridge/catalog"
)

// candidates is how many workflows are looked at for one that a tool may attach to.
const candidates = 20

// attach finds the task of a workflow that somebody else has started.
func (s *Service) attach(ctx context.Context, n *namespace, start Start) (*Task, error) {
	tool, workflow := start.Tool, start.Call.WorkflowID
	if start.New {
		return nil, invalidInput("%s follows a workflow that somebody else has started: call it without a task ID of your own", tool.Name)
	}
	wanted := fmt.Sprintf("no workflow has the ID %q", workflow)
	if start.Call.Newest {
		wanted = fmt.Sprintf("no workflow has an ID that begins with %q", workflow)
		var err error
		if workflow, err = n.newest(ctx, tool, workflow); err != nil {
			return nil, err
		}
	}
	if !grants(tool, workflow) {
		return nil, &InvalidInputError{wanted}
	}
	task, err := s.read(ctx, address{workflow: workflow, tool: tool}, "")
	if errors.Is(err, ErrNotFound) {
		return nil, &InvalidInputError{wanted}
	}
	return task, err
}

// newest is the ID of the newest running workflow that begins so, else of the last one that has ended, and "" if there is
// none.
func (n *namespace) newest(ctx context.Context, tool *catalog.Tool, beginning string) (string, error) {
	query := fmt.Sprintf(`WorkflowId STARTS_WITH %s AND ExecutionStatus != "ContinuedAsNew"`, quote(beginning))
	found, err := n.visibility(ctx, query, nil, candidates) // which is in that order
	if err != nil {
		return "", err
	}
	for _, run := range found.GetExecutions() {
		if id := run.GetExecution().GetWorkflowId(); grants(tool, id) {
			return id, nil
		}
	}
	return "", nil
}

// attachment is the address of an attached task: <tool>:<first run>:<workflow>.
func (s *Service) attachment(id string) (address, error) {
	parts := strings.SplitN(id, ":", 3)
	if len(parts) != 3 || !isRunID(parts[1]) {
		return address{}, ErrNotFound
	}
	tool, ok := s.tool(parts[0])
	if !ok || tool.Attach == nil || !grants(tool, parts[2]) {
		return address{}, ErrNotFound
	}
	return address{workflow: parts[2], firstRun: parts[1], tool: tool}, nil
}

// grants reports whether a tool may attach to a workflow: never to another caller's.
func grants(tool *catalog.Tool, workflow string) bool {
	return workflow != "" && len(workflow) <= maxAttachedID && isPrintable(workflow) &&
		!strings.HasPrefix(workflow, callers) && tool.Attach.Grants(workflow)
}

// checkGrant says that an attached task only follows, if it does. done names what was asked for.
func (t *Task) checkGrant(granted func(*catalog.Attach) bool, done string) error {
	if t.at.tool == nil || granted(t.at.tool.Attach) {
		return nil
	}
	return invalidInput("%s lets callers follow the workflow, but not %s it", t.at.tool.Name, done)
}
