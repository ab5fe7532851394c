package signals_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/signals"
)

// TestWire holds the JSON that workflows in other languages rely on. A change here is a change of the contract.
func TestWire(t *testing.T) {
	at := time.Date(2026, 7, 28, 10, 30, 0, 500_000_000, time.UTC)
	ttl := int64(60_000)
	for name, test := range map[string]struct {
		payload any
		json    string
	}{
		"state": {
			signals.TaskState{Version: 1, StatusMessage: "testing", UpdatedAt: at, InputRequests: map[string]signals.InputRequest{
				"approve-1": {Method: signals.MethodElicit, Params: json.RawMessage(`{"mode":"form"}`)},
			}},
			`{"v":1,"statusMessage":"testing","inputRequests":{"approve-1":{"method":"elicitation/create","params":{"mode":"form"}}},"updatedAt":"2026-07-28T10:30:00.5Z"}`,
		},
		"state without anything": {
			signals.TaskState{Version: 1, UpdatedAt: at},
			`{"v":1,"updatedAt":"2026-07-28T10:30:00.5Z"}`,
		},
		"state with progress": {
			signals.TaskState{Version: 1, UpdatedAt: at, Progress: &signals.Progress{Done: 1.5, Total: 4}},
			`{"v":1,"progress":{"done":1.5,"total":4},"updatedAt":"2026-07-28T10:30:00.5Z"}`,
		},
		"state with progress towards an unknown total": {
			signals.TaskState{Version: 1, UpdatedAt: at, Progress: &signals.Progress{}},
			`{"v":1,"progress":{"done":0},"updatedAt":"2026-07-28T10:30:00.5Z"}`,
		},
		"input": {
			signals.Input{Responses: map[string]json.RawMessage{"approve-1": json.RawMessage(`{"action":"accept"}`)}},
			`{"responses":{"approve-1":{"action":"accept"}}}`,
		},
		"meta": {
			signals.Meta{Version: 1, Tool: "deploy", CreatedAt: at, RetentionMs: 1000, PollIntervalMs: 500, Result: "auto", Cancel: "request", Dialect: "x"},
			`{"v":1,"tool":"deploy","createdAt":"2026-07-28T10:30:00.5Z","retentionMs":1000,"pollIntervalMs":500,"result":"auto","cancel":"request","dialect":"x"}`,
		},
		"meta with a lifetime": {
			signals.Meta{Version: 1, Tool: "deploy", CreatedAt: at, TTLMs: &ttl, Dialect: "x"},
			`{"v":1,"tool":"deploy","createdAt":"2026-07-28T10:30:00.5Z","retentionMs":0,"ttlMs":60000,"pollIntervalMs":0,"dialect":"x"}`,
		},
		"heartbeat": {
			signals.Heartbeat{Version: 1, StatusMessage: "test (2/4) running 12s"},
			`{"v":1,"statusMessage":"test (2/4) running 12s"}`,
		},
		"tool result": {
			signals.ToolResult{Content: []json.RawMessage{signals.Text("hi")}, StructuredContent: json.RawMessage(`[1]`), IsError: true},
			`{"content":[{"text":"hi","type":"text"}],"structuredContent":[1],"isError":true}`,
		},
		"rpc error": {
			signals.RPCError{Code: -32603, Message: "broken", Data: json.RawMessage(`{"a":1}`)},
			`{"code":-32603,"message":"broken","data":{"a":1}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			encoded, err := json.Marshal(test.payload)
			require.NoError(t, err)
			assert.Equal(t, test.json, string(encoded))
		})
	}
}

// TestContractDocument keeps the names in docs/contract.md those of the code.
func TestContractDocument(t *testing.T) {
	document, err := os.ReadFile("../docs/contract.md")
	require.NoError(t, err)
	for _, name := range []string{
		signals.InputSignal, signals.StateMemo, signals.MetaMemo, signals.StateQuery, signals.RPCErrorType,
		signals.MethodElicit, signals.MethodSample, signals.MethodListRoots,
	} {
		assert.Truef(t, strings.Contains(string(document), name), "docs/contract.md does not mention %s", name)
	}
}

func TestTextEscapes(t *testing.T) {
	assert.JSONEq(t, `{"type":"text","text":"a \"b\" <c>\n"}`, string(signals.Text("a \"b\" <c>\n")))
	assert.JSONEq(t, `{"type":"text","text":""}`, string(signals.Text("")))
}
