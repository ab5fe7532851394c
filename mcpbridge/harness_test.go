package mcpbridge_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"taskbridge/mcpbridge"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/workflows"
)

// front is a front end over real HTTP, seen from a client.
type front struct {
	t   testing.TB
	url string
	// capabilities are what the client declares.
	capabilities string
}

const withTasks = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

func newFront(t testing.TB, temporal client.Client, o mcpbridge.Options, register ...func(*mcpbridge.Bridge) error) front {
	t.Helper()
	server := httptest.NewServer(newBridge(t, temporal, o, register...).Handler())
	t.Cleanup(server.Close)
	return front{t: t, url: server.URL, capabilities: withTasks}
}

func newBridge(t testing.TB, temporal client.Client, o mcpbridge.Options, register ...func(*mcpbridge.Bridge) error) *mcpbridge.Bridge {
	t.Helper()
	o.Temporal = temporal
	o.Logger = slog.New(slog.DiscardHandler)
	bridge, err := mcpbridge.New(o)
	require.NoError(t, err)
	require.NoError(t, bridge.Ready(t.Context()))
	for _, add := range register {
		require.NoError(t, add(bridge))
	}
	return bridge
}

// tool offers a workflow under a name, on the task queue of the test.
func tool[In, Out any](t testing.TB, change func(*catalog.Tool), run func(workflow.Context, In) (Out, error)) func(*mcpbridge.Bridge) error {
	return func(b *mcpbridge.Bridge) error {
		entry := catalog.Tool{TaskQueue: t.Name(), Description: "test"}
		change(&entry)
		return mcpbridge.AddTool(b, entry, run)
	}
}

func named(name string) func(*catalog.Tool) { return func(tool *catalog.Tool) { tool.Name = name } }

// newWorker runs workflows on the task queue of the test.
func newWorker(t testing.TB, temporal client.Client, run ...any) worker.Worker {
	t.Helper()
	w := worker.New(temporal, t.Name(), workflows.WorkerOptions())
	for _, workflow := range run {
		w.RegisterWorkflow(workflow)
	}
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return w
}

// response is an HTTP response with a JSON-RPC message in it.
type response struct {
	Status int             `json:"-"`
	Raw    string          `json:"-"`
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// post sends a body as it is.
func (f front) post(body string, header http.Header) response {
	f.t.Helper()
	request, err := http.NewRequest(http.MethodPost, f.url+"/mcp", bytes.NewBufferString(body))
	require.NoError(f.t, err)
	request.Header = header
	answer, err := http.DefaultClient.Do(request)
	require.NoError(f.t, err)
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	require.NoError(f.t, err)
	if _, data, ok := strings.Cut(string(raw), "data: "); ok && strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		raw = []byte(strings.TrimSpace(data)) // the base protocol answers on a stream, here with one message
	}
	result := response{Status: answer.StatusCode, Raw: string(raw)}
	if len(raw) > 0 && raw[0] == '{' {
		require.NoError(f.t, json.Unmarshal(raw, &result), result.Raw)
	}
	return result
}

func headers(method, name string) http.Header {
	h := http.Header{
		"Content-Type":         {"application/json"},
		"Accept":               {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"},
		"Mcp-Method":           {method},
	}
	if name != "" {
		h.Set("Mcp-Name", name)
	}
	return h
}

// send sends a request with the metadata and headers it needs.
func (f front) send(method string, params map[string]any) response {
	f.t.Helper()
	params = maps.Clone(params)
	if params == nil {
		params = map[string]any{}
	}
	params["_meta"] = map[string]any{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities": json.RawMessage(f.capabilities),
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	require.NoError(f.t, err)
	name := ""
	for _, member := range []string{"name", "taskId"} {
		if value, ok := params[member].(string); ok {
			name = value
		}
	}
	return f.post(string(body), headers(method, name))
}

// task is a task on the wire.
type task struct {
	ResultType     string                     `json:"resultType"`
	TaskID         string                     `json:"taskId"`
	Status         string                     `json:"status"`
	StatusMessage  string                     `json:"statusMessage"`
	CreatedAt      time.Time                  `json:"createdAt"`
	LastUpdatedAt  time.Time                  `json:"lastUpdatedAt"`
	TTLMs          *int64                     `json:"ttlMs"`
	PollIntervalMs int64                      `json:"pollIntervalMs"`
	InputRequests  map[string]json.RawMessage `json:"inputRequests"`
	Result         json.RawMessage            `json:"result"`
	Error          json.RawMessage            `json:"error"`
}

func (f front) call(tool, arguments string) response {
	f.t.Helper()
	return f.send("tools/call", map[string]any{"name": tool, "arguments": json.RawMessage(arguments)})
}

func (f front) create(tool, arguments string) task {
	f.t.Helper()
	created := decode[task](f.t, f.call(tool, arguments))
	require.Equal(f.t, "task", created.ResultType)
	return created
}

func (f front) get(id string) task {
	f.t.Helper()
	return decode[task](f.t, f.send("tasks/get", map[string]any{"taskId": id}))
}

func (f front) update(id, responses string) response {
	f.t.Helper()
	return f.send("tasks/update", map[string]any{"taskId": id, "inputResponses": json.RawMessage(responses)})
}

// until polls a task until it is as wanted.
func (f front) until(id string, wanted func(task) bool) task {
	f.t.Helper()
	var last task
	require.Eventually(f.t, func() bool {
		last = f.get(id)
		return wanted(last)
	}, 20*time.Second, 20*time.Millisecond, "task is %+v", &last)
	return last
}

func (f front) untilStatus(id, status string) task {
	f.t.Helper()
	return f.until(id, func(now task) bool { return now.Status == status })
}

func decode[T any](t testing.TB, r response) T {
	t.Helper()
	require.Nil(t, r.Error, "%s", r.Raw)
	require.Equal(t, http.StatusOK, r.Status, r.Raw)
	var result T
	require.NoError(t, json.Unmarshal(r.Result, &result), r.Raw)
	return result
}

func assertError(t testing.TB, r response, status, code int, message string) {
	t.Helper()
	assert.Equal(t, status, r.Status, r.Raw)
	if assert.NotNil(t, r.Error, r.Raw) {
		assert.Equal(t, code, r.Error.Code, r.Raw)
		assert.Contains(t, r.Error.Message, message)
	}
}

// assertToolError asserts a tool result that says that the tool failed and why.
func assertToolError(t testing.TB, r response, text string) {
	t.Helper()
	result := decode[struct {
		ResultType string
		IsError    bool
		Content    []struct{ Type, Text string }
	}](t, r)
	assert.Equal(t, "complete", result.ResultType)
	assert.True(t, result.IsError, r.Raw)
	if assert.NotEmpty(t, result.Content, r.Raw) {
		assert.Contains(t, result.Content[0].Text, text)
	}
}
