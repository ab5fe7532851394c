package mcpbridge

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/session"
	"taskbridge/mcpbridge/tasks"
	"taskbridge/signals"
)

const (
	// patientSightings is how often a client may see that a task waits for input before it is asked without having called
	// tasks/result, as it should have the first time.
	patientSightings = 3
	// maxSettled is how many questions that are over are remembered.
	maxSettled = 256
	// maxPut is how often a question may have been put to the client and still be answered each time.
	maxPut = 3
	// maxUnusable is how many unusable answers a question takes.
	maxUnusable = 3
	// answerPatience is how long an answer bears with a Temporal that is away.
	answerPatience = time.Minute
)

// questions are those of a session's tasks that its client has seen or been asked, and not yet answered. However many
// calls wait for a task, the client is asked each question once; when the call that carried it is gone, another one
// carries it again.
type questions struct {
	mu   sync.Mutex
	byID map[questionID]*question
	// settled are the last that are over: a call may still hold an older state of the task, in which one is open.
	settled []questionID
}

type questionID struct{ taskID, key string }

// question is one question of a task.
type question struct {
	since     time.Time // of the newest state of the task that was seen with it
	sightings int
	carrier   *carrier  // put it to the client last; nil if none has
	heirs     []carrier // would if that were gone
	withdraws []func(reason string)
	answered  bool // the task has the answer, though it may not show yet
	unusable  int  // answers so far
}

// carrier puts questions to the client: a call that waits for their task, or the session itself.
type carrier struct {
	*conversation
	ctx  context.Context // of the call
	by   asker
	meta map[string]any
	// fail is told why a question could not be put, or why its answer cannot be used.
	fail func(*rpc.Error)
}

// asker sends the client a request.
type asker interface {
	Ask(method string, params []byte, take func(result jsontext.Value, refusal *rpc.Error)) (withdraw func(reason string), err error)
}

// of is what is known of a question. The caller holds mu.
func (q *questions) of(id questionID) *question {
	if q.byID == nil {
		q.byID = map[questionID]*question{}
	}
	if q.byID[id] == nil {
		q.byID[id] = &question{}
	}
	return q.byID[id]
}

// forget withdraws a question. The caller holds mu.
func (q *questions) forget(id questionID, reason string) {
	for _, withdraw := range q.byID[id].withdraws {
		withdraw(reason)
	}
	delete(q.byID, id)
}

// settle withdraws what a task does not ask any more. States that are older than a question say nothing of it.
func (q *questions) settle(task *tasks.Task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, question := range q.byID {
		if _, open := task.InputRequests[id.key]; id.taskID == task.ID && !open && !task.UpdatedAt.Before(question.since) {
			q.forget(id, "the question has been settled")
			q.settled = append(q.settled, id)
		}
	}
	q.settled = q.settled[max(0, len(q.settled)-maxSettled):]
}

// ask puts a task's open questions to the client. Answers go to the task whenever they come.
func (k carrier) ask(task *tasks.Task) {
	k.questions.mu.Lock()
	defer k.questions.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(task.InputRequests)) {
		k.offer(questionID{task.ID, key}, task)
	}
}

// offer puts a question to the client unless another carrier does, or it is over. The caller holds questions.mu.
func (k carrier) offer(id questionID, task *tasks.Task) {
	if slices.Contains(k.questions.settled, id) {
		return
	}
	q, request := k.questions.of(id), task.InputRequests[id.key]
	if task.UpdatedAt.After(q.since) {
		q.since = task.UpdatedAt
	}
	switch {
	case q.answered:
	case q.carrier == nil || q.carrier.isGone():
		k.put(q, id, request)
	case q.carrier.ctx != k.ctx && !slices.ContainsFunc(q.heirs, k.is):
		q.heirs = append(q.heirs, k)
	}
}

func (k carrier) is(other carrier) bool { return k.ctx == other.ctx }

