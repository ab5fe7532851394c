package mcpbridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/session"
	"taskbridge/mcpbridge/tasks"
)

const (
	// subscriptionID is the metadata key by which clients tell the messages of their subscriptions apart.
	subscriptionID = "io.modelcontextprotocol/subscriptionId"
	// maxListened is how many tasks, or resources, one subscription may name.
	maxListened = 10_000
	// listenPace is the time per task of a subscription between two looks for what history does not tell: however many tasks
	// it names, they cost 20 reads a second at most.
	listenPace = 50 * time.Millisecond
	// followPause is the time until a task is followed again that could not be, after it was.
	followPause = 5 * time.Second
)

// notificationFilter says what a subscription is about (MCP 2026-07-28, Subscriptions, "Notification Filter"; Tasks
// extension, "Task Status Notifications").
type notificationFilter struct {
	ToolsListChanged      bool     `json:"toolsListChanged"`
	PromptsListChanged    bool     `json:"promptsListChanged"`
	ResourcesListChanged  bool     `json:"resourcesListChanged"`
	ResourceSubscriptions []string `json:"resourceSubscriptions"`
	TaskIDs               []string `json:"taskIds"`
}

// ofBase reports whether the filter names anything that is the base protocol's.
func (f *notificationFilter) ofBase() bool {
	return f.ToolsListChanged || f.PromptsListChanged || f.ResourcesListChanged || len(f.ResourceSubscriptions) > 0
}

