package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
)

// temporalOptions are client options from the standard TEMPORAL_* variables and profiles. HostPort stays empty if
// neither names an address.
func temporalOptions(logger *slog.Logger) (client.Options, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return options, fmt.Errorf("temporal connection: %w", err)
	}
	options.Logger = log.NewStructuredLogger(logger)
	return options, nil
}

// dial connects to Temporal and checks that it answers.
func dial(ctx context.Context, options client.Options) (client.Client, error) {
	temporal, err := client.DialContext(ctx, options)
	if err != nil {
		address := options.HostPort
		if address == "" {
			address = client.DefaultHostPort
		}
		return nil, fmt.Errorf("no Temporal server answers at %s: %w\nStart one with `taskbridge dev`, or name another with TEMPORAL_ADDRESS", address, err)
	}
	return temporal, nil
}

func newLogger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// temporalLogger passes on only what goes wrong: at info, the SDK tells about every poller.
func temporalLogger(w io.Writer, level slog.Level) *slog.Logger {
	return newLogger(w, max(level, slog.LevelWarn))
}
