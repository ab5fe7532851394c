package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
)

const (
	// emptyPages is how many pages of tasks that have expired are read for one.
	emptyPages = 3
	// listReaders is how many tasks of a list are read at once.
	listReaders = 8
	// createdLifetime is longer than visibility needs to show a new task.
	createdLifetime = 15 * time.Second
	createdTasks    = 1000
)

// List returns a page of an owner's tasks as Get returns them, those of one namespace after the other: live ones first, the newest of them first, then those that
// have ended, the last to end first. A page has about size tasks; those that were created through this process a moment
// ago come with the first page in any case. The first page is that of an empty token, and next is the token of the page
// after, empty when there is none; a page may be empty and not be the last. A token that Temporal cannot use is an [InvalidInputError].
func (s *Service) List(ctx context.Context, owner string, page []byte, size int) (tasks []*Task, next []byte, err error) {
	created := s.created.of(owner)
	for empty := 1; ; empty++ {
		runs, next, err := s.listed(ctx, owner, page, size)
		if err != nil {
			return nil, nil, err
		}
		if len(page) == 0 {
			runs = append(without(created, runs), runs...)
		} else {
			runs = without(runs, created) // they came with the first page
		}
		tasks, err := s.readAll(ctx, owner, runs)
		if err != nil || len(tasks) > 0 || len(next) == 0 || empty == emptyPages {
			return tasks, next, err
		}
		page = next
	}
}

// listing is a run of a task.
type listing struct {
	id    string
	runID string
	ended bool // as far as visibility knows
}

// without is listings less those of the tasks in others.
func without(listings, others []listing) []listing {
	return slices.DeleteFunc(slices.Clone(listings), func(l listing) bool { return has(others, l.id) })
}

func has(listings []listing, id string) bool {
	return slices.ContainsFunc(listings, func(l listing) bool { return l.id == id })
}

// listed asks visibility for a page of an owner's runs, no two of one task. A token says in its first byte which namespace
// it goes on with.
func (s *Service) listed(ctx context.Context, owner string, page []byte, size int) (runs []listing, next []byte, err error) {
	in := 0
	if len(page) > 0 {
		in, page = int(page[0]), page[1:]
	}
	if in >= len(s.namespaces) {
		return nil, nil, errNoSuchPage
	}
	prefix := workflowID(owner, "")
	query := fmt.Sprintf(`WorkflowId STARTS_WITH %s AND ExecutionStatus != "ContinuedAsNew"`, quote(prefix))
	answer, err := s.namespaces[in].visibility(ctx, query, page, size)
	if err != nil {
		return nil, nil, err
	}
	for _, run := range answer.GetExecutions() {
		l := listing{runID: run.GetExecution().GetRunId(), ended: run.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}
		id, mine := strings.CutPrefix(run.GetExecution().GetWorkflowId(), prefix)
		if digest, shared := strings.CutPrefix(id, onceKind+":"); shared {
			id = address{digest: digest}.id("", l.runID)
		}
		if l.id = id; mine && !has(runs, id) {
			runs = append(runs, l)
		}
	}
	switch next = answer.GetNextPageToken(); {
	case len(next) > 0:
		return runs, append([]byte{byte(in)}, next...), nil
	case in+1 < len(s.namespaces):
		return runs, []byte{byte(in + 1)}, nil
	}
	return runs, nil, nil
}

// quote is a string literal of a visibility query.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// readAll reads listed tasks, without those that are not there.
func (s *Service) readAll(ctx context.Context, owner string, runs []listing) ([]*Task, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tasks := make([]*Task, len(runs))
	var reading sync.WaitGroup
	free := make(chan struct{}, listReaders)
	for i, run := range runs {
		free <- struct{}{}
		reading.Go(func() {
			defer func() { <-free }()
			task, err := s.Get(ctx, owner, run.id)
			switch {
			case err == nil && !past(run, task):
				tasks[i] = task
			case err != nil && !errors.Is(err, ErrNotFound):
				cancel(err)
			}
		})
	}
	reading.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	listed := map[string]bool{}
	tasks = slices.DeleteFunc(tasks, func(task *Task) bool {
		again := task == nil || listed[task.ID] // by another of its runs
		if !again {
			listed[task.ID] = true
		}
		return again
	})
	slices.SortStableFunc(tasks, inOrder)
	return tasks, nil
}

// inOrder is the order of visibility.
func inOrder(a, b *Task) int {
	switch {
	case !a.Status.Terminal() && !b.Status.Terminal():
		return b.CreatedAt.Compare(a.CreatedAt)
	case a.Status.Terminal() && b.Status.Terminal():
		return b.UpdatedAt.Compare(a.UpdatedAt)
	case a.Status.Terminal():
		return 1
	default:
		return -1
	}
}

// past reports whether a run is not its task's newest, as after a reset: that one is listed in its own place.
func past(run listing, task *Task) bool {
	return run.ended && run.runID != task.runID
}

// recent are the tasks created through this process a moment ago, oldest first: visibility shows them a little later.
type recent struct {
	mutex sync.Mutex
	tasks []creation
}

type creation struct {
	owner string
	at    time.Time
	listing
}

func (r *recent) add(owner string, task *Task) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.forget()
	r.tasks = append(r.tasks, creation{owner, time.Now(), listing{id: task.ID, runID: task.runID}})
}

// of are an owner's, newest first.
func (r *recent) of(owner string) (created []listing) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.forget()
	for _, task := range slices.Backward(r.tasks) {
		if task.owner == owner {
			created = append(created, task.listing)
		}
	}
	return created
}

// forget makes room for one more and drops what visibility shows by now.
func (r *recent) forget() {
	old := max(0, len(r.tasks)-createdTasks+1)
	for old < len(r.tasks) && time.Since(r.tasks[old].at) > createdLifetime {
		old++
	}
	r.tasks = r.tasks[old:]
}
