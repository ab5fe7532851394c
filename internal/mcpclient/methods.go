package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
)

// Tools are all tools of the server, in its order.
func (c *Client) Tools(ctx context.Context) ([]Tool, error) {
	tools := []Tool{}
	params := map[string]any{}
	for {
		raw, err := c.request(ctx, "tools/list", "", params, nil)
		if err != nil {
			return nil, err
		}
		var page struct {
			Tools      []json.RawMessage `json:"tools"`
			NextCursor string            `json:"nextCursor"`
		}
		if err := decode("tools/list", raw, &page); err != nil {
			return nil, err
		}
		for _, raw := range page.Tools {
			tool := Tool{Raw: raw}
			if err := decode("tools/list", raw, &tool); err != nil {
				return nil, err
			}
			tools = append(tools, tool)
		}
		if page.NextCursor == "" {
			return tools, nil
		}
		params = map[string]any{"cursor": page.NextCursor}
	}
}

// Call calls a tool with arguments, a JSON object. round is nil at the first attempt. If ctx ends before the server
// answers, the server stops what it did for the call. Errors of the protocol are [*Error].
func (c *Client) Call(ctx context.Context, name string, arguments json.RawMessage, round *Round) (Outcome, error) {
	return c.CallOnce(ctx, name, "", arguments, round)
}

// CallOnce is [Client.Call] with an idempotency key, by which tools that dedupe by key know the call again; "" for none.
func (c *Client) CallOnce(ctx context.Context, name, key string, arguments json.RawMessage, round *Round) (Outcome, error) {
	params := map[string]any{"name": name, "arguments": arguments}
	if key != "" {
		params["_meta"] = map[string]any{"taskbridge/idempotencyKey": key}
	}
	if round != nil {
		params["inputResponses"] = round.InputResponses
		if round.RequestState != nil {
			params["requestState"] = *round.RequestState
		}
	}
	raw, err := c.request(ctx, "tools/call", name, params, nil)
	var refused *Error
	if errors.As(err, &refused) && refused.Code == codeHeaderMismatch {
		header, lookup := c.paramHeader(ctx, name, arguments)
		if lookup != nil || len(header) == 0 {
			return Outcome{}, err
		}
		raw, err = c.request(ctx, "tools/call", name, params, header)
	}
	if err != nil {
		return Outcome{}, err
	}
	return decodeOutcome(raw)
}

// decodeOutcome tells the results of tools/call apart by resultType; without one it is a CallToolResult.
func decodeOutcome(raw json.RawMessage) (Outcome, error) {
	const method = "tools/call"
	var base struct {
		ResultType string `json:"resultType"`
	}
	if err := decode(method, raw, &base); err != nil {
		return Outcome{}, err
	}
	switch base.ResultType {
	case "", "complete":
		result := &Result{Raw: raw}
		return Outcome{Result: result}, decode(method, raw, result)
	case "task":
		task := &Task{Raw: raw}
		return Outcome{Task: task}, decode(method, raw, task)
	case "input_required":
		questions := &Questions{Raw: raw}
		return Outcome{Questions: questions}, decode(method, raw, questions)
	}
	return Outcome{}, fmt.Errorf("%s: the server sent a result of type %q, but this client knows complete, task and input_required only", method, base.ResultType)
}

// GetTask is a task as it is now. An unknown task is an [*Error].
func (c *Client) GetTask(ctx context.Context, id string) (*Task, error) {
	raw, err := c.request(ctx, "tasks/get", id, map[string]any{"taskId": id}, nil)
	if err != nil {
		return nil, err
	}
	return decodeTask(raw)
}

// decodeTask reads a DetailedTask and checks that it has what its status promises.
func decodeTask(raw json.RawMessage) (*Task, error) {
	task := &Task{Raw: raw}
	if err := decode("tasks/get", raw, task); err != nil {
		return nil, err
	}
	if task.Status == Completed && task.Result == nil || task.Status == Failed && task.Error == nil {
		return nil, fmt.Errorf("tasks/get: the server says that task %s is %s, but not with what", task.ID, task.Status)
	}
	return task, nil
}

// UpdateTask answers open input requests of a task by their keys. The server may show the effect later.
func (c *Client) UpdateTask(ctx context.Context, id string, responses map[string]json.RawMessage) error {
	_, err := c.request(ctx, "tasks/update", id, map[string]any{"taskId": id, "inputResponses": responses}, nil)
	return err
}

// CancelTask asks the server to cancel a task. The task may go on for a while, or even complete.
func (c *Client) CancelTask(ctx context.Context, id string) error {
	_, err := c.request(ctx, "tasks/cancel", id, map[string]any{"taskId": id}, nil)
	return err
}

// Listen calls changed whenever the server pushes the state of a task: when it begins to, and at each change. It returns when
// the server cannot or does so no more, as after the end of the task, or when ctx ends.
func (c *Client) Listen(ctx context.Context, id string, changed func()) error {
	const method = "subscriptions/listen"
	params := map[string]any{"notifications": map[string]any{"taskIds": []string{id}}}
	response, requestID, err := c.send(ctx, method, "", params, nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind != "text/event-stream" {
		return fmt.Errorf("%s: %s answers %s, not with a stream", method, c.endpoint, response.Status)
	}
	ended, err := readStream(response.Body, requestID, func(notification string) {
		if notification == "notifications/tasks" {
			changed()
		}
	})
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if ended.Error != nil {
		return ended.Error
	}
	return nil
}

func decode(method string, raw json.RawMessage, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: the result cannot be read: %w", method, err)
	}
	return nil
}
