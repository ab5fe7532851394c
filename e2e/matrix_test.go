package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/internal/mcpclient"
)

// matrixCatalog has tools that bring a task into the states of the table in docs/clients.md.
const matrixCatalog = `
version: 1
defaults: { taskQueue: matrix }
tools:
  queue: { workflow: Pipeline, taskQueue: nobody, with: { pipeline: { steps: [{ name: one, run: ['true'] }] } } }
  run: { workflow: Pipeline, with: { pipeline: { steps: [{ name: one, run: [sleep, '600'] }] } } }
  ask: { workflow: Pipeline, with: { pipeline: { steps: [{ name: one, ask: { message: Sure? } }] } } }
  succeed: { workflow: Pipeline, with: { pipeline: { steps: [{ name: one, run: ['true'] }] } } }
  fail: { workflow: Pipeline, with: { pipeline: { steps: [{ name: one, run: ['false'] }] } } }
  time_out: { workflow: Pipeline, executionTimeout: 1s, with: { pipeline: { steps: [{ name: one, run: [sleep, '600'] }] } } }
`

// clientsTable is the first table under a heading of docs/clients.md, without its head.
func clientsTable(t testing.TB, heading string) (rows [][]string) {
	t.Helper()
	document, err := os.ReadFile("../docs/clients.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(document), "\n## "+heading+"\n")
	require.True(t, ok, heading)
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "|") {
			if rows == nil {
				continue
			}
			break
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i, cell := range cells {
			cells[i] = strings.TrimSpace(strings.ReplaceAll(cell, "`", ""))
		}
		rows = append(rows, cells)
	}
	require.Greater(t, len(rows), 2, heading)
	return rows[2:]
}

// post sends a request without any SDK and returns its result, and the ID of the session that it opened.
func post(t testing.TB, endpoint string, header map[string]string, method, params string) (result map[string]any, session string) {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	if i := bytes.LastIndex(answer, []byte("data: {")); i >= 0 {
		answer = answer[i+len("data: "):]
	}
	var message struct{ Result map[string]any }
	require.NoError(t, json.Unmarshal(answer, &message), "%s", answer)
	require.NotNil(t, message.Result, "%s", answer)
	return message.Result, response.Header.Get("Mcp-Session-Id")
}

const openParams = `","capabilities":{},"clientInfo":{"name":"taskbridge-e2e","version":"1"}}`

func TestClientsPageNamesTheRevisionsThatAreServed(t *testing.T) {
	catalog, _ := pipelineCatalog(t, `[{name: one, run: ['true']}]`)
	front, _ := startFrontEnd(t, catalog)
	endpoint := front.endpoint()
	var named []string
	for _, row := range clientsTable(t, "What a client gets") {
		named = append(named, regexp.MustCompile(`20\d\d-\d\d-\d\d`).FindAllString(row[0], -1)...)
	}
	slices.Sort(named)
	named = slices.Compact(named)

	discovered, _ := post(t, endpoint, map[string]string{"Mcp-Protocol-Version": modernEra, "Mcp-Method": "server/discover"}, "server/discover",
		`{"_meta":{"io.modelcontextprotocol/protocolVersion":"`+modernEra+`","io.modelcontextprotocol/clientCapabilities":{}}}`)
	assert.ElementsMatch(t, discovered["supportedVersions"], named)
	for _, revision := range named {
		if revision == modernEra { // which has no sessions
			continue
		}
		opened, _ := post(t, endpoint, nil, "initialize", `{"protocolVersion":"`+revision+openParams)
		assert.Equal(t, revision, opened["protocolVersion"])
	}
}

func TestClientsPageHasTheWordsOfEachDialect(t *testing.T) {
	catalog := filepath.Join(t.TempDir(), "catalog.yaml")
	require.NoError(t, os.WriteFile(catalog, []byte(matrixCatalog), 0o600))
	worker := startWorker(t, "matrix")
	front, extension := startFrontEnd(t, catalog)
	_, id := post(t, front.endpoint(), nil, "initialize", `{"protocolVersion":"`+legacyEra+openParams)
	session := map[string]string{"Mcp-Session-Id": id, "Mcp-Protocol-Version": legacyEra}

	words := func(task string) []string {
		detailed, err := extension.GetTask(t.Context(), task)
		require.NoError(t, err)
		core, _ := post(t, front.endpoint(), session, "tasks/get", `{"taskId":"`+task+`"}`)
		proposal, _ := post(t, front.endpoint(), session, "tasks/get",
			`{"taskId":"`+task+`","_meta":{"modelcontextprotocol.io/related-task":{"taskId":"`+task+`"}}}`)
		return []string{string(detailed.Status), core["status"].(string), proposal["status"].(string)}
	}
	until := func(task string, want []string) {
		var got []string
		require.Eventually(t, func() bool {
			got = words(task)
			return slices.Equal(want, got)
		}, patience, 50*time.Millisecond, "%v, not %v", &got, want)
	}
	running := func() string {
		task := create(t, extension, "run")
		untilTask(t, extension, task, func(task *mcpclient.Task) bool { return strings.Contains(task.StatusMessage, "running") })
		return task
	}
	cancelled := func(task string) string {
		require.NoError(t, extension.CancelTask(t.Context(), task))
		return task
	}
	tasks := map[string]func() string{
		"waits for a worker to take it up": func() string { return create(t, extension, "queue") },
		"runs":                             running,
		"waits for an answer":              func() string { return create(t, extension, "ask") },
		"returned a result":                func() string { return create(t, extension, "succeed") },
		"failed, or returned a result with isError":  func() string { return create(t, extension, "fail") },
		"failed with a JSON-RPC error, or timed out": func() string { return create(t, extension, "time_out") },
		"was cancelled, or terminated by a person":   func() string { return cancelled(running()) },
		"was asked to cancel, and works on it still": func() string {
			task := running()
			worker.kill9() // so that nobody hears of it: this row is the last
			return cancelled(task)
		},
	}
	rows := clientsTable(t, "The same task in another dialect")
	require.Len(t, rows, len(tasks))
	for _, row := range rows {
		require.Contains(t, tasks, row[0])
		until(tasks[row[0]](), row[1:])
	}
}
