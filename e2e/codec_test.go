package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/internal/devserver"
	"taskbridge/internal/mcpclient"
)

const markedCatalog = `
version: 1
defaults:
  taskQueue: codec
  pollInterval: 100ms
tools:
  marked_job:
    workflow: Pipeline
    description: Has something to hide wherever a task can have it.
    input:
      type: object
      properties: { text: { type: string }, file: { type: string } }
    with:
      pipeline:
        steps:
          - name: MARK-check
            run: [sh, -c, 'printf "MARK-%s\n" heartbeat; until test -e "$ARG_FILE"; do sleep 0.1; done; printf "MARK-%s\n" output']
          - name: approve
            needs: [MARK-check]
            ask:
              message: MARK-question
              schema: { type: object, properties: { say: { type: string } } }
          - name: publish
            needs: [approve]
            run: [sh, -c, 'printf "MARK-%s-is-%s" result "$ASK_APPROVE_SAY"']
  noted:
    workflow: Pipeline
    description: Is asked something by the catalog, which knows it by its memo.
    input: { type: object, properties: { text: { type: string }, file: { type: string } } }
    dedupe: arguments
    memo: { note: "MARK-memo of ${args.text}" }
    with: { pipeline: { steps: [{ name: hold, ask: { message: Hold? } }] } }
    inputs:
      note:
        when: memo.note.startsWith('MARK-memo')
        once: true
        message: Anything to say on ${memo.note}?
        schema: { type: object, properties: { say: { type: string } } }
        accept: { signal: note, payload: { said: "MARK-signal of ${answer.say}" } }
        decline: cancel
  fail:
    workflow: Pipeline
    description: Fails.
    with: { pipeline: { steps: [{ name: fall, run: [sh, -c, 'printf "MARK-%s" failure >&2; exit 3'] }] } }
  say:
    workflow: Pipeline
    description: Says a text.
    input: { type: object, properties: { text: { type: string } } }
    with: { pipeline: { steps: [{ name: say, run: [sh, -c, 'printf "%s-back" "$ARG_TEXT"'] }] } }
`

// marks is what the test looks for in the database; each is in it if nothing is encrypted.
func marks() []string {
	return []string{
		"MARK-argument", "MARK-check (1/3)", "MARK-heartbeat", "MARK-output", "MARK-question", "MARK-answer", "MARK-result", "MARK-failure", "MARK-cancelled",
		"MARK-session", "MARK-session-back", "MARK-file", "MARK-memo of MARK-noted", "MARK-signal of MARK-said",
		"marked_job", "retentionMs", // in memo mcp.meta
	}
}

// TestNothingOfATaskIsInTemporalsDatabaseInTheClear runs tasks to all their ends, and then reads the files of the database.
func TestNothingOfATaskIsInTemporalsDatabaseInTheClear(t *testing.T) {
	secret := base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))
	keys := "TASKBRIDGE_PAYLOAD_KEYS=2026:" + secret
	server := start(t, []string{keys}, binary(t, "examples/codecserver"), "--listen", "127.0.0.1:0")
	endpoint := server.waitFor(`codec server: (http://\S+)`)[1]
	for name, variable := range map[string]string{"with keys": keys, "with a codec server": "TEMPORAL_CODEC_ENDPOINT=" + endpoint} {
		t.Run(name, func(t *testing.T) {
			content := databaseAfterTasks(t, variable)
			for _, mark := range append(marks(), secret, "0123456789abcdef") {
				assert.False(t, strings.Contains(content, mark), "%q is in the database", mark)
			}
			assert.True(t, strings.Contains(content, "encryption-key-id"))
		})
	}
	t.Run("without", func(t *testing.T) {
		content := databaseAfterTasks(t)
		for _, mark := range marks() {
			assert.True(t, strings.Contains(content, mark), "%q is not where the test looks for it", mark)
		}
	})
}

// databaseAfterTasks is all that is in the files of the database of a Temporal server after some tasks.
func databaseAfterTasks(t *testing.T, env ...string) string {
	t.Helper()
	dir := t.TempDir()
	server, err := devserver.Start(t.Context(), devserver.Options{NoUI: true, DBFile: filepath.Join(dir, "temporal.db")})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	catalog := filepath.Join(t.TempDir(), "catalog.yaml")
	require.NoError(t, os.WriteFile(catalog, []byte(markedCatalog), 0o600))
	env = append(env, "TEMPORAL_ADDRESS="+server.Address(), "TASKBRIDGE_CATALOG="+catalog)

	worker := start(t, env, binary(t, "cmd/taskbridge"), "worker", "--task-queue", "codec")
	worker.waitFor("polling task queue")
	front := start(t, env, binary(t, "cmd/taskbridge"), "serve", "--listen", "127.0.0.1:0")
	runMarkedTasks(t, mcpclient.New(front.endpoint(), nil))
	callInASession(t, env)

	for _, program := range []*process{front, worker} {
		program.signal(os.Interrupt)
		assert.Zero(t, program.wait())
		assert.NotContains(t, program.stderr.String(), "MARK-")
	}
	require.NoError(t, server.Stop())
	return contentOf(t, dir)
}

