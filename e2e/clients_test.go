package e2e_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

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
	codeMethodNotFound    = -32601
	codeInvalidParams     = -32602
	codeInternalError     = -32603
	codeMissingCapability = -32021
)

// startServe starts taskbridge as it is deployed, front end and worker apart, with testdata/tools.yaml.
func startServe(t testing.TB) string {
	t.Helper()
	program, env := binary(t, "cmd/taskbridge"), temporalEnv(t)
	start(t, env, program, "worker", "--task-queue", "e2e").waitFor("polling task queue e2e")
	return start(t, env, program, "serve", "--catalog", "testdata/tools.yaml", "--listen", "127.0.0.1:0").endpoint()
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
func goClient(t testing.TB, endpoint, version string, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "taskbridge-e2e", Version: "1"}, options)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: endpoint},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	require.Equal(t, version, session.InitializeResult().ProtocolVersion)
	return session
}

// callGo calls a tool with the Go SDK.
func callGo(t testing.TB, session *mcp.ClientSession, name string, arguments map[string]any) result {
	t.Helper()
	answer, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
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
			session := goClient(t, endpoint, version, nil)
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
	session := goClient(t, endpoint, modernEra, &mcp.ClientOptions{
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

// connectTimeout, in milliseconds, is the Inspector's on a loaded machine.
const connectTimeout = "120000"

// inspectorStorage keeps the Inspector's files out of the user's home, and its secrets out of the keyring.
func inspectorStorage(t testing.TB) (dir string, env []string) {
	t.Helper()
	dir = scratchDir(t)
	return dir, []string{"MCP_STORAGE_DIR=" + dir, "MCP_INSPECTOR_SECRET_STORE=file"}
}

func TestInspectorCallsTools(t *testing.T) {
	endpoint := startServe(t)
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			_, env := inspectorStorage(t)
			inspect := func(args ...string) *process {
				return node(t, env, tool(t, "mcp-inspector"), append([]string{
					"--cli", endpoint, "--transport", "http", "--protocol-era", era, "--connect-timeout", connectTimeout}, args...)...)
			}
			list := inspect("--method", "tools/list")
			require.Zero(t, list.wait())
			tools := decode[struct {
				Tools []struct{ Name, Title string }
			}](t, list.stdout.String()).Tools
			assert.Contains(t, tools, struct{ Name, Title string }{"echo", "Echo"})

			call := inspect("--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=a b; echo c")
			require.Zero(t, call.wait())
			assert.Contains(t, decode[result](t, call.stdout.String()).text(), "a b; echo c")

			refused := inspect("--method", "tools/call", "--tool-name", "echo")
			assert.NotZero(t, refused.wait(), "an error result")
			assert.Contains(t, decode[result](t, refused.stdout.String()).text(), "text")
		})
	}
}

// TestInspectorAnswersATask runs a task with the Inspector's mcpdo, whose commands share a connection held by a daemon.
func TestInspectorAnswersATask(t *testing.T) {
	endpoint := startFixtures(t)
	storage, env := inspectorStorage(t)
	// mcpdo would start the daemon itself, but as one that outlives the test.
	daemon := filepath.Join(nodeModules(t), "@modelcontextprotocol", "inspector", "clients", "mcpdo", "build", "mcpdod.js")
	start(t, env, tool(t, "node"), daemon)
	mcpdo := func(args ...string) string {
		command := node(t, env, tool(t, "mcpdo"), append([]string{"--format", "json"}, args...)...)
		require.Zero(t, command.wait())
		return command.stdout.String()
	}
	require.Eventually(t, func() bool {
		ready, _ := filepath.Glob(filepath.Join(storage, "mcpdod.[st]o*")) // .sock and .token
		return len(ready) == 2
	}, patience, 10*time.Millisecond)

	mcpdo("connect", endpoint, "--transport", "http", "--era", "modern", "--connect-timeout", connectTimeout)
	pending := decode[struct {
		ElicitationPending struct{ ElicitationID, Message, Origin string }
	}](t, mcpdo("--connection", endpoint, "tools/call", "confirm_delete", "filename:=a.txt")).ElicitationPending
	assert.Equal(t, "Delete a.txt?", pending.Message)
	assert.Equal(t, "task-input-required", pending.Origin)
	answered := mcpdo("elicitation/respond", pending.ElicitationID, "confirm:=true")
	decode[result](t, answered).assertText(t, "a.txt is deleted")
}
