package e2e_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// connectTimeout, in milliseconds, is the Inspector's on a loaded machine.
const connectTimeout = "120000"

// inspectorStorage keeps the Inspector's files out of the user's home, and its secrets out of the keyring.
func inspectorStorage(t testing.TB) (dir string, env []string) {
	t.Helper()
	dir = scratchDir(t)
	return dir, []string{"MCP_STORAGE_DIR=" + dir, "MCP_INSPECTOR_SECRET_STORE=file"}
}

// inspectorTarget is how the Inspector's command lines name a front end.
func (f frontEnd) inspectorTarget() []string {
	if !f.overStdio() {
		return append([]string{"--transport", "http"}, f.target...)
	}
	var args []string
	for _, variable := range f.env {
		args = append(args, "-e", variable)
	}
	return append(args, f.target...)
}

func TestInspectorCallsTools(t *testing.T) {
	for kind, front := range frontEnds(t) {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(kind+" "+era, func(t *testing.T) {
				_, env := inspectorStorage(t)
				inspect := func(args ...string) *process {
					command := append([]string{"--cli"}, front.inspectorTarget()...)
					command = append(command, "--protocol-era", era, "--connect-timeout", connectTimeout)
					return node(t, env, tool(t, "mcp-inspector"), append(command, args...)...)
				}
				list := inspect("--method", "tools/list")
				require.Zero(t, list.wait())
				type listed struct {
					Name, Title string
					Execution   struct{ TaskSupport string }
				}
				optional, required := listed{Name: "echo", Title: "Echo"}, listed{Name: "backup"}
				if era == "legacy" { // in the modern era the server decides what becomes a task
					optional.Execution.TaskSupport, required.Execution.TaskSupport = "optional", "required"
				}
				tools := decode[struct{ Tools []listed }](t, list.stdout.String()).Tools
				assert.Contains(t, tools, optional)
				assert.Contains(t, tools, required)

				call := inspect("--method", "tools/call", "--tool-name", "echo", "--tool-arg", "text=a b; echo c")
				require.Zero(t, call.wait())
				assert.Contains(t, decode[result](t, call.stdout.String()).text(), "a b; echo c")

				task := inspect("--method", "tools/call", "--tool-name", "backup")
				require.Zero(t, task.wait())
				assert.Contains(t, decode[result](t, task.stdout.String()).text(), "saved")

				refused := inspect("--method", "tools/call", "--tool-name", "echo")
				assert.NotZero(t, refused.wait(), "an error result")
				assert.Contains(t, decode[result](t, refused.stdout.String()).text(), "text")
			})
		}
	}
}

// mcpdo is the Inspector's command whose calls share a connection held by a daemon.
type mcpdo struct {
	t          testing.TB
	env        []string
	connection string
}

func connectMcpdo(t testing.TB, front frontEnd, era string) mcpdo {
	t.Helper()
	storage, env := inspectorStorage(t)
	m := mcpdo{t, env, front.target[0]}
	// mcpdo would start the daemon itself, but as one that outlives the test.
	daemon := filepath.Join(nodeModules(t), "@modelcontextprotocol", "inspector", "clients", "mcpdo", "build", "mcpdod.js")
	start(t, env, tool(t, "node"), daemon)
	require.Eventually(t, func() bool {
		ready, _ := filepath.Glob(filepath.Join(storage, "mcpdod.[st]o*")) // .sock and .token
		return len(ready) == 2
	}, patience, 10*time.Millisecond)
	m.run(append([]string{"connect", "--era", era, "--connect-timeout", connectTimeout}, front.inspectorTarget()...)...)
	return m
}

func (m mcpdo) run(args ...string) string {
	m.t.Helper()
	command := node(m.t, m.env, tool(m.t, "mcpdo"), append([]string{"--format", "json"}, args...)...)
	require.Zero(m.t, command.wait())
	return command.stdout.String()
}

// pending is a question that a call waits for.
type pending struct{ ElicitationID, Message, Origin string }

// call calls a tool that asks something.
func (m mcpdo) call(args ...string) pending {
	m.t.Helper()
	asked := m.run(append([]string{"--connection", m.connection, "tools/call"}, args...)...)
	return decode[struct{ ElicitationPending pending }](m.t, asked).ElicitationPending
}

func (m mcpdo) answer(question pending, field string) result {
	m.t.Helper()
	return decode[result](m.t, m.run("elicitation/respond", question.ElicitationID, field))
}

func TestInspectorAnswersATask(t *testing.T) {
	m := connectMcpdo(t, frontEnd{target: []string{startFixtures(t)}}, "modern")
	question := m.call("confirm_delete", "filename:=a.txt")
	assert.Equal(t, "Delete a.txt?", question.Message)
	assert.Equal(t, "task-input-required", question.Origin)
	m.answer(question, "confirm:=true").assertText(t, "a.txt is deleted")
}

// TestInspectorAnswersACall: in sessions, without a task, since mcpdo does not have the questions of a task sent there.
func TestInspectorAnswersACall(t *testing.T) {
	for kind, front := range frontEnds(t) {
		for _, era := range []string{"legacy", "modern"} {
			t.Run(kind+" "+era, func(t *testing.T) {
				m := connectMcpdo(t, front, era)
				question := m.call("release", `{"version":"1.2"}`)
				assert.Equal(t, "Publish where?", question.Message)
				assertReleased(t, m.answer(question, "channel:=beta"))
			})
		}
	}
}
