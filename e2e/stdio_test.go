package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"taskbridge/internal/procgroup"
	"taskbridge/internal/testenv"
)

// message is a JSON-RPC message as it came.
type message struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// pipe is `taskbridge stdio` as a process.
type pipe struct {
	*process
	stdin io.WriteCloser
}

// startPipe starts `taskbridge stdio`. What it finds in its environment is env.
func startPipe(t testing.TB, env ...string) pipe {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(binary(t, "cmd/taskbridge"), "stdio")}
	p.cmd.Env = append(environment(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	stdin, err := p.cmd.StdinPipe()
	require.NoError(t, err)
	p.group, err = procgroup.Start(p.cmd)
	require.NoError(t, err)
	t.Cleanup(p.finish)
	return pipe{p, stdin}
}

// startToolsPipe starts one with testdata/tools.yaml.
func startToolsPipe(t testing.TB) pipe {
	t.Helper()
	return startPipe(t, append(temporalEnv(t), "TASKBRIDGE_CATALOG="+toolsCatalog)...)
}

// send writes lines.
func (p pipe) send(lines ...string) {
	p.t.Helper()
	_, err := io.WriteString(p.stdin, strings.Join(lines, "\n")+"\n")
	require.NoError(p.t, err)
}

// end closes stdin and returns the exit status.
func (p pipe) end() int {
	p.t.Helper()
	require.NoError(p.t, p.stdin.Close())
	return p.wait()
}

// messages are all that came so far. That each line is a message, and nothing else comes, is asserted.
func (p pipe) messages() []message {
	p.t.Helper()
	var messages []message
	for line := range strings.Lines(p.stdout.lines()) {
		m := decode[message](p.t, line)
		require.Equal(p.t, "2.0", m.JSONRPC, line)
		messages = append(messages, m)
	}
	return messages
}

// until waits for a message.
func (p pipe) until(what string, wanted func(message) bool) message {
	p.t.Helper()
	var found message
	require.Eventually(p.t, func() bool {
		for _, m := range p.messages() {
			if wanted(m) {
				found = m
				return true
			}
		}
		return false
	}, patience, 10*time.Millisecond, "%s does not come", what)
	return found
}

// response waits for the response to a request.
func (p pipe) response(id string) message {
	p.t.Helper()
	return p.until("the response to "+id, func(m message) bool { return string(m.ID) == id && m.Method == "" })
}

// succeeded is the result of a call.
func (p pipe) succeeded(id string) result {
	p.t.Helper()
	m := p.response(id)
	require.Nil(p.t, m.Error)
	return decode[result](p.t, string(m.Result))
}

// legacy is a request of a session.
func legacy(id, method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
}

// modern is a request of the modern era, of a client with tasks.
func modern(id, method, params string) string {
	return modernWith(`{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, id, method, params)
}

func modernWithoutTasks(id, method, params string) string {
	return modernWith("{}", id, method, params)
}

func modernWith(capabilities, id, method, params string) string {
	meta := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + capabilities + `}`
	if params = strings.TrimPrefix(params, "{"); params != "}" {
		params = "," + params
	}
	return legacy(id, method, meta+params)
}

var opening = []string{
	legacy(`"open"`, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"taskbridge-e2e","version":"1"}}`),
	`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
}

func TestStdioAnswersAllThatWasPipedIn(t *testing.T) {
	startToolsWorker(t)
	p := startToolsPipe(t)
	p.send(opening...)
	p.send(
		legacy("1", "tools/list", "{}"),
		"", // empty lines are nothing
		legacy("2", "tools/call", `{"name":"echo","arguments":{"text":"a\nb"}}`),
		modern(`"three"`, "tools/list", "{}"),
		modern("4", "tools/call", `{"name":"no such tool"}`),
	)
	begin := time.Now()
	assert.Zero(t, p.end())
	assert.Less(t, time.Since(begin), 20*time.Second)

	answered := map[string]message{}
	for _, m := range p.messages() {
		require.NotContains(t, answered, string(m.ID))
		answered[string(m.ID)] = m
	}
	require.Len(t, answered, 5)
	assert.Contains(t, string(answered[`"open"`].Result), `"taskbridge"`)
	assert.Contains(t, string(answered["1"].Result), `"echo"`)
	assert.Contains(t, p.succeeded("2").text(), "a\n    b")
	assert.Contains(t, string(answered[`"three"`].Result), `"echo"`)
	assert.Equal(t, codeInvalidParams, answered["4"].Error.Code)
	assert.Equal(t, p.stdout.lines(), p.stdout.String(), "the last line is complete")
	assert.Empty(t, p.stderr.String())
}

// TestStdioLeavesWorkflowsRunning: a host that goes away ends neither a task nor what a call waits for.
func TestStdioLeavesWorkflowsRunning(t *testing.T) {
	startToolsWorker(t)
	file := filepath.Join(t.TempDir(), "file")
	call := fmt.Sprintf(`{"name":"await_file","arguments":{"file":%q}`, file)
	p := startToolsPipe(t)
	p.send(opening...)
	p.send(
		legacy("1", "tools/call", call+`,"task":{"ttl":60000}}`),
		modern("2", "tools/call", call+`}`),
		legacy("3", "tools/call", call+`}`),
	)
	begin := time.Now()
	assert.Zero(t, p.end())
	assert.Less(t, time.Since(begin), 20*time.Second)

	core := decode[struct{ Task struct{ TaskID string } }](t, string(p.response("1").Result)).Task.TaskID
	extension := decode[struct{ TaskID string }](t, string(p.response("2").Result)).TaskID
	refused := p.response("3")
	require.NotNil(t, refused.Error)
	_, waiting, told := strings.Cut(refused.Error.Message, "goes on as task ")
	require.True(t, told, refused.Error.Message)
	temporal := testenv.Client(t)
	for _, id := range []string{core, extension, waiting} {
		workflow, err := temporal.DescribeWorkflow(t.Context(), "mcp:anonymous:"+id, "")
		require.NoError(t, err, id)
		assert.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, workflow.Status)
	}

	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, id := range []string{core, extension, waiting} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var done result
		require.NoError(t, temporal.GetWorkflow(ctx, "mcp:anonymous:"+id, "").Get(ctx, &done))
		assert.Contains(t, done.text(), "Pipeline succeeded")
	}
}

func TestStdioGoesOnAfterWhatIsNoMessage(t *testing.T) {
	p := startToolsPipe(t)
	p.send(opening...)
	p.response(`"open"`)
	for i, test := range []struct {
		line string
		code int
	}{
		{`{"jsonrpc":"2.0","id":1,"method":`, codeParseError},
		{`hello`, codeParseError},
		{"\xff\xfe", codeParseError},
		{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, codeInvalidRequest},
		{`{"id":1.5,"jsonrpc":"2.0","method":"ping"}`, codeInvalidRequest},
		{`"` + strings.Repeat("x", 5<<20) + `"`, codeInvalidRequest}, // above 4 MiB
	} {
		before := len(p.messages())
		p.send(test.line)
		require.Eventually(t, func() bool { return len(p.messages()) > before }, patience, 10*time.Millisecond)
		refused := p.messages()[before]
		require.NotNil(t, refused.Error, "%.100s", test.line)
		assert.Equal(t, test.code, refused.Error.Code, "%.100s", test.line)
		assert.Empty(t, refused.ID, "%.100s", test.line)

		id := fmt.Sprintf(`"after %d"`, i)
		p.send(legacy(id, "ping", "{}"))
		assert.JSONEq(t, "{}", string(p.response(id).Result))
	}
	assert.Zero(t, p.end())
}

// TestStdioServesBothEras: one pipe, and whatever a message is of.
func TestStdioServesBothEras(t *testing.T) {
	startToolsWorker(t)
	p := startToolsPipe(t)
	p.send(modern("1", "server/discover", "{}"))
	assert.Contains(t, string(p.response("1").Result), `"2026-07-28"`)
	p.send(opening...)
	assert.Equal(t, "2025-11-25", decode[struct{ ProtocolVersion string }](t, string(p.response(`"open"`).Result)).ProtocolVersion)

	p.send(
		modern("2", "tools/call", `{"name":"release","arguments":{"version":"2"}}`),
		legacy("3", "tools/call", `{"name":"echo","arguments":{"text":"three"}}`),
		modern("4", "tools/list", "{}"),
		legacy("5", "tools/list", "{}"),
		legacy("6", "tools/call", `{"name":"await_file","arguments":{"file":"/nonexistent"},"task":{}}`),
	)
	assert.NotContains(t, string(p.response("4").Result), "taskSupport")
	assert.Contains(t, string(p.response("5").Result), "taskSupport")
	assert.Contains(t, p.succeeded("3").text(), "three")

	// A task is there for both.
	created := decode[struct{ ResultType, TaskID string }](t, string(p.response("2").Result))
	assert.Equal(t, "task", created.ResultType)
	p.send(legacy("7", "tasks/get", fmt.Sprintf(`{"taskId":%q}`, created.TaskID)))
	assert.Contains(t, string(p.response("7").Result), `"ttl"`)
	working := decode[struct{ Task struct{ TaskID string } }](t, string(p.response("6").Result)).Task.TaskID
	p.send(modern("8", "tasks/get", fmt.Sprintf(`{"taskId":%q}`, working)))
	assert.Contains(t, string(p.response("8").Result), `"ttlMs"`)

	for _, id := range []string{created.TaskID, working} {
		p.send(modern(fmt.Sprintf("%q", id), "tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, id)))
		p.response(fmt.Sprintf("%q", id))
	}
	p.until("the notification that a task of the session is cancelled", func(m message) bool {
		return m.Method == "notifications/tasks/status" && strings.Contains(string(m.Params), working) && strings.Contains(string(m.Params), "cancelled")
	})
	assert.Zero(t, p.end())
}

// TestStdioListens: a subscription has the ID of the request that it was made by, and ends with a result.
func TestStdioListens(t *testing.T) {
	p := startToolsPipe(t)
	p.send(modern(`"listen-1"`, "subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`))
	acknowledged := p.until("the acknowledgement", func(m message) bool { return m.Method == "notifications/subscriptions/acknowledged" })
	const meta = `"_meta":{"io.modelcontextprotocol/subscriptionId":"listen-1"}`
	assert.JSONEq(t, `{`+meta+`,"notifications":{"toolsListChanged":true}}`, string(acknowledged.Params))
	assert.Zero(t, p.end())
	ended := p.response(`"listen-1"`)
	require.Nil(t, ended.Error, "%+v", ended.Error)
	assert.Contains(t, string(ended.Result), `"complete"`)
	assert.Contains(t, string(ended.Result), `"io.modelcontextprotocol/subscriptionId":"listen-1"`)
}

