package e2e_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	modernEra = "2026-07-28"
	legacyEra = "2025-11-25"
)

// JSON-RPC error codes, of JSON-RPC 2.0 itself and of MCP 2026-07-28.
const (
	codeParseError        = -32700
	codeInvalidRequest    = -32600
	codeMethodNotFound    = -32601
	codeInvalidParams     = -32602
	codeInternalError     = -32603
	codeMissingCapability = -32021
)

const toolsCatalog = "testdata/tools.yaml"

// startServe starts taskbridge as it is deployed, front end and worker apart, with testdata/tools.yaml.
func startServe(t testing.TB) string {
	t.Helper()
	startToolsWorker(t)
	return start(t, temporalEnv(t), binary(t, "cmd/taskbridge"), "serve", "--catalog", toolsCatalog, "--listen", "127.0.0.1:0").endpoint()
}

// startToolsWorker starts the worker of testdata/tools.yaml.
func startToolsWorker(t testing.TB) {
	t.Helper()
	start(t, temporalEnv(t), binary(t, "cmd/taskbridge"), "worker", "--task-queue", "e2e").waitFor("polling task queue e2e")
}

// frontEnd is how a client reaches the tools of testdata/tools.yaml: an endpoint that serves, or a command with its
// environment that a client starts to talk to it over stdin and stdout.
type frontEnd struct {
	target []string
	env    []string
}

func (f frontEnd) overStdio() bool { return len(f.target) > 1 }

// frontEnds are one of each kind, by its name.
func frontEnds(t testing.TB) map[string]frontEnd {
	t.Helper()
	return map[string]frontEnd{
		"http": {target: []string{startServe(t)}},
		"stdio": {
			target: []string{binary(t, "cmd/taskbridge"), "stdio"},
			env:    append(temporalEnv(t), "TASKBRIDGE_CATALOG="+toolsCatalog),
		},
	}
}

