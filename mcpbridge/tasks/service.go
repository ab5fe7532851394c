package tasks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"taskbridge/mcpbridge/catalog"
)

const (
	// maxPayload is the size above which Temporal refuses a workflow's arguments or a signal, in bytes.
	maxPayload = 2 << 20

	// Closed tasks never change. That one is gone, as another process has deleted it, or goes on, as somebody has reset its
	// workflow, is noticed this much later at most.
	closedTaskLifetime = 30 * time.Second
	// For longer, a describe call is all that it takes to know that a closed task is still there.
	keptTaskLifetime = 10 * time.Minute
	closedTaskBytes  = 64 << 20
	// How long a stored answer hides its question from this process's readers while no worker takes it.
	answeredLifetime = 10 * time.Minute
	answeredTasks    = 10_000
	// How many tasks of other namespaces than the first are remembered to be there.
	rememberedPlaces = 100_000
)

// Anonymous owns the tasks of callers without an identity.
const Anonymous = "anonymous"

// Options of a [Service].
type Options struct {
	// Namespace is the Temporal namespace of the client, "default" if empty.
	Namespace string
	// DataConverter is the client's own, for memos, results and failures. Default converter.GetDefaultDataConverter().
	DataConverter converter.DataConverter
	// Others are the namespaces of tools that name one.
	Others []Namespace
	// Tool finds a tool by its name, for what the catalog says about tasks while they run; nil finds none.
	Tool func(name string) (*catalog.Tool, bool)
}

// Namespace is a connection to a Temporal namespace.
type Namespace struct {
	Name     string
	Temporal client.Client
	// DataConverter is the client's own. Default converter.GetDefaultDataConverter().
	DataConverter converter.DataConverter
}

// Service is the task service on some Temporal namespaces.
type Service struct {
	namespaces []*namespace // the default one first
	tool       func(name string) (*catalog.Tool, bool)
	places     *otter.Cache[string, *namespace]
	closed     *otter.Cache[address, closedTask]
	answered   *otter.Cache[string, map[string]bool]
	deleted    *otter.Cache[string, struct{}] // by run ID
	queries    queries
	records    records
	created    recent
	watches    watches
	reading    atomic.Int64  // reads of tasks under way
	patience   time.Duration // how long a follower bears with a Temporal that does not answer
}

// closedTask is one that was there a moment ago.
type closedTask struct {
	task *Task
	seen time.Time
}

// New returns a service on a connected Temporal client.
func New(temporalClient client.Client, o Options) (*Service, error) {
	if o.Namespace == "" {
		o.Namespace = client.DefaultNamespace
	}
	if o.Tool == nil {
		o.Tool = func(string) (*catalog.Tool, bool) { return nil, false }
	}
	s := &Service{
		namespaces: []*namespace{newNamespace(Namespace{o.Namespace, temporalClient, o.DataConverter})},
		tool:       o.Tool,
		patience:   defaultPatience,
		watches:    newWatches(),
	}
	for _, other := range o.Others {
		if other.Name != o.Namespace {
			s.namespaces = append(s.namespaces, newNamespace(other))
		}
	}
	var err error
	s.closed, err = otter.New(&otter.Options[address, closedTask]{
		MaximumWeight:    closedTaskBytes,
		Weigher:          weight,
		ExpiryCalculator: otter.ExpiryWriting[address, closedTask](keptTaskLifetime),
	})
	if err != nil {
		return nil, fmt.Errorf("cache of closed tasks: %w", err)
	}
	return s, errors.Join(
		keep(&s.answered, "answered questions", answeredTasks, answeredLifetime),
		keep(&s.deleted, "deleted tasks", deletedTasks, deletedLifetime),
		keep(&s.places, "namespaces of tasks", rememberedPlaces, placeLifetime),
		keep(&s.queries.asked, "answers to queries", askedQueries, askedLifetime),
		keep(&s.records.byRun, "histories", recordedRuns, recordLifetime),
	)
}