// isGone reports whether nobody reads what the carrier sends any more.
func (k carrier) isGone() bool {
	s, ok := k.by.(*session.Session)
	return k.ctx.Err() != nil || ok && !s.Listening()
}

// put sends a question. The caller holds questions.mu.
func (k carrier) put(q *question, id questionID, request signals.InputRequest) {
	var withdraw func(string)
	params, err := k.questionParams(request, k.meta)
	if err == nil {
		withdraw, err = k.by.Ask(request.Method, params, func(result jsontext.Value, refusal *rpc.Error) {
			k.answered(id, request, result, refusal)
		})
	}
	if err != nil {
		k.fail(rpc.Errorf(rpc.CodeInternalError, "question %s: %v", id.key, err))
		return
	}
	if q.withdraws = append(q.withdraws, withdraw); len(q.withdraws) > maxPut {
		q.withdraws[0]("the question has been asked again")
		q.withdraws = q.withdraws[1:]
	}
	q.carrier, q.heirs = &k, slices.DeleteFunc(q.heirs, k.is)
	context.AfterFunc(k.ctx, func() { k.gone(id, request) })
}

// gone leaves a question to another carrier. If there is none, the client may still answer, unless it cancelled the call or
// the call failed.
func (k carrier) gone(id questionID, request signals.InputRequest) {
	k.questions.mu.Lock()
	defer k.questions.mu.Unlock()
	q, open := k.questions.byID[id]
	if !open || q.answered || q.carrier == nil || q.carrier.ctx != k.ctx {
		return
	}
	for _, heir := range q.heirs {
		if !heir.isGone() {
			heir.put(q, id, request)
			return
		}
	}
	cause := context.Cause(k.ctx)
	if errors.Is(cause, session.ErrCancelled) || errors.As(cause, new(*failedAsking)) {
		k.questions.forget(id, "the call has ended")
	}
}

// sighted has clients that only poll asked as well, if they read what belongs to no call (MCP 2025-11-25, Tasks, "Input
// Required Status").
func (c *conversation) sighted(s *session.Session, task *tasks.Task) {
	c.questions.settle(task)
	if task.Status != tasks.InputRequired || c.client.lacksForAny(task.InputRequests) != "" || !s.Listening() {
		return
	}
	k := carrier{c, s.Context(), s, related(relatedTask, task.ID), c.logRefusal(task)}
	c.questions.mu.Lock()
	defer c.questions.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(task.InputRequests)) {
		id := questionID{task.ID, key}
		q := c.questions.of(id)
		if q.sightings++; q.sightings >= patientSightings {
			k.offer(id, task)
		}
	}
}

// logRefusal is for questions whose answer may come from elsewhere.
func (c *conversation) logRefusal(task *tasks.Task) func(*rpc.Error) {
	return func(reason *rpc.Error) {
		c.log.Info("a client gave no answer", "task", task.ID, "reason", reason.Message)
	}
}

// answered passes the client's answer to the task. A question whose answer cannot be used is asked again, some times.
func (k carrier) answered(id questionID, request signals.InputRequest, result jsontext.Value, refusal *rpc.Error) {
	if refusal != nil {
		if request.Method != signals.MethodElicit {
			k.unanswered(id, rpc.Errorf(rpc.CodeInternalError, "the client answered %s with error %d: %s", request.Method, refusal.Code, refusal.Message))
			return
		}
		result = jsontext.Value(`{"action":"cancel"}`) // no person has answered
	}
	err := k.pass(id, result)
	var invalid *tasks.InvalidInputError
	k.questions.mu.Lock()
	defer k.questions.mu.Unlock()
	q, open := k.questions.byID[id]
	switch {
	case !open:
	case err == nil || errors.Is(err, tasks.ErrNotFound):
		q.answered = true
	case k.ctx.Err() != nil: // nobody to ask again: the next call does
		delete(k.questions.byID, id)
	case !errors.As(err, &invalid):
		k.put(q, id, request)
	case q.unusable+1 < maxUnusable:
		q.unusable++
		k.put(q, id, remark(request, err))
	default:
		delete(k.questions.byID, id)
		k.fail(rpc.Errorf(rpc.CodeInvalidParams, "the client's answer to %s cannot be used: %v", request.Method, err))
	}
}