// TestStdioCancelsACall: a call that its client cancels is not answered, and its workflow is cancelled.
func TestStdioCancelsACall(t *testing.T) {
	startToolsWorker(t)
	for era, request := range map[string]func(id, method, params string) string{legacyEra: legacy, modernEra: modernWithoutTasks} {
		t.Run(era, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "file")
			working := func() bool { return len(processesWith("ARG_FILE="+file)) > 0 }
			p := startToolsPipe(t)
			p.send(opening...)
			p.response(`"open"`)
			p.send(request("1", "tools/call", fmt.Sprintf(`{"name":"await_file","arguments":{"file":%q}}`, file)))
			require.Eventually(t, working, patience, 20*time.Millisecond)
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
			require.Eventually(t, func() bool { return !working() }, patience, 20*time.Millisecond)
			assert.Zero(t, p.end())
			for _, m := range p.messages() {
				assert.NotEqual(t, "1", string(m.ID), "an answer")
			}
		})
	}
}

func TestStdioEndsAtASignal(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			p := startToolsPipe(t)
			p.send(opening...)
			p.send(legacy("1", "tools/call", `{"name":"echo","arguments":{"text":"no worker"}}`), legacy("2", "ping", "{}"))
			p.response("2")
			p.signal(sig)
			assert.Zero(t, p.wait())
			refused := p.response("1").Error
			require.NotNil(t, refused)
			assert.Contains(t, refused.Message, "the workflow goes on as task")
		})
	}
}

func TestStdioThatCannotStart(t *testing.T) {
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	require.NoError(t, os.WriteFile(wrong, []byte("version: 7\n"), 0o600))
	for name, test := range map[string]struct {
		env    []string
		status int
		says   string
	}{
		"no Temporal server": {[]string{"TASKBRIDGE_CATALOG=" + toolsCatalog, "TEMPORAL_ADDRESS=127.0.0.1:1"}, 1, "no Temporal server answers at 127.0.0.1:1"},
		"no catalog":         {temporalEnv(t), 2, "--catalog"},
		"a wrong catalog":    {append(temporalEnv(t), "TASKBRIDGE_CATALOG="+wrong), 1, "version"},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPipe(t, test.env...) // its stdin stays open
			assert.Equal(t, test.status, p.wait())
			assert.Contains(t, p.stderr.String(), test.says)
			assert.Empty(t, p.stdout.String())
		})
	}
}