// keep makes a cache of so many entries, each kept for a time since it was last written.
func keep[K comparable, V any](cache **otter.Cache[K, V], of string, entries int, lifetime time.Duration) error {
	made, err := otter.New(&otter.Options[K, V]{
		MaximumSize:      entries,
		ExpiryCalculator: otter.ExpiryWriting[K, V](lifetime),
	})
	if err != nil {
		return fmt.Errorf("cache of %s: %w", of, err)
	}
	*cache = made
	return nil
}

// weight is about what a closed task costs in memory, its encoded form included, in bytes.
func weight(at address, closed closedTask) uint32 {
	t := closed.task
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
	return uint32(min(1024+2*len(at.workflow)+2*content, closedTaskBytes))
}

// Check asks Temporal for the namespaces. It returns nil when Temporal is there and has them, else an error that says which
// is missing.
func (s *Service) Check(ctx context.Context) error {
	for _, n := range s.namespaces {
		if err := n.check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// namespace is where a tool's workflows run.
func (s *Service) namespace(tool *catalog.Tool) (*namespace, error) {
	if tool.Namespace == "" {
		return s.namespaces[0], nil
	}
	for _, n := range s.namespaces {
		if n.name == tool.Namespace {
			return n, nil
		}
	}
	return nil, fmt.Errorf("tool %s runs in namespace %q, to which there is no connection", tool.Name, tool.Namespace)
}

// CheckTool returns an error if there is no connection to the namespace in which a tool's workflows run.
func (s *Service) CheckTool(tool *catalog.Tool) error {
	_, err := s.namespace(tool)
	return err
}

// Get returns a task's state now. A live task costs one describe call, which calls at the same time share; one that is
// followed is known without, up to a second after it was last read. A closed task is known for half a minute.
//
// So a state may be older than the call: by the time that a history long-poll takes to tell, if the task is followed, and
// what leaves no trace in history by a second; by 50 ms, if several calls read the task at once. It never is from before a
// change that was acknowledged by this service, and no two calls see states go back.
func (s *Service) Get(ctx context.Context, owner, id string) (*Task, error) {
	task, err := s.load(ctx, owner, id)
	if err == nil && task.expired(time.Now()) {
		return nil, ErrNotFound
	}
	return task, err
}

// load is Get for tasks that have expired too.
func (s *Service) load(ctx context.Context, owner, id string) (*Task, error) {
	at, err := s.address(owner, id)
	if err != nil {
		return nil, err
	}
	if task := s.knownClosed(at); task != nil {
		return task, nil
	}
	w := s.enter(at, id)
	defer w.leave()
	task, err := w.current(ctx)
	if err == nil && s.isDeleted(task) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return task, nil
}

// knownClosed is a closed task that was there a moment ago; nil if it may not be.
func (s *Service) knownClosed(at address) *Task {
	known, ok := s.closed.GetIfPresent(at)
	if !ok || time.Since(known.seen) > closedTaskLifetime || s.isDeleted(known.task) {
		return nil
	}
	return known.task
}

// markAnswered lets the next read through this process know about answers that a run has not yet taken.
func (s *Service) markAnswered(runID string, keys ...string) {
	s.answered.Compute(runID, func(before map[string]bool, _ bool) (map[string]bool, otter.ComputeOp) {
		marked := maps.Clone(before)
		if marked == nil {
			marked = map[string]bool{}
		}
		for _, key := range keys {
			marked[key] = true
		}
		return marked, otter.WriteOp
	})
}

// hasOthers reports whether tasks may be in more than one namespace.
func (s *Service) hasOthers() bool { return len(s.namespaces) > 1 }

// others are the namespaces but one.
func (s *Service) others(but *namespace) []*namespace {
	return slices.DeleteFunc(slices.Clone(s.namespaces), func(n *namespace) bool { return n == but })
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
