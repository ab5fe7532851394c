package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cli is the command line against a server.
type cli struct {
	t        *testing.T
	endpoint string
	program  string
}

func newCLI(t *testing.T) cli {
	t.Helper()
	server := start(t, temporalEnv(t), binary(t, "examples/conformance"), "--listen", "127.0.0.1:0")
	return cli{t, server.endpoint(), binary(t, "cmd/taskbridge")}
}

// expect runs a command line and checks its exit status and what it says. It returns what is on stdout.
func (c cli) expect(status int, says string, args ...string) string {
	c.t.Helper()
	p := run(c.t, []string{"TASKBRIDGE_URL=" + c.endpoint}, c.program, args...)
	assert.Equal(c.t, status, p.wait(), "%v: %s%s", args, p.stdout.String(), p.stderr.String())
	assert.Contains(c.t, p.stdout.String()+p.stderr.String(), says, "%v", args)
	return p.stdout.String()
}

func TestCommandLine(t *testing.T) {
	c := newCLI(t)
	t.Run("tools", func(t *testing.T) {
		c := cli{t, c.endpoint, c.program}
		c.expect(0, "slow_compute", "tools")
		c.expect(0, `"filename"`, "tools", "confirm_delete")
		var listed []map[string]any
		require.NoError(t, json.Unmarshal([]byte(c.expect(0, "", "tools", "--json")), &listed))
		assert.Greater(t, len(listed), 7)
		c.expect(2, "no_such_tool", "tools", "no_such_tool")
	})
	t.Run("outcomes are exit statuses", func(t *testing.T) {
		c := cli{t, c.endpoint, c.program}
		assert.Equal(t, "Hello, Ada!\n", c.expect(0, "", "call", "greet", `{"name":"Ada"}`))
		assert.Equal(t, "computed x for 0.2 seconds\n", c.expect(0, "computing", "call", "slow_compute", `{"seconds":0.2,"label":"x"}`))
		c.expect(1, "the job failed", "call", "failing_job")
		c.expect(3, "the job broke the protocol", "call", "protocol_error_job")
		c.expect(3, `unknown tool "nope"`, "call", "nope")
		c.expect(1, "seconds", "call", "slow_compute", `{"seconds":"many"}`)
		c.expect(2, "arguments", "call", "greet", `{"name":`)
		c.expect(2, "arguments", "call", "greet", `[1]`)
		c.expect(0, "", "call", "test_custom_header", `{"region":"Zürich"}`) // repeated in a header, as its schema asks
		c.expect(5, "", "call", "slow_compute", `{"seconds":60}`, "--timeout", "1s")
	})
	t.Run("arguments from a file", func(t *testing.T) {
		c := cli{t, c.endpoint, c.program}
		file := filepath.Join(t.TempDir(), "arguments.json")
		require.NoError(t, os.WriteFile(file, []byte(`{"name":"Bo"}`), 0o600))
		assert.Equal(t, "Hello, Bo!\n", c.expect(0, "", "call", "greet", "@"+file))
		c.expect(2, "no such file", "call", "greet", "@"+file+".missing")
	})
	t.Run("JSON for scripts", func(t *testing.T) {
		c := cli{t, c.endpoint, c.program}
		var task struct {
			Status string
			Result struct{ IsError bool }
		}
		require.NoError(t, json.Unmarshal([]byte(c.expect(1, "", "call", "failing_job", "--json")), &task))
		assert.Equal(t, "completed", task.Status)
		assert.True(t, task.Result.IsError)
	})
	t.Run("questions", func(t *testing.T) {
		c := cli{t, c.endpoint, c.program}
		assert.Equal(t, "f is deleted\n", c.expect(0, "", "call", "confirm_delete", `{"filename":"f"}`, "--answer", `confirm={"confirm":true}`))
		assert.Equal(t, "f is kept\n", c.expect(0, "", "call", "confirm_delete", `{"filename":"f"}`, "--answer", "confirm=decline"))
		assert.Equal(t, "Al says true\n", c.expect(0, "", "call", "multi_input", "--answer", `name={"name":"Al"}`, "--answer", "confirm=accept"))
		assert.Equal(t, "Hello, Cy!\n", c.expect(0, "", "call", "test_tool_with_task", "--answer", `confirm={"name":"Cy"}`))
		c.expect(4, "taskbridge task answer", "call", "confirm_delete", `{"filename":"f"}`)
	})
	t.Run("a task from birth to end", func(t *testing.T) {
		c := cli{t, c.endpoint, c.program}
		id := strings.TrimSpace(c.expect(0, "", "call", "confirm_delete", `{"filename":"g"}`, "--detach"))
		c.expect(4, "Delete g?", "task", "watch", id)
		c.expect(0, "input_required", "task", "get", id)
		c.expect(3, "confirm", "task", "answer", id, `confirm-1={"confirm":"perhaps"}`)
		c.expect(0, "", "task", "answer", id, `confirm-1={"confirm":true}`)
		assert.Contains(t, c.expect(0, "", "task", "watch", id), "g is deleted")
		c.expect(3, "task not found", "task", "get", "no-such-task")

		id = strings.TrimSpace(c.expect(0, "", "call", "slow_compute", `{"seconds":600}`, "--detach"))
		c.expect(0, "", "task", "cancel", id, "--wait")
		c.expect(6, "cancelled", "task", "watch", id)
	})
}
