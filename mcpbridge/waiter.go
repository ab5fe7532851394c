package mcpbridge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/session"
	"taskbridge/mcpbridge/tasks"
	"taskbridge/signals"
)

// refresh is how often a waiting call looks for messages that Temporal's history does not tell, such as heartbeats.
const refresh = 2 * time.Second

// errWaitedEnough says that a call has waited as long as it may.
var errWaitedEnough = errors.New("waited enough")

// waiter follows a task for a call that is answered with the task's result.
type waiter struct {
	*shared
	owner, taskID string
	client        *clientCapabilities
	progress      *progress
	// atMost is how long the call may wait; 0 is as long as it takes. Then the call hands over.
	atMost time.Duration
	// seen is told of each state of the task, if it is set.
	seen func(*tasks.Task)
	// over says when there is a result; by default when the task is terminal.
	over func(*tasks.Task) bool
	// ask puts the open questions to the client. A reply ends the call; without one the call waits on, unless it fails.
	ask func(ctx context.Context, task *tasks.Task, fail func(*rpc.Error)) ([]byte, *rpc.Error)
	// unable answers the call when the client cannot be asked, as it lacks a capability. Without a reply the call waits on.
	unable func(task *tasks.Task, capability string) ([]byte, *rpc.Error)
	// result answers the call when the task is over.
	result func(*tasks.Task) ([]byte, *rpc.Error)
	// handOver answers a call that has waited enough.
	handOver func(*tasks.Task) ([]byte, *rpc.Error)
	// failed answers the call when the task cannot be read.
	failed func(error) ([]byte, *rpc.Error)
	// abandons says whether the workflow is cancelled when the call ends for this reason before its task does.
	abandons func(cause error) bool
	// leave counts the call out and reports whether no other one waits for the task.
	leave func() (last bool)
}

// run waits.
func (w *waiter) run(ctx context.Context) ([]byte, *rpc.Error) {
	w.leave = w.waiting.enter(w.owner, w.taskID)
	defer w.leave()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(w.stopping, func() { stop(session.ErrShutdown) })()
	following := ctx
	if w.atMost > 0 {
		var enough context.CancelFunc
		following, enough = context.WithTimeoutCause(ctx, w.atMost, errWaitedEnough)
		defer enough()
	}
	fail := func(reason *rpc.Error) { stop(&failedAsking{reason}) }
	every := time.Duration(0)
	if w.progress != nil {
		every = refresh
	}
	var last *tasks.Task
	for task, err := range w.service.Follow(following, w.owner, w.taskID, every) {
		if err != nil {
			return w.interrupted(ctx, context.Cause(following), last, err)
		}
		if last = task; w.seen != nil {
			w.seen(task)
		}
		if task.Status.Terminal() || w.over != nil && w.over(task) {
			return w.result(task)
		}
		w.progress.report(task)
		if task.Status != tasks.InputRequired {
			continue
		}
		if capability := w.client.lacksForAny(task.InputRequests); capability != "" {
			if reply, rpcErr := w.unable(task, capability); reply != nil || rpcErr != nil {
				return reply, rpcErr
			}
			continue
		}
		if reply, rpcErr := w.ask(ctx, task, fail); reply != nil || rpcErr != nil {
			return reply, rpcErr
		}
	}
	return nil, rpc.Errorf(rpc.CodeInternalError, "task %s cannot be followed any more", w.taskID)
}

// interrupted answers a call whose waiting ended before its task did.
func (w *waiter) interrupted(ctx context.Context, cause error, last *tasks.Task, err error) ([]byte, *rpc.Error) {
	if errors.Is(cause, errWaitedEnough) {
		if last == nil { // not even that was long enough
			if last, err = w.service.Get(ctx, w.owner, w.taskID); err != nil {
				return w.failed(err)
			}
		}
		return w.handOver(last)
	}
	if errors.Is(cause, session.ErrShutdown) {
		return nil, rpc.Errorf(rpc.CodeInternalError, "the server is shutting down; the workflow goes on as task %s", w.taskID)
	}
	if w.abandons(cause) {
		w.cancel(ctx)
	}
	if failure := new(failedAsking); errors.As(cause, &failure) {
		return nil, failure.reason
	}
	return w.failed(err)
}

// cancel cancels the task's workflow if no other call waits for it or can.
func (w *waiter) cancel(ctx context.Context) (cancelled bool) {
	if cancelled = w.leave() && !tasks.Shared(w.taskID); cancelled {
		w.abandon(ctx, w.owner, w.taskID)
	}
	return cancelled
}

// outcome is the result of a task as the answer to the call that started it.
func outcome(task *tasks.Task, encode func(*signals.ToolResult) ([]byte, *rpc.Error)) ([]byte, *rpc.Error) {
	switch task.Status {
	case tasks.Completed:
		return encode(task.Result)
	case tasks.Failed:
		return nil, &rpc.Error{Code: task.Error.Code, Message: task.Error.Message, Data: dataOf(task.Error)}
	default:
		return encode(toolError("the tool's workflow was %s", task.StatusMessage))
	}
}

// refuseToAsk ends a call whose client cannot be asked what the workflow needs.
func (w *waiter) refuseToAsk(tool, capability string, encode func(*signals.ToolResult) ([]byte, *rpc.Error)) ([]byte, *rpc.Error) {
	outcome := "so its workflow was cancelled"
	if !w.cancel(context.Background()) {
		outcome = "so this call does not wait for it"
	}
	return encode(toolError("%s needs an answer that this client has not declared it can give (capability %s), %s", tool, capability, outcome))
}

// failedAsking says that a question could not be put to the client, or that its answer cannot be used.
type failedAsking struct{ reason *rpc.Error }

func (f *failedAsking) Error() string { return fmt.Sprintf("asking the client: %v", f.reason) }

// waitingCalls counts the calls that wait for each task, so that one which ends does not cancel the work of others.
type waitingCalls struct {
	mu    sync.Mutex
	count map[string]int
}

func newWaitingCalls() *waitingCalls { return &waitingCalls{count: map[string]int{}} }

// enter counts a call in. leave counts it out, once, and reports whether it was the last.
func (w *waitingCalls) enter(owner, taskID string) (leave func() (last bool)) {
	key := owner + ":" + taskID
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count[key]++
	return sync.OnceValue(func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.count[key]--
		last := w.count[key] == 0
		if last {
			delete(w.count, key)
		}
		return last
	})
}
