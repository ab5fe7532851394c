package tasks

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/workflowservice/v1"

	"taskbridge/mcpbridge/catalog"
)

const (
	// attachedKind begins the ID of a task whose workflow somebody else has started: attached:<tool>:<first run>:<workflow>.
	attachedKind = "attached"
	// onceKind begins the ID of a task that repeated calls share: once:<digest>:<first run>.
	onceKind = "once"

	// callers begins the workflow IDs of all tasks that callers have started.
	callers = "mcp:"

	// maxTaskID keeps workflow IDs well below Temporal's limit of 1000 bytes.
	maxTaskID = 256
	// maxAttachedID has room for any workflow ID.
	maxAttachedID = 2 << 10

	// placeLifetime is how long it is remembered in which namespace a task is.
	placeLifetime = time.Hour
)

// address is where a task lives.
type address struct {
	workflow string // its workflow's ID
	// firstRun is the run that the task began with; it goes on with those that follow from it. If it is empty, the task is
	// whatever the workflow's newest run is.
	firstRun string
	// tool is the one by which a caller attached to the workflow; nil for tasks that callers have started.
	tool *catalog.Tool
	// digest is what the calls have in common that share the task; "" if none do.
	digest string
}

// address finds out where a task of an owner lives from the ID that a client sent. Attached tasks are found only as long
// as the catalog grants them.
func (s *Service) address(owner, id string) (address, error) {
	kind, rest, _ := strings.Cut(id, ":")
	switch {
	case kind == attachedKind:
		return s.attachment(rest)
	case !validID(id):
		return address{}, ErrNotFound
	case kind == onceKind:
		digest, firstRun, _ := strings.Cut(rest, ":")
		if !isRunID(firstRun) {
			return address{}, ErrNotFound
		}
		return address{workflow: sharedID(owner, digest), digest: digest, firstRun: firstRun}, nil
	}
	return address{workflow: workflowID(owner, id)}, nil
}

// id is the ID of the task at an address that began with a run; given is what it is if the address does not say.
func (at address) id(given, firstRun string) string {
	switch {
	case at.tool != nil:
		return strings.Join([]string{attachedKind, at.tool.Name, firstRun, at.workflow}, ":")
	case at.digest != "":
		return strings.Join([]string{onceKind, at.digest, firstRun}, ":")
	}
	return given
}

// isRunID reports whether Temporal makes run IDs like this one.
func isRunID(text string) bool { return uuid.Validate(text) == nil }

// Shared reports whether others than the caller that asked for a task may depend on it, by its ID: then it does not end
// with a call.
func Shared(id string) bool {
	kind, _, ok := strings.Cut(id, ":")
	return ok && (kind == attachedKind || kind == onceKind)
}

// workflowID is where a task lives. An owner has no colon, so that one owner's IDs never reach into another's.
func workflowID(owner, id string) string {
	return callers + owner + ":" + id
}

// validID reports whether a task may have this ID. Temporal's client puts workflow IDs into gRPC headers, which carry
// printable ASCII only.
func validID(id string) bool {
	return id != "" && len(id) <= maxTaskID && isPrintable(id)
}

func isPrintable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// find describes the newest run at an address, in whichever namespace it is; the error is [ErrNotFound] if in none.
func (s *Service) find(ctx context.Context, at address) (*namespace, *workflowservice.DescribeWorkflowExecutionResponse, error) {
	namespaces, err := s.namespacesOf(at)
	if err != nil {
		return nil, nil, err
	}
	err = ErrNotFound
	for _, n := range namespaces {
		description, failed := n.describeChain(ctx, at.workflow, at.firstRun)
		if failed == nil {
			s.remember(at, n)
			return n, description, nil
		}
		if !errors.Is(failed, ErrNotFound) {
			err = failed // it may be here
		}
	}
	return nil, nil, err
}

// namespacesOf are the namespaces in which an address may be, the likeliest first.
func (s *Service) namespacesOf(at address) ([]*namespace, error) {
	if at.tool != nil {
		n, err := s.namespace(at.tool)
		return []*namespace{n}, err
	}
	if !s.hasOthers() {
		return s.namespaces, nil
	}
	if likely, ok := s.places.GetIfPresent(at.workflow); ok {
		return append([]*namespace{likely}, s.others(likely)...), nil
	}
	return s.namespaces, nil
}

func (s *Service) remember(at address, n *namespace) {
	if n != s.namespaces[0] {
		s.places.Set(at.workflow, n)
	}
}
