package mcpbridge_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge"
	"taskbridge/mcpbridge/catalog"
)

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

func message(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":{%s,%s}}`, method, params, meta)
}

// TestBadInput sends what no good client sends: each gets a clear error, and nothing starts.
func TestBadInput(t *testing.T) {
	temporal := testenv.Client(t)
	f := newFront(t, temporal, mcpbridge.Options{}, tool(t, named("sleep"), Sleep))
	without := func(header, name string) func(http.Header) {
		return func(h http.Header) {
			if h.Del(header); name != "" {
				h.Set(header, name)
			}
		}
	}
	queue := t.Name()
	call := message("tools/call", `"name":"sleep","arguments":{"seconds":1}`)
	for _, test := range []struct {
		name, body   string
		method, tool string
		change       func(http.Header)
		status, code int
		message      string
	}{
		{name: "malformed JSON", body: `{"jsonrpc":`, status: 400, code: -32700, message: "parse error"},
		{name: "not JSON", body: `hello`, status: 400, code: -32700, message: "parse error"},
		{name: "nothing", body: ``, status: 400, code: -32700, message: "parse error"},
		{name: "batch", body: `[` + call + `]`, status: 400, code: -32600, message: "batches are not part of MCP"},
		{name: "scalar", body: `5`, status: 400, code: -32600, message: "must be a JSON object"},
		{name: "null id", body: `{"jsonrpc":"2.0","id":null,"method":"tools/list"}`, status: 400, code: -32600, message: "id must be"},
		{name: "params an array", body: `{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":[]}`, method: "tasks/get", status: 400, code: -32600, message: "params must be an object"},
		{name: "no params", body: `{"jsonrpc":"2.0","id":7,"method":"tasks/get"}`, method: "tasks/get", status: 400, code: -32602, message: "params._meta is missing"},
		{name: "no params of a call", body: `{"jsonrpc":"2.0","id":7,"method":"tools/call"}`, method: "tools/call", status: 400, code: -32602, message: "params._meta is missing"},
		{name: "no version", body: `{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"_meta":{}}}`, method: "tasks/get", status: 400, code: -32602, message: "no io.modelcontextprotocol/protocolVersion"},
		{name: "no capabilities", body: `{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, method: "tasks/get", status: 400, code: -32602, message: "clientCapabilities"},
		{name: "_meta a string", body: `{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"_meta":"x"}}`, method: "tasks/get", status: 400, code: -32602, message: "params/_meta has the wrong type: string"},
		{name: "capabilities a number", body: strings.Replace(call, `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, `5`, 1), method: "tools/call", tool: "sleep", status: 400, code: -32602, message: "wrong type: number"},
		{name: "unsupported version", body: strings.Replace(call, "2026-07-28", "2099-01-01", 1), method: "tools/call", tool: "sleep", change: without("Mcp-Protocol-Version", "2099-01-01"), status: 400, code: -32022, message: "2099-01-01"},
		{name: "version only in the header", body: strings.Replace(call, "2026-07-28", "2099-01-01", 1), method: "tools/call", tool: "sleep", status: 400, code: -32020, message: "MCP-Protocol-Version"},
		{name: "no version header", body: call, method: "tools/call", tool: "sleep", change: without("Mcp-Protocol-Version", ""), status: 400, code: -32020, message: "header MCP-Protocol-Version is missing"},
		{name: "no method header", body: call, method: "tools/call", tool: "sleep", change: without("Mcp-Method", ""), status: 400, code: -32020, message: "header Mcp-Method is missing"},
		{name: "wrong method header", body: call, method: "tasks/get", tool: "sleep", status: 400, code: -32020, message: `header Mcp-Method is "tasks/get" but method is "tools/call"`},
		{name: "method header in capitals", body: call, method: "TOOLS/CALL", tool: "sleep", status: 400, code: -32020},
		{name: "no name header", body: call, method: "tools/call", status: 400, code: -32020, message: "header Mcp-Name is missing"},
		{name: "wrong name header", body: call, method: "tools/call", tool: "other", status: 400, code: -32020, message: `header Mcp-Name is "other" but params.name is "sleep"`},
		{name: "broken base64 name", body: call, method: "tools/call", tool: "=?base64?c2x!?=", status: 400, code: -32020, message: "no plain ASCII nor valid"},
		{name: "name header in UTF-8", body: message("tools/call", `"name":"é"`), method: "tools/call", tool: "é", status: 400, code: -32020, message: "no plain ASCII"},
		{name: "no tool name", body: message("tools/call", `"arguments":{}`), method: "tools/call", tool: "sleep", status: 400, code: -32602, message: "params.name is missing"},
		{name: "two name headers", body: call, method: "tools/call", tool: "sleep", change: func(h http.Header) { h.Add("Mcp-Name", "sleep") }, status: 400, code: -32020},
		{name: "task ID in another header", body: message("tasks/get", `"taskId":"a"`), method: "tasks/get", tool: "b", status: 400, code: -32020, message: "params.taskId"},
		{name: "removed method", body: message("tasks/list", `"x":1`), method: "tasks/list", status: 404, code: -32601},
		{name: "removed method tasks/result", body: message("tasks/result", `"taskId":"a"`), method: "tasks/result", status: 404, code: -32601},
		{name: "initialize with modern metadata", body: message("initialize", `"x":1`), method: "initialize", status: 404, code: -32601},
		{name: "unknown method", body: message("no/such", `"x":1`), method: "no/such", status: 404, code: -32601},
		{name: "method in capitals", body: message("Tasks/Get", `"taskId":"a"`), method: "Tasks/Get", status: 404, code: -32601},
		{name: "no task ID", body: message("tasks/get", `"taskid":"a"`), method: "tasks/get", status: 200, code: -32602, message: "params.taskId is missing"},
		{name: "task ID a number", body: message("tasks/get", `"taskId":5`), method: "tasks/get", status: 400, code: -32602, message: "params/taskId has the wrong type: number"},
		{name: "unknown task", body: message("tasks/get", `"taskId":"nope"`), method: "tasks/get", tool: "nope", status: 200, code: -32602, message: "task not found"},
		{name: "empty task ID", body: message("tasks/get", `"taskId":""`), method: "tasks/get", change: without("Mcp-Name", " "), status: 200, code: -32602, message: "task not found"},
		{name: "long task ID", body: message("tasks/cancel", `"taskId":"`+strings.Repeat("x", 5000)+`"`), method: "tasks/cancel", tool: strings.Repeat("x", 5000), status: 200, code: -32602, message: "task not found"},
		{name: "unknown tool", body: message("tools/call", `"name":"nope","arguments":{}`), method: "tools/call", tool: "nope", status: 400, code: -32602, message: `unknown tool "nope"`},
		{name: "tool name a number", body: message("tools/call", `"name":5`), method: "tools/call", tool: "5", status: 400, code: -32602, message: "params/name has the wrong type"},
		{name: "no responses", body: message("tasks/update", `"taskId":"a"`), method: "tasks/update", tool: "a", status: 200, code: -32602, message: "params.inputResponses must be an object"},
		{name: "duplicate member", body: strings.Replace(call, `"name":"sleep"`, `"name":"sleep","name":"sleep"`, 1), method: "tools/call", tool: "sleep", status: 400, code: -32700, message: "duplicate"},
		{name: "response", body: `{"jsonrpc":"2.0","id":7,"result":{}}`, status: 400, code: -32600, message: "responses are not accepted"},
		{name: "wrong content type", body: call, method: "tools/call", tool: "sleep", change: without("Content-Type", "text/plain"), status: 415, code: -32600, message: "Content-Type must be application/json"},
		{name: "too large", body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":"` + strings.Repeat("x", 5<<20) + `"}}`, method: "tools/call", status: 413, code: -32600, message: "larger than 4194304 bytes"},
		{name: "foreign origin", body: call, method: "tools/call", tool: "sleep", change: without("Origin", "https://evil.example"), status: 403, code: -32600, message: "Origin"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := headers(test.method, test.tool)
			if test.change != nil {
				test.change(h)
			}
			f := f
			f.t = t
			answer := f.post(test.body, h)
			assertError(t, answer, test.status, test.code, test.message)
			if strings.Contains(test.body, `"id":7`) && test.code != -32700 && test.status != 413 && test.status != 415 && test.status != 403 && test.name != "batch" {
				assert.Equal(t, "7", string(answer.ID), "the ID goes back as sent: %s", answer.Raw)
			}
		})
	}
	for name, test := range map[string]struct{ arguments, message string }{
		"missing argument":   {`{}`, "seconds"},
		"wrong type":         {`{"seconds":"x"}`, "seconds"},
		"unknown argument":   {`{"seconds":1,"minutes":1}`, "minutes"},
		"arguments an array": {`[1]`, "object"},
		"arguments a string": {`"x"`, "object"},
		"a million digits":   {`{"seconds":` + strings.Repeat("1", 1_000_000) + `}`, "too many digits"},
		"a huge exponent":    {`{"seconds":1e999999999}`, "exponent"},
		"many unknown names": {`{` + manyMembers(5000) + `}`, "… and "},
	} {
		t.Run(name, func(t *testing.T) {
			f := f
			f.t = t
			assertToolError(t, f.call("sleep", test.arguments), test.message)
		})
	}
	t.Run("3 MiB of arguments", func(t *testing.T) {
		f := newFront(t, temporal, mcpbridge.Options{}, tool(t, func(tool *catalog.Tool) {
			tool.Name, tool.TaskQueue, tool.InputSchema = "echo", queue, json.RawMessage(`{"type":"object","additionalProperties":true}`)
		}, Echo))
		assertToolError(t, f.call("echo", `{"data":"`+strings.Repeat("x", 3<<20)+`"}`), "Temporal takes at most 2097152")
	})
	count, err := temporal.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: fmt.Sprintf("TaskQueue = %q", queue)})
	require.NoError(t, err)
	assert.Zero(t, count.GetCount(), "nothing was started")
}

