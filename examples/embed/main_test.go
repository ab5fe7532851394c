package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"taskbridge/internal/mcpclient"
	"taskbridge/internal/testenv"
)

func TestRestart(t *testing.T) {
	tests := []struct{ name, answer, result string }{
		{"accepted", `{"action":"accept","content":{"Reason":"it leaks"}}`, "web was restarted: it leaks"},
		{"declined", `{"action":"decline"}`, "web was not restarted"},
	}
	server := start(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			outcome, err := server.Call(t.Context(), "restart", json.RawMessage(`{"Service":"web"}`), nil)
			require.NoError(t, err)
			require.NotNil(t, outcome.Task)
			asking := until(t, server, outcome.Task.ID, mcpclient.InputRequired)
			assert.Equal(t, "waiting for approval to restart web", asking.StatusMessage)
			assert.Contains(t, string(asking.InputRequests["question-1"].Params), "Restart web?")

			answers := map[string]json.RawMessage{"question-1": json.RawMessage(test.answer)}
			require.NoError(t, server.UpdateTask(t.Context(), outcome.Task.ID, answers))
			done := until(t, server, outcome.Task.ID, mcpclient.Completed)
			assert.False(t, done.Result.IsError)
			assert.JSONEq(t, `{"type":"text","text":"`+test.result+`"}`, string(done.Result.Content[0]))
		})
	}
}

// The example is to show how little a program of one's own needs.
func TestTheExampleIsShortAndInTheDocumentation(t *testing.T) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	assert.Less(t, bytes.Count(source, []byte("\n")), 60)
	document, err := os.ReadFile("../../docs/workflows.md")
	require.NoError(t, err)
	assert.Contains(t, string(document), "```go\n"+string(source)+"```\n", "docs/workflows.md has the whole program")
}

// start runs the program until the test ends.
func start(t *testing.T) *mcpclient.Client {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	options := client.Options{HostPort: testenv.Temporal(t).Address(), Logger: testenv.QuietLogger()}
	go func() { stopped <- run(ctx, options, listener) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-stopped)
	})
	return mcpclient.New("http://"+listener.Addr().String()+"/mcp", http.DefaultClient)
}

// until polls a task until it has a status.
func until(t *testing.T, server *mcpclient.Client, id string, status mcpclient.Status) *mcpclient.Task {
	var task *mcpclient.Task
	require.Eventually(t, func() bool {
		now, err := server.GetTask(t.Context(), id)
		if err != nil || now.Status != status {
			return false
		}
		task = now
		return true
	}, 30*time.Second, 50*time.Millisecond, "the task never became %s", status)
	return task
}
