// Package workflows is the workflow side of taskbridge: [Task], the runtime by which a workflow tells its status, asks
// questions and ends an MCP task, and the bundled workflows.
package workflows

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"taskbridge/signals"
)

// Task is a running workflow seen as an MCP task. It keeps memo [signals.StateMemo] up to date and hands answers that
// arrive as [signals.InputSignal] to whoever asked. Make one at the first line of the workflow, so that no answer can
// arrive before someone listens.
//
// A Task belongs to its workflow's coroutines and must not leave them.
type Task struct {
	statusMessage string
	progress      *signals.Progress
	nextKey       int
	// questions are issued and not yet answered to their asker, in the order in which they were issued.
	questions []*question
	inputs    workflow.ReceiveChannel
	published string // the last published state without its time, as JSON
	updatedAt time.Time
}

// question is one input request from its issue until its asker has read the answer.
type question struct {
	Key  string `json:"key"`
	Name string `json:"name"`
	// Request is a digest of what is asked: an answer counts for nothing else.
	Request string                `json:"request"`
	Answer  json.RawMessage       `json:"answer,omitempty"`
	req     *signals.InputRequest // nil while carried over and not yet asked again
}

func digest(req signals.InputRequest) string {
	sum := sha256.Sum256(append([]byte(req.Method+"\n"), req.Params...))
	return hex.EncodeToString(sum[:])
}

// Carry is what a task takes along when its workflow continues as new: the key counter, so that keys stay unique, the
// questions in flight, so that a client's answer to the old run reaches the new one, and the progress, so that it does
// not begin again.
type Carry struct {
	NextKey   int               `json:"nextKey"`
	Questions []*question       `json:"questions,omitempty"`
	Progress  *signals.Progress `json:"progress,omitempty"`
}

// NewTask makes the task of the running workflow. A workflow that continues as new passes the [Carry] of the run
// before; otherwise nil.
func NewTask(ctx workflow.Context, carried *Carry) (*Task, error) {
	t := &Task{inputs: workflow.GetSignalChannel(ctx, signals.InputSignal)}
	if carried != nil {
		t.nextKey, t.questions, t.progress = carried.NextKey, carried.Questions, carried.Progress
	}
	err := workflow.SetQueryHandler(ctx, signals.StateQuery, func() (signals.TaskState, error) {
		return t.state(), nil
	})
	if err != nil {
		return nil, fmt.Errorf("register query %s: %w", signals.StateQuery, err)
	}
	if workflow.GetInfo(ctx).ContinuedExecutionRunID != "" {
		t.publish(ctx) // the memo of the run before goes on, and would show its questions until something changes
	}
	// A task listens on when its workflow is cancelled. It takes nothing out of the channel before it can act on it, unlike
	// a blocked Receive, whose signal would be lost to a Carry in the same workflow task.
	listening, _ := workflow.NewDisconnectedContext(ctx)
	workflow.Go(listening, func(ctx workflow.Context) {
		for workflow.Await(ctx, func() bool { return t.inputs.Len() > 0 }) == nil {
			t.acceptAll(ctx)
		}
	})
	return t, nil
}

// maxStatusMessage keeps a message that carries something long, such as an error, from exceeding Temporal's limit on
// memos, which would fail the workflow task again and again.
const maxStatusMessage = 4 << 10

// Status tells in one line what the workflow is doing now; clients see it as statusMessage. It is cut after 4 KiB.
func (t *Task) Status(ctx workflow.Context, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if len(message) > maxStatusMessage {
		message = strings.ToValidUTF8(message[:maxStatusMessage], "") + "…"
	}
	t.statusMessage = message
	t.publish(ctx)
}

// Progress tells how much is done, of total or, if total is 0, of nobody knows how much. A client that follows the call
// sees it rise; done should not decrease. Numbers that are not finite are ignored.
func (t *Task) Progress(ctx workflow.Context, done, total float64) {
	if sum := done + total; math.IsNaN(sum) || math.IsInf(sum, 0) {
		return
	}
	t.progress = &signals.Progress{Done: done, Total: total}
	t.publish(ctx)
}

// Carry returns what the next run needs for [NewTask]. Call it last, right before workflow.NewContinueAsNewError.
// Questions that are still open keep their keys when the next run asks the same again under the same names. Those that no
// run asks again are forgotten, but not an answer that nobody has read.
func (t *Task) Carry(ctx workflow.Context) *Carry {
	t.acceptAll(ctx)
	forgotten := func(q *question) bool { return q.req == nil && q.Answer == nil }
	return &Carry{
		NextKey:   t.nextKey,
		Questions: slices.DeleteFunc(slices.Clone(t.questions), forgotten),
		Progress:  t.progress,
	}
}

// issue opens an input request. The same question, if the run before left it open or unread under the same name, goes on
// under its old key, with its answer if there is one.
func (t *Task) issue(ctx workflow.Context, name string, req signals.InputRequest) *question {
	request := digest(req)
	carried := slices.IndexFunc(t.questions, func(q *question) bool {
		return q.req == nil && q.Name == name && q.Request == request
	})
	var q *question
	if carried >= 0 {
		q = t.questions[carried]
	} else {
		t.nextKey++
		q = &question{Key: fmt.Sprintf("%s-%d", name, t.nextKey), Name: name, Request: request}
		t.questions = append(t.questions, q)
	}
	q.req = &req
	t.publish(ctx)
	return q
}

// await waits for a question's answer and takes it. When ctx ends first, the question is withdrawn.
func (t *Task) await(ctx workflow.Context, q *question) (json.RawMessage, error) {
	err := workflow.Await(ctx, func() bool { return q.Answer != nil })
	t.questions = slices.DeleteFunc(t.questions, func(other *question) bool { return other == q })
	t.publish(ctx)
	if err != nil {
		return nil, err
	}
	return q.Answer, nil
}

// acceptAll takes the signals that have arrived.
func (t *Task) acceptAll(ctx workflow.Context) {
	var input signals.Input
	for t.inputs.ReceiveAsync(&input) {
		t.accept(ctx, input)
		input = signals.Input{}
	}
}

// accept keeps the first answer to each issued key and ignores everything else.
func (t *Task) accept(ctx workflow.Context, input signals.Input) {
	for _, q := range t.questions {
		if answer, ok := input.Responses[q.Key]; ok && q.Answer == nil && answer != nil {
			q.Answer = answer
		}
	}
	t.publish(ctx)
}

func (t *Task) state() signals.TaskState {
	state := signals.TaskState{
		Version:       signals.Version,
		StatusMessage: t.statusMessage,
		Progress:      t.progress,
		UpdatedAt:     t.updatedAt,
	}
	for _, q := range t.questions {
		if q.req == nil || q.Answer != nil {
			continue
		}
		if state.InputRequests == nil {
			state.InputRequests = map[string]signals.InputRequest{}
		}
		state.InputRequests[q.Key] = *q.req
	}
	return state
}

// publish upserts the memo if anything but the time has changed since the last one.
func (t *Task) publish(ctx workflow.Context) {
	state := t.state()
	state.UpdatedAt = time.Time{}
	encoded, err := json.Marshal(state)
	if err == nil && string(encoded) == t.published {
		return
	}
	t.published, t.updatedAt = string(encoded), workflow.Now(ctx).UTC()
	state.UpdatedAt = t.updatedAt
	if err := workflow.UpsertMemo(ctx, map[string]any{signals.StateMemo: state}); err != nil {
		workflow.GetLogger(ctx).Error("task state not published", "error", err)
	}
}
