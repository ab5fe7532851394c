package main

import (
	"bytes"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge"
	"taskbridge/workflows"
)

const questions = `
version: 1
tools:
  deploy:
    description: Asks before and meanwhile.
    workflow: Pipeline
    taskQueue: questions
    confirm: {message: Really?}
    with:
      pipeline:
        steps:
          - name: where
            ask:
              message: Where to?
              schema:
                type: object
                properties:
                  stage: {type: string, enum: [test, production], default: test}
                  copies: {type: integer, minimum: 1, maximum: 9}
                required: [stage, copies]
          - name: deploy
            run: [sh, -c, 'echo "$ASK_WHERE_COPIES to $ASK_WHERE_STAGE"']
            needs: [where]
  pause:
    description: Takes two seconds, and is polled for once an hour.
    workflow: Pipeline
    taskQueue: questions
    pollInterval: 1h
    with:
      pipeline:
        steps:
          - {name: pause, run: [sh, -c, 'sleep 2; echo paused']}
`

// newQuestions is the MCP endpoint of a front end with these tools, and with a worker.
func newQuestions(t *testing.T) (endpoint string) {
	t.Helper()
	temporal := testenv.Client(t)
	worker := workflows.NewWorker(temporal, "questions")
	require.NoError(t, worker.Start())
	t.Cleanup(worker.Stop)
	l, err := loader()
	require.NoError(t, err)
	tools, err := l.Parse("questions.yaml", []byte(questions))
	require.NoError(t, err)
	bridge, err := mcpbridge.New(mcpbridge.Options{Temporal: temporal, Catalog: tools})
	require.NoError(t, err)
	server := httptest.NewServer(bridge.Handler())
	t.Cleanup(server.Close)
	return server.URL + "/mcp"
}

// TestEndIsPushed: who follows a task learns of its end without polling for it.
func TestEndIsPushed(t *testing.T) {
	var out, err bytes.Buffer
	status := run(t.Context(), []string{"call", "pause", "--url", newQuestions(t), "--timeout", "5m"}, streams{
		In: strings.NewReader(""), Out: &out, Err: &err, Columns: func(any) int { return 0 },
	})
	assert.Zero(t, status, err.String())
	assert.Contains(t, out.String(), "paused")
}

// TestQuestionsInATerminal answers a confirmation and a form as a person at a terminal types, mistakes included.
func TestQuestionsInATerminal(t *testing.T) {
	endpoint := newQuestions(t)
	call := func(typed string) (status int, stdout, stderr string) {
		var out, err bytes.Buffer
		status = run(t.Context(), []string{"call", "deploy", "--url", endpoint}, streams{
			In: strings.NewReader(typed), Out: &out, Err: &err, Columns: func(any) int { return 80 },
		})
		return status, out.String(), err.String()
	}
	status, stdout, stderr := call("y\nproduction\nmany\n12\n3\ny\n")
	assert.Zero(t, status, stderr)
	assert.Contains(t, stderr, "Really?")
	assert.Contains(t, stderr, "Where to?")
	assert.Contains(t, stdout, "3 to production")

	status, _, stderr = call("n\n")
	assert.Equal(t, exitToolError, status)
	assert.Contains(t, stderr, "was not confirmed (decline); nothing was started")

	status, _, stderr = call("y\n:decline\n")
	assert.Equal(t, exitToolError, status)
	assert.Contains(t, stderr, "where was declined (decline)")
}
