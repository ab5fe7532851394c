package mcpbridge

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/tasks"
	"taskbridge/signals"
)

const (
	// defaultPatience is how long task_wait waits unless told otherwise: less than the minute after which many hosts give
	// a call up.
	defaultPatience = 45 * time.Second
	maxPatience     = 10 * time.Minute
	// longestQuestion is how much of a question's form a text shows, in bytes.
	longestQuestion = 2 << 10
)

// companionTools are the tools by which clients that know no tasks go on with one which was handed over to them.
func companionTools() []*mcp.Tool {
	const taskID = `"taskId":{"type":"string","description":"the task's ID, as the call that started it returned it"}`
	hint := func(b bool) *bool { return &b }
	return []*mcp.Tool{{
		Name:  catalog.CompanionWait,
		Title: "Wait for a task",
		Description: "Waits for a task that a tool call left running and returns its result. If the task is still running after the given " +
			"time, tells what it is doing: call it again then.",
		InputSchema: stdjson.RawMessage(`{"type":"object","properties":{` + taskID + `,"seconds":{"type":"number","minimum":0,"maximum":600,` +
			`"default":45,"description":"how long to wait at most"}},"required":["taskId"]}`),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: hint(false)},
	}, {
		Name:  catalog.CompanionAnswer,
		Title: "Answer a task's question",
		Description: "Answers what a task is waiting for. The answer is a person's to give: ask the user first, and pass on what they say. " +
			`An answer to a form is {"action":"accept","content":{…}} or {"action":"decline"}.`,
		InputSchema: stdjson.RawMessage(`{"type":"object","properties":{` + taskID + `,"answers":{"type":"object","additionalProperties":{"type":"object"},` +
			`"description":"the answer to each question by its key"}},"required":["taskId","answers"]}`),
		Annotations: &mcp.ToolAnnotations{DestructiveHint: hint(true), OpenWorldHint: hint(false)},
	}, {
		Name:        catalog.CompanionCancel,
		Title:       "Cancel a task",
		Description: "Asks a running task to stop. task_wait then tells how it ended.",
		InputSchema: stdjson.RawMessage(`{"type":"object","properties":{` + taskID + `},"required":["taskId"]}`),
		Annotations: &mcp.ToolAnnotations{DestructiveHint: hint(true), IdempotentHint: true, OpenWorldHint: hint(false)},
	}}
}

// companionCall is a call of a companion tool.
type companionCall struct {
	tool    string
	TaskID  string                        `json:"taskId"`
	Seconds *float64                      `json:"seconds"`
	Answers map[string]stdjson.RawMessage `json:"answers"`
}

func decodeCompanion(tool string, arguments jsontext.Value) (companionCall, error) {
	call := companionCall{tool: tool}
	if arguments == nil {
		arguments = jsontext.Value("{}")
	}
	if err := json.Unmarshal(arguments, &call, json.RejectUnknownMembers(true)); err != nil {
		return call, fmt.Errorf("the arguments do not fit the input schema of %s: %w", tool, err)
	}
	switch {
	case call.TaskID == "":
		return call, errors.New("taskId is missing: pass the ID that the call which started the task returned")
	case call.Seconds != nil && (*call.Seconds < 0 || *call.Seconds > maxPatience.Seconds()):
		return call, fmt.Errorf("seconds is %v: it must be from 0 to %v", *call.Seconds, maxPatience.Seconds())
	case tool == catalog.CompanionAnswer && len(call.Answers) == 0:
		return call, errors.New("answers is missing: pass an answer for each question, by its key")
	}
	return call, nil
}

// patience is how long task_wait waits.
func (c companionCall) patience() time.Duration {
	if c.Seconds == nil {
		return defaultPatience
	}
	return max(time.Millisecond, time.Duration(*c.Seconds*float64(time.Second)))
}

// runCompanion serves those companions that do not wait.
func (s *shared) runCompanion(ctx context.Context, owner string, call companionCall) *signals.ToolResult {
	var err error
	if call.tool == catalog.CompanionAnswer {
		err = s.service.Answer(ctx, owner, call.TaskID, call.Answers)
	} else {
		err = s.service.Cancel(ctx, owner, call.TaskID)
	}
	if err != nil {
		return toolError("%s", taskError(call.tool, err).Message)
	}
	task, err := s.service.Get(ctx, owner, call.TaskID)
	if err != nil {
		return toolError("%s", taskError(call.tool, err).Message)
	}
	return handedOver(task)
}

// handedOver tells a client that knows no tasks where a task stands and what to do next.
func handedOver(task *tasks.Task) *signals.ToolResult {
	var text strings.Builder
	fmt.Fprintf(&text, "%s runs as task %s", task.Tool, task.ID)
	if task.StatusMessage != "" {
		fmt.Fprintf(&text, ": %s", task.StatusMessage)
	}
	text.WriteString(".\n")
	switch {
	case task.Status.Terminal():
		fmt.Fprintf(&text, "It has ended (%s). Call %s with taskId %q for its result.", task.Status, catalog.CompanionWait, task.ID)
	case task.Status == tasks.InputRequired:
		writeQuestions(&text, task)
	case task.CancelRequested:
		fmt.Fprintf(&text, "It has been asked to stop. Call %s with taskId %q to see how it ended.", catalog.CompanionWait, task.ID)
	default:
		fmt.Fprintf(&text, "It goes on whether or not anyone waits. Call %s with taskId %q for its result, or %s to stop it.",
			catalog.CompanionWait, task.ID, catalog.CompanionCancel)
	}
	structured, err := json.Marshal(struct {
		TaskID        string                          `json:"taskId"`
		Status        tasks.Status                    `json:"status"`
		StatusMessage string                          `json:"statusMessage,omitzero"`
		InputRequests map[string]signals.InputRequest `json:"inputRequests,omitzero"`
	}{task.ID, task.Status, task.StatusMessage, task.InputRequests}, json.Deterministic(true))
	if err != nil {
		return toolError("task %s: %v", task.ID, err)
	}
	return &signals.ToolResult{Content: []stdjson.RawMessage{signals.Text(text.String())}, StructuredContent: structured}
}

// writeQuestions lists what a task waits for, and how to answer.
func writeQuestions(text *strings.Builder, task *tasks.Task) {
	text.WriteString("It waits for answers:\n")
	for _, key := range slices.Sorted(maps.Keys(task.InputRequests)) {
		request := task.InputRequests[key]
		var params struct {
			Message string         `json:"message"`
			URL     string         `json:"url"`
			Schema  jsontext.Value `json:"requestedSchema"`
		}
		_ = json.Unmarshal(request.Params, &params) // what cannot be read is left out
		fmt.Fprintf(text, "- %s (%s): %s", key, request.Method, cmp.Or(params.Message, "no message"))
		if params.URL != "" {
			fmt.Fprintf(text, " %s", params.URL)
		}
		if schema := string(params.Schema); schema != "" && len(schema) <= longestQuestion {
			fmt.Fprintf(text, " Form: %s", schema)
		}
		text.WriteByte('\n')
	}
	fmt.Fprintf(text, "Ask the user, then call %s with taskId %q and the answers by key, and then %s.",
		catalog.CompanionAnswer, task.ID, catalog.CompanionWait)
}