// result is a CallToolResult, or the error of a call, as a client shows it.
type result struct {
	Content []struct {
		Text string `json:"text"`
	} `json:"content"`
	IsError bool `json:"isError"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func (r result) text() string {
	text := ""
	for _, block := range r.Content {
		text += block.Text
	}
	return text
}

// assertText asserts a result of a tool that worked.
func (r result) assertText(t testing.TB, want string) {
	t.Helper()
	assert.Nil(t, r.Error)
	assert.False(t, r.IsError)
	assert.Equal(t, want, r.text())
}

func (r result) assertError(t testing.TB, code int, message string) {
	t.Helper()
	if assert.NotNil(t, r.Error) {
		assert.Equal(t, code, r.Error.Code)
		assert.Contains(t, r.Error.Message, message)
	}
}

func decode[T any](t testing.TB, text string) T {
	t.Helper()
	var value T
	require.NoError(t, json.Unmarshal([]byte(text), &value), text)
	return value
}

// goClient connects the official Go SDK's client.
func goClient(t testing.TB, transport mcp.Transport, version string, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "taskbridge-e2e", Version: "1"}, options)
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, session.Close()) })
	require.Equal(t, version, session.InitializeResult().ProtocolVersion)
	return session
}

func overHTTP(endpoint string) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: endpoint}
}

// callGo calls a tool with the Go SDK.
func callGo(t testing.TB, session *mcp.ClientSession, name string, arguments map[string]any) result {
	t.Helper()
	return callGoWith(t, session, &mcp.CallToolParams{Name: name, Arguments: arguments})
}

func callGoWith(t testing.TB, session *mcp.ClientSession, params *mcp.CallToolParams) result {
	t.Helper()
	answer, err := session.CallTool(t.Context(), params)
	var refused *jsonrpc.Error
	if err != nil {
		require.ErrorAs(t, err, &refused)
		encoded, err := json.Marshal(map[string]any{"error": refused})
		require.NoError(t, err)
		return decode[result](t, string(encoded))
	}
	encoded, err := json.Marshal(answer)
	require.NoError(t, err)
	return decode[result](t, string(encoded))
}

func TestGoSDKCallsToolsWithoutTasks(t *testing.T) {
	endpoint := startFixtures(t)
	for version, needsTasks := range map[string]int{modernEra: codeMissingCapability, legacyEra: codeMethodNotFound} {
		t.Run(version, func(t *testing.T) {
			session := goClient(t, overHTTP(endpoint), version, nil)
			call := func(name string, arguments map[string]any) result { return callGo(t, session, name, arguments) }

			tools, err := session.ListTools(t.Context(), nil)
			require.NoError(t, err)
			var names []string
			for _, tool := range tools.Tools {
				names = append(names, tool.Name)
			}
			assert.Subset(t, names, []string{"greet", "slow_compute", "confirm_delete"})

			call("greet", map[string]any{"name": "Ada"}).assertText(t, "Hello, Ada!")
			call("slow_compute", map[string]any{"seconds": 0.2, "label": "primes"}).assertText(t, "computed primes for 0.2 seconds")
			call("protocol_error_job", nil).assertError(t, codeInternalError, "the job broke the protocol")
			call("failing_job", nil).assertError(t, needsTasks, "")
			call("nope", nil).assertError(t, codeInvalidParams, "nope")
			refused := call("greet", map[string]any{"name": 7})
			assert.True(t, refused.IsError)
			assert.Contains(t, refused.text(), "name: must be a string")
		})
	}
}

func TestGoSDKAnswersQuestionsBeforeTheStart(t *testing.T) {
	endpoint := startServe(t)
	var questions []string
	session := goClient(t, overHTTP(endpoint), modernEra, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			questions = append(questions, request.Params.Message)
			if len(questions) == 1 {
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"target": "staging"}}, nil
			}
			return &mcp.ElicitResult{Action: "decline"}, nil
		},
	})

	deployed := callGo(t, session, "deploy", nil)
	assert.False(t, deployed.IsError)
	assert.Contains(t, deployed.text(), `{"target":"staging"}`)
	declined := callGo(t, session, "deploy", nil)
	assert.True(t, declined.IsError)
	assert.Contains(t, declined.text(), "nothing was started")
	assert.Equal(t, []string{"Deploy where?", "Deploy where?"}, questions)
}

func TestTypeScriptSDKCallsToolsWithoutTasks(t *testing.T) {
	endpoint := startFixtures(t)
	for version, protocol := range map[string]string{"v1": legacyEra, "v2": modernEra} {
		t.Run(version, func(t *testing.T) {
			script := node(t, nil, "typescript_sdk.mjs", version, endpoint)
			require.Zero(t, script.wait())
			seen := decode[struct {
				Server, Protocol                                                string
				Tools                                                           []string
				Greeting, Computation, ProtocolError, BadArguments, UnknownTool result
			}](t, script.stdout.String())

			assert.Equal(t, "taskbridge", seen.Server)
			assert.Equal(t, protocol, seen.Protocol)
			assert.Subset(t, seen.Tools, []string{"greet", "slow_compute", "confirm_delete"})
			seen.Greeting.assertText(t, "Hello, Ada!")
			seen.Computation.assertText(t, "computed primes for 0.2 seconds")
			seen.ProtocolError.assertError(t, codeInternalError, "the job broke the protocol")
			seen.UnknownTool.assertError(t, codeInvalidParams, "nope")
			assert.True(t, seen.BadArguments.IsError)
			assert.Contains(t, seen.BadArguments.text(), "name: must be a string")
		})
	}
}

func TestTypeScriptTasksClientRunsTasks(t *testing.T) {
	script := node(t, nil, "typescript_tasks.mjs", startFixtures(t))
	require.Zero(t, script.wait())
	type execution struct {
		Kind, Status string
		Result       result
		Error        json.RawMessage
		Questions    []string
	}
	seen := decode[map[string]execution](t, script.stdout.String())

	for name, want := range map[string]struct {
		kind, status string
		text         string
		isError      bool
		err          string
		questions    []string
	}{
		"synchronous": {kind: "immediate", status: "completed", text: "Hello, Ada!"},
		"completed":   {kind: "task", status: "completed", text: "computed primes for 0.2 seconds"},
		"toolFailed":  {kind: "task", status: "completed", text: "the job failed", isError: true},
		"failed": {kind: "task", status: "failed",
			err: `{"code":-32603,"message":"the job broke the protocol","data":{"job":"protocol_error_job"}}`},
		"cancelled":   {kind: "task", status: "cancelled"},
		"asked":       {kind: "task", status: "completed", text: "a.txt is deleted", questions: []string{"task: Delete a.txt?"}},
		"askedTwice":  {kind: "task", status: "completed", text: "Ada says true", questions: []string{"task: Go on?", "task: What is your name?"}},
		"askedBefore": {kind: "task", status: "completed", text: "Hello, Ada!", questions: []string{"request: What is your name?"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := seen[name]
			assert.Equal(t, want.kind, got.Kind)
			assert.Equal(t, want.status, got.Status)
			if want.err == "" {
				assert.Empty(t, string(got.Error))
			} else {
				assert.JSONEq(t, want.err, string(got.Error))
			}
			assert.Equal(t, want.text, got.Result.text())
			assert.Equal(t, want.isError, got.Result.IsError)
			assert.ElementsMatch(t, want.questions, got.Questions)
		})
	}
}
