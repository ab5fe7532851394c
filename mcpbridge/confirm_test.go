package mcpbridge_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge"
	"taskbridge/mcpbridge/catalog"
)

type confirmation struct {
	ResultType    string
	InputRequests map[string]json.RawMessage
	RequestState  string
	TaskID        *string
}

func confirming(t testing.TB) func(*mcpbridge.Bridge) error {
	return tool(t, func(tool *catalog.Tool) {
		tool.Name, tool.InputSchema = "deploy", json.RawMessage(`{"type":"object","properties":{"target":{"type":"string"}}}`)
		tool.Confirm = &catalog.Confirm{
			Message:  "Really?",
			Schema:   json.RawMessage(`{"type":"object","properties":{"why":{"type":"string"}},"required":["why"]}`),
			Argument: "approval",
		}
	}, Echo)
}

func TestConfirmBeforeAnythingStarts(t *testing.T) {
	temporal := testenv.Client(t)
	newWorker(t, temporal, Echo)
	key := make([]byte, mcpbridge.StateKeySize)
	f := newFront(t, temporal, mcpbridge.Options{StateKey: key}, confirming(t))
	other := newFront(t, temporal, mcpbridge.Options{StateKey: key}, confirming(t))
	arguments := map[string]any{"name": "deploy", "arguments": map[string]any{"target": "prod"}}

	asked := decode[confirmation](t, f.send("tools/call", arguments))
	assert.Equal(t, "input_required", asked.ResultType)
	assert.Nil(t, asked.TaskID)
	assert.JSONEq(t, `{"method":"elicitation/create","params":{"mode":"form","message":"Really?","requestedSchema":{"type":"object","properties":{"why":{"type":"string"}},"required":["why"]}}}`,
		string(asked.InputRequests["confirm"]))
	retry := func(state, response string) map[string]any {
		params := maps.Clone(arguments)
		params["requestState"] = state
		if response != "" {
			params["inputResponses"] = map[string]json.RawMessage{"confirm": json.RawMessage(response)}
		}
		return params
	}
	const accept = `{"action":"accept","content":{"why":"it is time"}}`

	t.Run("declined", func(t *testing.T) {
		for _, action := range []string{"decline", "cancel"} {
			assertToolError(t, f.send("tools/call", retry(asked.RequestState, `{"action":"`+action+`"}`)), "was not confirmed ("+action+"); nothing was started")
		}
	})
	t.Run("without the answer it is asked again", func(t *testing.T) {
		again := decode[confirmation](t, f.send("tools/call", retry(asked.RequestState, "")))
		assert.Equal(t, "input_required", again.ResultType)
	})
	t.Run("answers that do not fit", func(t *testing.T) {
		for _, response := range []string{`{"action":"accept","content":{}}`, `{"action":"maybe"}`, `5`, `{"action":"accept","content":{"why":1}}`} {
			assertError(t, f.send("tools/call", retry(asked.RequestState, response)), http.StatusOK, -32602, "inputResponses.confirm")
		}
	})
	t.Run("altered or foreign state", func(t *testing.T) {
		assertError(t, f.send("tools/call", retry("x"+asked.RequestState, accept)), http.StatusOK, -32602, "not one of this server's")
		elsewhere := retry(asked.RequestState, accept)
		elsewhere["arguments"] = map[string]any{"target": "staging"}
		assertError(t, f.send("tools/call", elsewhere), http.StatusOK, -32602, "belongs to another call")
		stranger := newFront(t, temporal, mcpbridge.Options{}, confirming(t))
		assertError(t, stranger.send("tools/call", retry(asked.RequestState, accept)), http.StatusOK, -32602, "not one of this server's")
	})
	t.Run("accepted, on another front end, and repeated", func(t *testing.T) {
		created := decode[task](t, other.send("tools/call", retry(asked.RequestState, accept)))
		require.Equal(t, "task", created.ResultType)
		again := decode[task](t, f.send("tools/call", retry(asked.RequestState, accept)))
		assert.Equal(t, created.TaskID, again.TaskID, "a repeated retry starts nothing new")
		done := f.untilStatus(created.TaskID, "completed")
		assert.Contains(t, string(done.Result), `"target":"prod"`)
		assert.Contains(t, string(done.Result), `"approval":{"why":"it is time"}`)
	})
	t.Run("a client without forms cannot be asked", func(t *testing.T) {
		f := f
		f.capabilities = `{"elicitation":{"url":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
		answer := f.send("tools/call", arguments)
		assertError(t, answer, http.StatusBadRequest, -32021, "elicitation.form")
		assert.JSONEq(t, `{"requiredCapabilities":{"elicitation":{"form":{}}}}`, string(answer.Error.Data))
	})
}

func TestQuickResultComesInline(t *testing.T) {
	temporal := testenv.Client(t)
	newWorker(t, temporal, Sleep)
	f := newFront(t, temporal, mcpbridge.Options{}, tool(t, func(tool *catalog.Tool) {
		tool.Name, tool.InlineWait = "sleep", 2_000_000_000
	}, Sleep))
	var result struct{ ResultType, TaskID string }
	result = decode[struct{ ResultType, TaskID string }](t, f.call("sleep", `{"seconds":0}`))
	assert.Equal(t, "complete", result.ResultType)
	assert.Empty(t, result.TaskID)
	result = decode[struct{ ResultType, TaskID string }](t, f.call("sleep", `{"seconds":60}`))
	assert.Equal(t, "task", result.ResultType)
	decode[struct{}](t, f.send("tasks/cancel", map[string]any{"taskId": result.TaskID}))
}