func TestTasksNeedTheExtension(t *testing.T) {
	temporal := testenv.Client(t)
	newWorker(t, temporal, Ask, Sleep)
	f := newFront(t, temporal, mcpbridge.Options{},
		tool(t, func(tool *catalog.Tool) { tool.Name, tool.Task = "required", catalog.TaskRequired }, Sleep),
		tool(t, named("ask"), Ask),
		tool(t, named("sleep"), Sleep))
	f.capabilities = `{}`
	const required = `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		answer := f.send(method, map[string]any{"taskId": "x", "inputResponses": map[string]any{}})
		assertError(t, answer, http.StatusBadRequest, -32021, "extensions.io.modelcontextprotocol/tasks")
		assert.JSONEq(t, required, string(answer.Error.Data))
	}
	answer := f.call("required", `{"seconds":0}`)
	assertError(t, answer, http.StatusBadRequest, -32021, "extensions.io.modelcontextprotocol/tasks")
	assert.JSONEq(t, required, string(answer.Error.Data))

	assert.JSONEq(t, `{"resultType":"complete","content":[{"type":"text","text":"slept"}],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"taskbridge","version":"`+mcpbridge.Version()+`"}}}`,
		string(f.call("sleep", `{"seconds":0.1}`).Result), "the call waits")
	assertToolError(t, f.call("ask", `{}`), "this client has not declared it can give (capability elicitation.form)")
}

func TestIDsComeBackAsSent(t *testing.T) {
	f := newFront(t, testenv.Client(t), mcpbridge.Options{})
	for _, id := range []string{`0`, `-1`, `"1"`, `"a\u0000\u00e9\"/"`, `9007199254740993`, `123456789012345678901234567890`} {
		body := strings.Replace(message("tasks/get", `"taskId":"x"`), `"id":7`, `"id":`+id, 1)
		assert.Contains(t, f.post(body, headers("tasks/get", "x")).Raw, `"id":`+id+`,`)
	}
	for _, method := range []string{"tools/list", "server/discover"} {
		for _, id := range []string{`0`, `-1`, `"1"`, `9007199254740992`, `-9007199254740992`} {
			body := strings.Replace(message(method, `"x":1`), `"id":7`, `"id":`+id, 1)
			answer := f.post(body, headers(method, ""))
			assert.Nil(t, answer.Error, answer.Raw)
			assert.Equal(t, id, string(answer.ID), answer.Raw)
		}
		for _, id := range []string{`9007199254740993`, `-123456789012345678901234567890`} {
			body := strings.Replace(message(method, `"x":1`), `"id":7`, `"id":`+id, 1)
			answer := f.post(body, headers(method, ""))
			assertError(t, answer, http.StatusBadRequest, -32600, "outside ±2^53")
			assert.Equal(t, id, string(answer.ID))
		}
	}
}

func manyMembers(n int) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(`"x%d":0`, i)
	}
	return strings.Join(members, ",")
}

func TestToolsAreListedInPages(t *testing.T) {
	var tools []func(*mcpbridge.Bridge) error
	for _, name := range []string{"e", "b", "d", "a", "c"} {
		tools = append(tools, tool(t, named(name), Sleep))
	}
	f := newFront(t, testenv.Client(t), mcpbridge.Options{ServerOptions: &mcp.ServerOptions{PageSize: 2}}, tools...)
	var names []string
	for cursor := ""; ; {
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		answer := f.send("tools/list", params)
		page := decode[struct {
			Tools      []struct{ Name string }
			NextCursor string
		}](t, answer)
		assert.LessOrEqual(t, len(page.Tools), 2)
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	assert.Equal(t, []string{"a", "b", "c", "d", "e"}, names)
	assertError(t, f.send("tools/list", map[string]any{"cursor": "nonsense"}), http.StatusBadRequest, -32602, "")
}

func TestEncodedNameHeader(t *testing.T) {
	f := newFront(t, testenv.Client(t), mcpbridge.Options{})
	const id = "naïve ☃"
	answer := f.post(message("tasks/get", `"taskId":"`+id+`"`), headers("tasks/get", "=?base64?bmHDr3ZlIOKYgw==?="))
	assertError(t, answer, http.StatusOK, -32602, "task not found")
}

func TestNotificationsAreAccepted(t *testing.T) {
	f := newFront(t, testenv.Client(t), mcpbridge.Options{})
	answer := f.post(`{"jsonrpc":"2.0","method":"notifications/anything"}`, headers("notifications/anything", ""))
	assert.Equal(t, http.StatusAccepted, answer.Status)
	assert.Empty(t, answer.Raw)
}

func TestForeignHostIsRefused(t *testing.T) {
	f := newFront(t, testenv.Client(t), mcpbridge.Options{})
	request, err := http.NewRequest(http.MethodPost, f.url+"/mcp", strings.NewReader(message("tools/list", `"x":1`)))
	require.NoError(t, err)
	request.Header, request.Host = headers("tools/list", ""), "evil.example.com"
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	assert.Equal(t, http.StatusForbidden, answer.StatusCode)
	require.NoError(t, answer.Body.Close())
}

func TestAllowedOrigin(t *testing.T) {
	f := newFront(t, testenv.Client(t), mcpbridge.Options{AllowedOrigins: []string{"https://app.example.com"}})
	for origin, status := range map[string]int{
		"https://app.example.com": http.StatusOK, f.url: http.StatusOK, "https://other.example.com": http.StatusForbidden, "null": http.StatusForbidden,
	} {
		h := headers("server/discover", "")
		h.Set("Origin", origin)
		assert.Equal(t, status, f.post(message("server/discover", `"x":1`), h).Status, origin)
	}
}

func TestStreamsAndSessionsOfOlderErasAreNotOpenedByGet(t *testing.T) {
	f := newFront(t, testenv.Client(t), mcpbridge.Options{})
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPut} {
		request, err := http.NewRequest(method, f.url+"/mcp", nil)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		assert.Equal(t, http.StatusMethodNotAllowed, answer.StatusCode, method)
		assert.Equal(t, "POST", answer.Header.Get("Allow"))
		require.NoError(t, answer.Body.Close())
	}
}

func TestHealth(t *testing.T) {
	f := newFront(t, testenv.Client(t), mcpbridge.Options{})
	for _, path := range []string{"/healthz", "/readyz"} {
		answer, err := http.Get(f.url + path)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		assert.Equal(t, http.StatusOK, answer.StatusCode)
		assert.Equal(t, "ok\n", string(body))
	}
}

func TestParamHeaders(t *testing.T) {
	temporal := testenv.Client(t)
	newWorker(t, temporal, Echo)
	f := newFront(t, temporal, mcpbridge.Options{}, tool(t, func(tool *catalog.Tool) {
		tool.Name, tool.Task = "echo", catalog.TaskNever
		tool.InputSchema = json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"count":{"type":"integer","x-mcp-header":"Count"}}}`)
	}, Echo))
	body := func(arguments string) string { return message("tools/call", `"name":"echo","arguments":`+arguments) }
	for _, test := range []struct {
		arguments, region, count string
		ok                       bool
	}{
		{`{}`, "", "", true},
		{`{"region":"us-west1"}`, "us-west1", "", true},
		{`{"region":"Hallo, Welt ☃"}`, "=?base64?SGFsbG8sIFdlbHQg4piD?=", "", true},
		{`{"count":42}`, "", "42.0", true},
		{`{"region":"us-west1"}`, "", "", false},
		{`{"region":"us-west1"}`, "eu", "", false},
		{`{"count":42}`, "", "43", false},
		{`{}`, "us-west1", "", false},
		{`{"region":null}`, "x", "", false},
		{`{"region":"Zürich"}`, "Zürich", "", false},
		{`{"count":42}`, "", "42/1", false},
	} {
		h := headers("tools/call", "echo")
		for name, value := range map[string]string{"Mcp-Param-Region": test.region, "Mcp-Param-Count": test.count} {
			if value != "" {
				h.Set(name, value)
			}
		}
		answer := f.post(body(test.arguments), h)
		if test.ok {
			assert.Nil(t, answer.Error, answer.Raw)
		} else {
			assertError(t, answer, http.StatusBadRequest, -32020, "Mcp-Param-")
		}
	}
}
