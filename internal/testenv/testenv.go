// Package testenv gives tests the real parts they run against.
package testenv

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"taskbridge/internal/devserver"
)

// startTimeout allows for a first build of the dev server.
const startTimeout = 20 * time.Minute

var shared = sync.OnceValues(func() (*devserver.Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	return devserver.Start(ctx, devserver.Options{NoUI: true, Log: os.Stderr})
})

// Temporal is a dev server shared by the tests of a package. It ends with the test process.
func Temporal(t testing.TB) *devserver.Server {
	t.Helper()
	server, err := shared()
	require.NoError(t, err)
	return server
}

// Client is a client of [Temporal], closed when the test ends.
func Client(t testing.TB) client.Client {
	t.Helper()
	temporal, err := client.Dial(client.Options{HostPort: Temporal(t).Address(), Logger: QuietLogger()})
	require.NoError(t, err)
	t.Cleanup(temporal.Close)
	return temporal
}

// QuietLogger passes on the SDK's errors only.
func QuietLogger() log.Logger {
	return log.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
}