// contentOf is what is in the files of a directory.
func contentOf(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	var content strings.Builder
	for _, file := range files {
		content.WriteString(readFile(t, file))
	}
	return content.String()
}

func runMarkedTasks(t *testing.T, c *mcpclient.Client) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "MARK-file")
	begin := func(tool, text string) string {
		outcome, err := c.Call(t.Context(), tool, json.RawMessage(fmt.Sprintf(`{"text":%q,"file":%q}`, text, file)), nil)
		require.NoError(t, err)
		return outcome.Task.ID
	}
	job := begin("marked_job", "MARK-argument")
	untilTask(t, c, job, func(task *mcpclient.Task) bool { return strings.Contains(task.StatusMessage, "MARK-heartbeat") })
	cancelled := begin("marked_job", "MARK-cancelled")
	require.NoError(t, c.CancelTask(t.Context(), cancelled))
	untilTask(t, c, cancelled, status("cancelled"))
	require.NoError(t, os.WriteFile(file, nil, 0o600))

	asked := untilTask(t, c, job, status("input_required"))
	assert.Contains(t, string(asked.Raw), "MARK-question")
	require.NoError(t, c.UpdateTask(t.Context(), job, map[string]json.RawMessage{
		"approve-1": json.RawMessage(`{"action":"accept","content":{"say":"MARK-answer"}}`),
	}))
	assert.Contains(t, string(untilTask(t, c, job, status("completed")).Raw), "MARK-result-is-MARK-answer")

	noted := begin("noted", "MARK-noted")
	assert.Equal(t, noted, begin("noted", "MARK-noted"))
	asked = untilTask(t, c, noted, func(task *mcpclient.Task) bool { return len(task.InputRequests) == 2 })
	assert.Contains(t, string(asked.Raw), "Anything to say on MARK-memo of MARK-noted?")
	require.NoError(t, c.UpdateTask(t.Context(), noted, map[string]json.RawMessage{
		"note-1": json.RawMessage(`{"action":"accept","content":{"say":"MARK-said"}}`),
		"hold-1": json.RawMessage(`{"action":"decline"}`),
	}))
	untilTask(t, c, noted, status("completed"))

	outcome, err := c.Call(t.Context(), "fail", json.RawMessage(`{}`), nil)
	require.NoError(t, err)
	failed := untilTask(t, c, outcome.Task.ID, status("completed"))
	assert.Contains(t, string(failed.Raw), "MARK-failure")
	assert.Contains(t, string(failed.Raw), `"isError":true`)
}

// callInASession calls a tool over stdio, as a client without tasks.
func callInASession(t *testing.T, env []string) {
	t.Helper()
	p := startPipe(t, env...)
	p.send(opening...)
	p.send(legacy("1", "tools/call", `{"name":"say","arguments":{"text":"MARK-session"}}`))
	assert.Contains(t, p.succeeded("1").text(), "MARK-session-back")
	assert.Zero(t, p.end())
	assert.Empty(t, p.stderr.String())
}

func TestDevEncryptsToo(t *testing.T) {
	db := filepath.Join(t.TempDir(), "state.db")
	env := []string{"TASKBRIDGE_PAYLOAD_KEYS=2026:" + base64.StdEncoding.EncodeToString(make([]byte, 32))}
	dev := startIn(t, "..", env, binary(t, "cmd/taskbridge"), "dev", "--listen", "127.0.0.1:0", "--temporal-port", "0", "--no-ui", "--db", db)
	c := mcpclient.New(dev.endpoint(), nil)
	outcome, err := c.Call(t.Context(), "word_count", json.RawMessage(`{"text":"MARK-dev to be"}`), nil)
	require.NoError(t, err)
	assert.Contains(t, string(untilTask(t, c, outcome.Task.ID, status("completed")).Raw), "counted 14 characters")
	dev.signal(os.Interrupt)
	require.Zero(t, dev.wait())
	content := contentOf(t, filepath.Dir(db))
	assert.False(t, strings.Contains(content, "MARK-dev"))
	assert.False(t, strings.Contains(content, "counted 14 characters"))
	assert.True(t, strings.Contains(content, "encryption-key-id"))
}
