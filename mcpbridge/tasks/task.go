// Package tasks is the task service: it starts, reads, follows, lists, answers, cancels and deletes MCP tasks, each of
// which is a Temporal workflow. It knows nothing of JSON-RPC, of HTTP or of any protocol era, and keeps no state that
// matters: everything about a task lives in Temporal, so any process can answer for any task.
package tasks

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"taskbridge/signals"
)

// Status of a task (MCP Tasks extension, "Task Status").
type Status string

// The five states of a task.
const (
	Working       Status = "working"
	InputRequired Status = "input_required"
	Completed     Status = "completed"
	Failed        Status = "failed"
	Cancelled     Status = "cancelled"
)

// Terminal reports whether a task in this state never changes again.
func (s Status) Terminal() bool {
	return s == Completed || s == Failed || s == Cancelled
}

// Task is the state of a task at one moment. It is shared between readers and must not be changed.
type Task struct {
	ID            string
	Tool          string
	Dialect       string // the protocol era in which it was created
	Status        Status
	StatusMessage string
	Progress      *signals.Progress // as the workflow last told it; nil if it never did
	CreatedAt     time.Time
	UpdatedAt     time.Time
	// TTL counts from CreatedAt; nil is without limit, which only a live task without an execution timeout has.
	TTL *time.Duration
	// KeepAlive is for how long after its end it can be read.
	KeepAlive    time.Duration
	PollInterval time.Duration
	// InputRequests are all open ones, when InputRequired.
	InputRequests map[string]signals.InputRequest
	// Result is set when Completed, Error when Failed.
	Result *signals.ToolResult
	Error  *signals.RPCError
	// Queued says that no worker has taken up the task yet.
	Queued bool
	// CancelRequested says that cancellation was asked for, however the workflow then ended or will end.
	CancelRequested bool
	// Undetermined says that the workflow has closed but nothing tells how it ended; the task is then Failed.
	Undetermined bool

	meta      signals.Meta
	at        address
	in        *namespace
	runID     string
	firstRun  bool                // it is the task's first
	lastEvent int64               // ID of the newest history event that the task shows
	viewed    bool                // the catalog has a view of it
	questions map[string]question // those InputRequests that the catalog asks
	// mark is what visibility shows of this state; see markOf.
	mark      uint64
	encodings atomic.Pointer[encoded]
}

// encoded is one encoded form of a task.
type encoded struct {
	key   any
	bytes []byte
	next  *encoded
}

// Encoded returns what encode makes of a task. It is made once for each key and kept with the task.
func (t *Task) Encoded(key any, encode func(*Task) ([]byte, error)) ([]byte, error) {
	kept := t.encodings.Load()
	for e := kept; e != nil; e = e.next {
		if e.key == key {
			return e.bytes, nil
		}
	}
	form, err := encode(t)
	if err == nil {
		t.encodings.CompareAndSwap(kept, &encoded{key, form, kept}) // else another one was faster: once more then
	}
	return form, err
}

// asking is a running task that differs in its open input requests only.
func (t *Task) asking(requests map[string]signals.InputRequest) *Task {
	status := Working
	if len(requests) > 0 {
		status = InputRequired
	}
	return &Task{
		ID:              t.ID,
		Tool:            t.Tool,
		Dialect:         t.Dialect,
		Status:          status,
		StatusMessage:   t.StatusMessage,
		Progress:        t.Progress,
		CreatedAt:       t.CreatedAt,
		UpdatedAt:       t.UpdatedAt,
		TTL:             t.TTL,
		KeepAlive:       t.KeepAlive,
		PollInterval:    t.PollInterval,
		InputRequests:   requests,
		Queued:          t.Queued,
		CancelRequested: t.CancelRequested,
		meta:            t.meta,
		at:              t.at,
		in:              t.in,
		runID:           t.runID,
		firstRun:        t.firstRun,
		lastEvent:       t.lastEvent,
		viewed:          t.viewed,
		questions:       t.questions,
		mark:            t.mark,
	}
}

// expired reports whether a task can no longer be read. A live one can, whatever its TTL says.
func (t *Task) expired(now time.Time) bool {
	return t.Status.Terminal() && t.TTL != nil && now.After(t.CreatedAt.Add(*t.TTL))
}

// ErrExists says that a new task cannot have the ID that was asked for, since another one has it or had it a while ago.
var ErrExists = errors.New("a task with this ID exists already")

// ErrNotFound says that there is no such task for this owner: unknown, expired, deleted, or another caller's.
var ErrNotFound = errors.New("task not found")

// ErrUnavailable says that Temporal does not answer; the same request may succeed later.
var ErrUnavailable = errors.New("temporal is not available")

// InvalidInputError says that what the client sent cannot be used; nothing has been done with it.
type InvalidInputError struct{ Reason string }

func (e *InvalidInputError) Error() string { return e.Reason }

func invalidInput(format string, args ...any) error {
	return &InvalidInputError{fmt.Sprintf(format, args...)}
}