func (k carrier) unanswered(id questionID, reason *rpc.Error) {
	k.questions.mu.Lock()
	delete(k.questions.byID, id)
	k.questions.mu.Unlock()
	k.fail(reason)
}

// pass gives the task an answer. It bears with a Temporal that is away for a while.
func (k carrier) pass(id questionID, answer jsontext.Value) error {
	ctx, cancel := context.WithTimeout(context.Background(), answerPatience)
	defer cancel()
	return patiently(ctx, func() error {
		return k.service.Answer(ctx, k.owner, id.taskID, map[string]stdjson.RawMessage{id.key: stdjson.RawMessage(answer)})
	})
}

// remark is a form that says what was wrong with the last answer to it.
func remark(request signals.InputRequest, problem error) signals.InputRequest {
	var params map[string]jsontext.Value
	var message string
	if json.Unmarshal(request.Params, &params) != nil || json.Unmarshal(params["message"], &message) != nil {
		return request
	}
	encoded, err := json.Marshal(fmt.Sprintf("%s\n(The last answer could not be used: %v)", message, problem))
	if err != nil {
		return request
	}
	params["message"] = encoded
	if encoded, err = json.Marshal(params, json.Deterministic(true)); err == nil {
		request.Params = stdjson.RawMessage(encoded)
	}
	return request
}

// questionParams are a question's params as the session's protocol revision has them.
func (c *conversation) questionParams(request signals.InputRequest, meta map[string]any) ([]byte, error) {
	params := map[string]any{}
	if len(request.Params) > 0 {
		var members map[string]jsontext.Value
		if err := json.Unmarshal(request.Params, &members); err != nil {
			return nil, err
		}
		for name, value := range members {
			params[name] = value
		}
	}
	if mode, ok := params["mode"].(jsontext.Value); ok && string(mode) == `"form"` && !c.hasTasks() { // came with the same revision
		delete(params, "mode")
	}
	if meta != nil {
		params["_meta"] = meta
	}
	return json.Marshal(params, json.Deterministic(true))
}

// confirm asks the client a tool's question before anything starts. It returns what was confirmed, or the result that
// says why nothing was started.
func (c *conversation) confirm(ctx context.Context, call *session.Call, tool *catalog.Tool, meta map[string]any) (stdjson.RawMessage, *signals.ToolResult, error) {
	question := confirmation(tool)
	if capability := c.client.lacks(question); capability != "" {
		return nil, toolError("%s must be confirmed first, and this client has not declared that it can ask (capability %s); nothing was started", tool.Name, capability), nil
	}
	params, err := c.questionParams(question, meta)
	if err != nil {
		return nil, nil, err
	}
	type answer struct {
		result  jsontext.Value
		refusal *rpc.Error
	}
	answers := make(chan answer, 1)
	withdraw, err := call.Ask(question.Method, params, func(result jsontext.Value, refusal *rpc.Error) {
		answers <- answer{result, refusal}
	})
	if err != nil {
		return nil, nil, err
	}
	select {
	case <-ctx.Done():
		withdraw("the call has ended")
		return nil, nil, fmt.Errorf("nothing was started: %w", context.Cause(ctx))
	case <-c.stopping.Done():
		return nil, nil, fmt.Errorf("nothing was started: %w", session.ErrShutdown)
	case a := <-answers:
		if a.refusal != nil {
			return nil, toolError("%s was not confirmed (%s); nothing was started", tool.Name, a.refusal.Message), nil
		}
		content, refusal, rpcErr := decide(tool, stdjson.RawMessage(a.result))
		if rpcErr != nil {
			return nil, toolError("%s was not confirmed: %s; nothing was started", tool.Name, rpcErr.Message), nil
		}
		return content, refusal, nil
	}
}
