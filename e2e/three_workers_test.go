package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestWorkersSideBySide: one front end offers workflows of a worker in TypeScript, of one in Go, and of one that knows
// nothing of tasks or MCP.
func TestWorkersSideBySide(t *testing.T) {
	example, err := typescript()
	require.NoError(t, err)
	startIn(t, example, temporalEnv(t), tool(t, "node"), "lib/worker.js").waitFor(`state: 'RUNNING'`)
	startToolsWorker(t)
	start(t, temporalEnv(t), built(t, ".", "./testdata/plain")).waitFor("Started Worker")
	endpoint := start(t, temporalEnv(t), binary(t, "cmd/taskbridge"), "serve", "--listen", "127.0.0.1:0",
		"--catalog", filepath.Join(example, "tools.yaml"), "--catalog", toolsCatalog, "--catalog", "testdata/plain/tools.yaml").endpoint()

	for _, era := range []string{modernEra, legacyEra} {
		t.Run(era, func(t *testing.T) {
			session := goClient(t, overHTTP(endpoint), era, nil)
			call := func(name string, arguments map[string]any) result { return callGo(t, session, name, arguments) }
			assert.Subset(t, toolNames(t, session), []string{"slow_compute", "echo", "quote"})

			call("slow_compute", map[string]any{"seconds": 1, "label": "pi"}).assertText(t, "computed pi for 1 seconds")
			echo := call("echo", map[string]any{"text": "a b c"})
			assert.False(t, echo.IsError)
			assert.Contains(t, echo.text(), "a b c")
			quote := call("quote", map[string]any{"product": "lamp", "express": true})
			assert.False(t, quote.IsError)
			assert.JSONEq(t, `{"Product":"lamp","Cents":900}`, quote.text())
			quote = call("quote", map[string]any{"product": "lamp", "quantity": 3})
			assert.False(t, quote.IsError)
			assert.JSONEq(t, `{"Product":"lamp","Cents":1200}`, quote.text())
		})
	}
}

func toolNames(t testing.TB, session *mcp.ClientSession) []string {
	t.Helper()
	var names []string
	for tool, err := range session.Tools(t.Context(), nil) {
		require.NoError(t, err)
		names = append(names, tool.Name)
	}
	return names
}

// built builds a program of the module at dir and is its path.
func built(t testing.TB, dir, pkg string) string {
	t.Helper()
	program := filepath.Join(scratchDir(t), "program")
	require.NoError(t, runIn(dir, "go", "build", "-o", program, pkg))
	return program
}
