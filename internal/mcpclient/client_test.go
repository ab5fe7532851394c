package mcpclient

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEncodeHeader(t *testing.T) {
	for value, want := range map[string]string{
		"deploy":          "deploy",
		"two words":       "two words",
		" padded ":        "=?base64?IHBhZGRlZCA=?=",
		"größe":           "=?base64?Z3LDtsOfZQ==?=",
		"line\nbreak":     "=?base64?bGluZQpicmVhaw==?=",
		"=?base64?YQ==?=": "=?base64?PT9iYXNlNjQ/WVE9PT89?=",
	} {
		assert.Equal(t, want, encodeHeader(value), value)
	}
}

func TestReadStream(t *testing.T) {
	const response = `{"jsonrpc":"2.0","id":7,"result":{"a":1}}`
	for name, test := range map[string]struct{ stream, err string }{
		"plain":                     {"data: " + response + "\n\n", ""},
		"CRLF, comments and names":  {": hello\r\nevent: message\r\nid: 3\r\ndata: " + response + "\r\n\r\n", ""},
		"after others":              {"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\ndata: {\"id\":6,\"result\":{}}\n\ndata:" + response + "\n\n", ""},
		"in several lines":          {"data: {\"jsonrpc\":\"2.0\",\"id\":7,\ndata: \"result\":{\"a\":1}}\n\n", ""},
		"after an event of no data": {"event: ping\n\ndata:\n\ndata: " + response + "\n\n", ""},
		"without an end":            {"data: " + response, ""},
		"nothing":                   {": hello\n\n", "the server closed the stream before it answered"},
		"broken":                    {"data: {\n\n", "an event of the stream cannot be read: unexpected end of JSON input"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := readStream(strings.NewReader(test.stream), "7", func(string) {})
			if test.err != "" {
				require.EqualError(t, err, test.err)
				return
			}
			require.NoError(t, err)
			assert.JSONEq(t, `{"a":1}`, string(m.Result))
		})
	}
}

func TestOutcomes(t *testing.T) {
	result, err := decodeOutcome(json.RawMessage(`{"content":[{"type":"text","text":"a"}],"isError":true}`))
	require.NoError(t, err)
	assert.True(t, result.Result.IsError)
	assert.Nil(t, result.Task)

	task, err := decodeOutcome(json.RawMessage(`{"resultType":"task","taskId":"id","status":"working","createdAt":"2026-01-02T03:04:05.000Z","pollIntervalMs":500}`))
	require.NoError(t, err)
	assert.Equal(t, "id", task.Task.ID)
	assert.False(t, task.Task.Status.Terminal())

	questions, err := decodeOutcome(json.RawMessage(`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}},"requestState":""}`))
	require.NoError(t, err)
	assert.Contains(t, questions.Questions.InputRequests, "a")
	require.NotNil(t, questions.Questions.RequestState, "an empty state must come back too")

	_, err = decodeOutcome(json.RawMessage(`{"resultType":"dream"}`))
	require.EqualError(t, err, `tools/call: the server sent a result of type "dream", but this client knows complete, task and input_required only`)
}

func TestTasksMustHaveWhatTheirStatusPromises(t *testing.T) {
	for raw, ok := range map[string]bool{
		`{"taskId":"id","status":"working"}`:                                 true,
		`{"taskId":"id","status":"completed","result":{"content":[]}}`:       true,
		`{"taskId":"id","status":"completed"}`:                               false,
		`{"taskId":"id","status":"failed","error":{"code":1,"message":"m"}}`: true,
		`{"taskId":"id","status":"failed"}`:                                  false,
	} {
		_, err := decodeTask(json.RawMessage(raw))
		assert.Equal(t, ok, err == nil, raw)
	}
}

// sdkServer is a server of the official SDK. It has no tasks, but the base protocol.
func sdkServer(t *testing.T) *Client {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{PageSize: 1})
	type person struct {
		Name string `json:"name"`
	}
	greet := func(who string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + who}}}
	}
	for _, name := range []string{"greet", "part"} {
		mcp.AddTool(server, &mcp.Tool{Name: name}, func(_ context.Context, _ *mcp.CallToolRequest, who person) (*mcp.CallToolResult, any, error) {
			return greet(who.Name), nil, nil
		})
	}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return New(web.URL, web.Client())
}

func TestToolsOfAnSDKServer(t *testing.T) {
	tools, err := sdkServer(t).Tools(t.Context())
	require.NoError(t, err)
	require.Len(t, tools, 2, "both pages")
	assert.Equal(t, "greet", tools[0].Name)
	assert.Contains(t, string(tools[0].Raw), `"name":"greet"`)
}

func TestCallsOfAnSDKServer(t *testing.T) {
	client := sdkServer(t)
	outcome, err := client.Call(t.Context(), "greet", json.RawMessage(`{"name":"Ada"}`), nil)
	require.NoError(t, err)
	require.NotNil(t, outcome.Result)
	assert.JSONEq(t, `{"type":"text","text":"Hello, Ada"}`, string(outcome.Result.Content[0]))
	_, err = client.Call(t.Context(), "nope", json.RawMessage(`{}`), nil)
	var refused *Error
	require.ErrorAs(t, err, &refused)
	assert.EqualValues(t, -32602, refused.Code)
}

func TestNobodyAnswers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	endpoint := "http://" + listener.Addr().String() + "/mcp"
	require.NoError(t, listener.Close())
	_, err = New(endpoint, http.DefaultClient).Tools(t.Context())
	require.EqualError(t, err, "no MCP server answers at "+endpoint+`: start one with "taskbridge dev", or name another with --url`)
}

func TestSomethingElseAnswers(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	_, err := New(web.URL, web.Client()).Tools(t.Context())
	require.EqualError(t, err, "tools/list: "+web.URL+` answers, but not as an MCP server: 404 Not Found: "404 page not found"; the path of an MCP endpoint is usually /mcp`)
}
