package mcpbridge

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/session"
	"taskbridge/mcpbridge/tasks"
	"taskbridge/signals"
)

// questions are those of a session's tasks that its client has been asked and not yet answered. However many calls wait
// for a task, the client is asked each question once; if the call that carried it is gone, another one carries it again.
type questions struct {
	mu    sync.Mutex
	asked map[questionID]*asked
}

type questionID struct{ taskID, key string }

// asker sends the client a request: a call, on its own stream, or the session.
type asker interface {
	Ask(method string, params []byte, take func(result jsontext.Value, refusal *rpc.Error) error) (withdraw func(reason string), err error)
}

// asked is one question of a task.
type asked struct {
	sightings int             // how often the client has seen that the task waits for it
	carrier   context.Context // of the call that carried it to the client last; nil before
	withdraws []func(reason string)
	answered  bool // the task has the answer, though it may not show yet
}

// ask puts a task's open questions to the client with a call. Answers go to the task whenever they come. If one cannot
// be put, or its answer cannot be used, fail is told why.
func (c *conversation) ask(ctx context.Context, by asker, task *tasks.Task, meta map[string]any, fail func(*rpc.Error)) {
	c.questions.mu.Lock()
	defer c.questions.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(task.InputRequests)) {
		id := questionID{task.ID, key}
		before, known := c.questions.asked[id]
		if known && before.carrier != nil && (before.answered || before.carrier.Err() == nil) {
			if before.carrier != ctx {
				context.AfterFunc(before.carrier, func() { c.takeOver(ctx, by, task, key, meta, fail) })
			}
			continue
		}
		if err := c.put(ctx, by, id, task.InputRequests[key], meta, fail); err != nil {
			fail(rpc.Errorf(rpc.CodeInternalError, "question %s: %v", key, err))
		}
	}
}

// takeOver asks again what another call asked which is gone, if that has not been answered.
func (c *conversation) takeOver(ctx context.Context, by asker, task *tasks.Task, key string, meta map[string]any, fail func(*rpc.Error)) {
	c.questions.mu.Lock()
	q, open := c.questions.asked[questionID{task.ID, key}]
	open = open && !q.answered
	c.questions.mu.Unlock()
	if open && ctx.Err() == nil {
		c.ask(ctx, by, task, meta, fail)
	}
}

// patientSightings is how often a client may see that a task waits for input before it is asked without having called
// tasks/result, as it should have the first time.
const patientSightings = 3

// sighted has clients that only poll asked as well, if they read what belongs to no call (MCP 2025-11-25, Tasks, "Input
// Required Status").
func (c *conversation) sighted(s *session.Session, task *tasks.Task) {
	c.questions.settle(task)
	if task.Status != tasks.InputRequired || c.client.lacksForAny(task.InputRequests) != "" || !s.Listening() {
		return
	}
	due := false
	c.questions.mu.Lock()
	for key := range task.InputRequests {
		q := c.questions.of(questionID{task.ID, key})
		q.sightings++
		due = due || q.sightings >= patientSightings && q.carrier == nil
	}
	c.questions.mu.Unlock()
	if due {
		c.ask(s.Context(), s, task, related(relatedTask, task.ID), func(reason *rpc.Error) {
			c.log.Warn("a client's answer cannot be used", "task", task.ID, "error", reason.Message)
		})
	}
}

// of is what is known of a question. The caller holds mu.
func (q *questions) of(id questionID) *asked {
	if q.asked == nil {
		q.asked = map[questionID]*asked{}
	}
	if q.asked[id] == nil {
		q.asked[id] = &asked{}
	}
	return q.asked[id]
}

// put sends one question. The caller holds questions.mu.
func (c *conversation) put(ctx context.Context, by asker, id questionID, request signals.InputRequest, meta map[string]any, fail func(*rpc.Error)) error {
	params, err := c.questionParams(request, meta)
	if err != nil {
		return err
	}
	withdraw, err := by.Ask(request.Method, params, func(result jsontext.Value, refusal *rpc.Error) error {
		return c.answered(id, request, result, refusal, fail)
	})
	if err != nil {
		return err
	}
	q := c.questions.of(id)
	q.carrier, q.withdraws = ctx, append(q.withdraws, withdraw)
	return nil
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

// answered passes the client's answer to the task. An error means that the answer can be sent again.
func (c *conversation) answered(id questionID, request signals.InputRequest, result jsontext.Value, refusal *rpc.Error, fail func(*rpc.Error)) error {
	if refusal != nil {
		if request.Method != signals.MethodElicit {
			c.questions.forget(id)
			fail(rpc.Errorf(rpc.CodeInternalError, "the client answered %s with error %d: %s", request.Method, refusal.Code, refusal.Message))
			return nil
		}
		result = jsontext.Value(`{"action":"cancel"}`) // no person has answered
	}
	ctx, cancel := context.WithTimeout(context.Background(), abandonTimeout)
	defer cancel()
	err := c.service.Answer(ctx, c.owner, id.taskID, map[string]stdjson.RawMessage{id.key: stdjson.RawMessage(result)})
	var invalid *tasks.InvalidInputError
	switch {
	case errors.As(err, &invalid):
		c.questions.forget(id)
		fail(rpc.Errorf(rpc.CodeInvalidParams, "the client's answer to %s cannot be used: %v", request.Method, err))
		return nil
	case err != nil && !errors.Is(err, tasks.ErrNotFound):
		return err
	}
	c.questions.mu.Lock()
	defer c.questions.mu.Unlock()
	if q := c.questions.asked[id]; q != nil {
		q.answered = true
	}
	return nil
}

func (q *questions) forget(id questionID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.asked, id)
}

// settle withdraws what a task does not ask any more.
func (q *questions) settle(task *tasks.Task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, question := range q.asked {
		if _, open := task.InputRequests[id.key]; id.taskID != task.ID || open {
			continue
		}
		delete(q.asked, id)
		for _, withdraw := range question.withdraws {
			withdraw("the question has been settled otherwise")
		}
	}
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
	withdraw, err := call.Ask(question.Method, params, func(result jsontext.Value, refusal *rpc.Error) error {
		answers <- answer{result, refusal}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	select {
	case <-ctx.Done():
		withdraw("the call has ended")
		return nil, nil, fmt.Errorf("nothing was started: %w", context.Cause(ctx))
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
