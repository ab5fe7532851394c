package mcpbridge_test

import (
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"taskbridge/internal/devserver"
	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge"
)

// TestTemporalGoesAway: the front end says that it is not ready and why it cannot answer, and goes on living.
func TestTemporalGoesAway(t *testing.T) {
	server, err := devserver.Start(t.Context(), devserver.Options{NoUI: true, Log: os.Stderr})
	require.NoError(t, err)
	temporal, err := client.Dial(client.Options{HostPort: server.Address(), Logger: testenv.QuietLogger()})
	require.NoError(t, err)
	defer temporal.Close()
	f := newFront(t, temporal, mcpbridge.Options{}, tool(t, named("sleep"), Sleep))
	id := f.create("sleep", `{"seconds":1}`).TaskID
	require.NoError(t, server.Stop())

	assertError(t, f.send("tasks/get", map[string]any{"taskId": id}), http.StatusOK, -32603, "temporal is not available")
	assertError(t, f.call("sleep", `{"seconds":1}`), http.StatusOK, -32603, "temporal is not available")
	for path, status := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		answer, err := http.Get(f.url + path)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		assert.Equal(t, status, answer.StatusCode, "%s: %s", path, body)
	}
}
