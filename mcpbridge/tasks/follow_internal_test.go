package tasks

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"taskbridge/internal/devserver"
	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge/catalog"
)

func TestFollowGivesUpWhenTemporalStaysAway(t *testing.T) {
	server, err := devserver.Start(t.Context(), devserver.Options{NoUI: true, Log: os.Stderr})
	require.NoError(t, err)
	temporal, err := client.Dial(client.Options{HostPort: server.Address(), Logger: testenv.QuietLogger()})
	require.NoError(t, err)
	defer temporal.Close()
	service, err := New(temporal, Options{})
	require.NoError(t, err)
	service.patience = time.Second
	task, err := service.Create(t.Context(), Anonymous, Start{Tool: &catalog.Tool{Workflow: "Nowhere", TaskQueue: "nowhere"}})
	require.NoError(t, err)

	var errs []error
	var away time.Time
	for state, err := range service.Follow(t.Context(), Anonymous, task.ID, 0) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		require.Equal(t, Working, state.Status)
		require.NoError(t, server.Stop())
		away = time.Now()
	}
	require.Len(t, errs, 1)
	assert.ErrorIs(t, errs[0], ErrUnavailable)
	assert.Greater(t, time.Since(away), service.patience)
}