// listen serves a subscription until its client ends it, the server stops, or nothing can come any more: it acknowledges
// what it agrees to, tells the state of each task, and then what changes. All is written by this goroutine, so that a slow
// client holds up nobody else.
func (d *modern) listen(ctx context.Context, r *request) ([]byte, *rpc.Error) {
	if rpcErr := checkFilter(r); rpcErr != nil {
		return nil, rpcErr
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(d.stopping, func() { stop(session.ErrShutdown) })()
	l := &listener{modern: d, ctx: ctx, request: r, notices: &notices{}, news: make(chan news)}
	rpcErr := l.run(r.params.Notifications)
	if rpcErr == nil || l.acknowledged && errors.Is(context.Cause(ctx), session.ErrShutdown) {
		return l.closed(), nil
	}
	return nil, rpcErr
}

// checkFilter says what is wrong with a subscription's filter, nil if nothing is. Types have been checked.
func checkFilter(r *request) *rpc.Error {
	filter := r.params.Notifications
	switch {
	case filter == nil:
		return rpc.Errorf(rpc.CodeInvalidParams, `params.notifications is missing: name what to listen to, such as {"taskIds": ["…"]}`)
	case filter.TaskIDs != nil && !r.declaresTasks():
		return missingCapability("extensions", tasksExtension)
	case len(filter.TaskIDs) > maxListened:
		return tooMany("taskIds", len(filter.TaskIDs))
	case len(filter.ResourceSubscriptions) > maxListened:
		return tooMany("resourceSubscriptions", len(filter.ResourceSubscriptions))
	}
	return nil
}

func tooMany(member string, n int) *rpc.Error {
	return rpc.Errorf(rpc.CodeInvalidParams, "params.notifications.%s has %d entries: a subscription takes %d at most, so open several", member, n, maxListened)
}

// listener is one subscription.
type listener struct {
	*modern
	ctx     context.Context // ends with it
	request *request
	// acknowledged says that the client has been told what is agreed to.
	acknowledged bool
	notices      *notices
	// All tasks are followed by one goroutine, which waits with its news until they are taken, while the newest states wait
	// with it: a slow client costs no more memory than a fast one.
	news  chan news
	every time.Duration
	open  int // tasks that may still have news
}

// news are what has become of a task: a state in which it goes on, that it has ended, or the error for which it is not
// followed any more. The state in which it ended is not among them: results may be large.
type news struct {
	id    string
	task  *tasks.Task
	ended bool
	err   error
}

// run serves the subscription. It returns nil when nothing can come any more.
func (l *listener) run(filter *notificationFilter) *rpc.Error {
	agreed := map[string]jsontext.Value{}
	if filter.ofBase() {
		l.notices = newNotices(l.request.id)
		defer l.subscribe(l.ctx, l.request, l.notices).End(nil)
		var rpcErr *rpc.Error
		if agreed, rpcErr = l.notices.agreed(l.ctx); rpcErr != nil {
			return rpcErr
		}
	}
	lasting := len(agreed) > 0
	there, err := l.follow(filter.TaskIDs)
	if err != nil {
		return taskError(l.request.method, err)
	}
	if rpcErr := l.acknowledge(agreed, filter, there); rpcErr != nil {
		return rpcErr
	}
	for _, first := range there {
		if rpcErr := l.tell(first); rpcErr != nil {
			return rpcErr
		}
	}
	for lasting || l.open > 0 {
		select {
		case n := <-l.news:
			if rpcErr := l.tell(n); rpcErr != nil {
				return rpcErr
			}
		case <-l.notices.came:
			for _, n := range l.notices.take() {
				l.request.notify(n.method, n.params)
			}
		case <-l.ctx.Done():
			return rpc.Errorf(rpc.CodeInternalError, "%s: %v", l.request.method, context.Cause(l.ctx))
		}
	}
	return nil
}

// acknowledge says what is agreed to: of tasks those that are there.
func (l *listener) acknowledge(agreed map[string]jsontext.Value, filter *notificationFilter, there []news) *rpc.Error {
	if filter.TaskIDs != nil {
		ids := make([]string, len(there))
		for i, first := range there {
			ids[i] = first.id
		}
		encoded, rpcErr := encode(ids)
		if rpcErr != nil {
			return rpcErr
		}
		agreed["taskIds"] = encoded
	}
	params, rpcErr := encode(map[string]any{"notifications": agreed})
	if rpcErr != nil {
		return rpcErr
	}
	l.request.notify("notifications/subscriptions/acknowledged", l.stamp(params))
	l.acknowledged = true
	return nil
}

// tell sends what is new of a task, as tasks/get would return it at this moment without what makes that a result. Of one
// that is gone there is nothing to tell.
func (l *listener) tell(n news) *rpc.Error {
	task, err := n.task, n.err
	if n.ended {
		if task, err = l.ending(n.id); err != nil && !errors.Is(err, tasks.ErrNotFound) || err == nil && !task.Status.Terminal() {
			go l.followAgain(n.id) // Temporal is away, or the workflow was reset
			return nil
		}
	}
	if err != nil {
		l.open--
		return nil
	}
	if task.Status.Terminal() {
		l.open--
	}
	encoded, err := task.Encoded(extensionDialect, l.encodeDetailed)
	if err != nil {
		return taskError(l.request.method, err)
	}
	members := bytes.TrimPrefix(encoded, []byte(`{"resultType":"complete",`))
	members = bytes.TrimSuffix(members, fmt.Appendf(nil, `,"_meta":%s}`, l.resultMeta))
	l.request.notify("notifications/tasks", l.stamp(fmt.Appendf(nil, "{%s}", members)))
	return nil
}

// stamp adds the subscription's ID, as the client wrote it, to an object that is not empty.
func (l *listener) stamp(object []byte) jsontext.Value {
	return fmt.Appendf(nil, `{"_meta":{%q:%s},%s`, subscriptionID, l.request.id, object[1:])
}

// closed is the result which says that the subscription ends as it should (Subscriptions, "Graceful Closure").
func (l *listener) closed() []byte {
	server := bytes.TrimPrefix(l.resultMeta, []byte("{"))
	return fmt.Appendf(nil, `{"resultType":"complete","_meta":{%q:%s,%s}`, subscriptionID, l.request.id, server)
}

// follow begins to follow tasks and returns the first news of each that is there, in the order in which they are named.
// That it cannot be told of one whether it is there is an error.
func (l *listener) follow(ids []string) ([]news, error) {
	first := make(map[string]*news, len(ids))
	named := make([]string, 0, len(ids))
	for _, id := range ids {
		if _, again := first[id]; !again {
			first[id] = nil
			named = append(named, id)
		}
	}
	l.open = len(named)
	l.every = max(refresh, time.Duration(l.open)*listenPace)
	go l.followAll(named, map[string]bool{})
	for waiting := l.open; waiting > 0; {
		select {
		case n := <-l.news:
			if n.err != nil && !errors.Is(n.err, tasks.ErrNotFound) {
				return nil, n.err
			}
			if first[n.id] == nil {
				waiting--
			}
			first[n.id] = &n
		case <-l.ctx.Done():
			return nil, l.ctx.Err()
		}
	}
	there := make([]news, 0, len(named))
	for _, id := range named {
		if first[id].err != nil {
			l.open--
			continue
		}
		there = append(there, *first[id])
	}
	return there, nil
}

// followAll tells what becomes of tasks. Once one is known to be there, only its end or its deletion ends this: a Temporal
// that is away for long does not.
func (l *listener) followAll(ids []string, known map[string]bool) {
	for now := range l.service.FollowAll(l.ctx, l.request.owner, ids, l.every) {
		n := news{id: now.ID, task: now.Task, err: now.Err}
		switch {
		case l.ctx.Err() != nil:
			return
		case now.Err == nil:
			known[now.ID] = true
			if now.Task.Status.Terminal() {
				n.task, n.ended = nil, true
			}
		case known[now.ID] && !errors.Is(now.Err, tasks.ErrNotFound):
			go l.followAgain(now.ID)
			continue
		}
		if !l.send(n) {
			return
		}
	}
}

// followAgain is followAll, after a while, for a task that is known to be there.
func (l *listener) followAgain(id string) {
	select {
	case <-time.After(followPause):
		l.followAll([]string{id}, map[string]bool{id: true})
	case <-l.ctx.Done():
	}
}

// send passes news on, unless the subscription ends first.
func (l *listener) send(n news) bool {
	select {
	case l.news <- n:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// ending is the state in which a task ended.
func (l *listener) ending(id string) (task *tasks.Task, err error) {
	for task, err = range l.service.Follow(l.ctx, l.request.owner, id, 0) {
		break
	}
	return task, err
}
