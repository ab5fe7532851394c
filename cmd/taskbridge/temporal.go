package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
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

// connect connects to the Temporal server that the environment names, and returns its namespace.
func connect(ctx context.Context, s settings, io streams) (client.Client, string, error) {
	options, err := temporalOptions(temporalLogger(io.Err, s.LogLevel))
	if err != nil {
		return nil, "", err
	}
	connected, err := dial(ctx, options)
	return connected, options.Namespace, err
}

// dial connects to Temporal and checks that it answers and has the namespace.
func dial(ctx context.Context, options client.Options) (client.Client, error) {
	connected, err := client.DialContext(ctx, options)
	if err != nil {
		address := cmp.Or(options.HostPort, client.DefaultHostPort)
		return nil, fmt.Errorf("no Temporal server answers at %s: %w\nStart one with `taskbridge dev`, or name another with TEMPORAL_ADDRESS", address, err)
	}
	namespace := cmp.Or(options.Namespace, client.DefaultNamespace)
	_, err = connected.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	var missing *serviceerror.NamespaceNotFound
	if errors.As(err, &missing) {
		connected.Close()
		return nil, fmt.Errorf("temporal has no namespace %q: create it with `temporal operator namespace create -n %s`", namespace, namespace)
	}
	return connected, nil // any other error may pass, and is met again where it matters
}

func newLogger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// temporalLogger passes on only what goes wrong: at info, the SDK tells about every poller.
func temporalLogger(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(withoutCancels{newLogger(w, max(level, slog.LevelWarn)).Handler()})
}

// withoutCancels drops what the SDK says of cancelled activities: it calls their end an error, but somebody wanted it.
type withoutCancels struct{ slog.Handler }

func (h withoutCancels) Handle(ctx context.Context, record slog.Record) error {
	cancelled := false
	record.Attrs(func(attr slog.Attr) bool {
		err, ok := attr.Value.Any().(error)
		cancelled = ok && (errors.Is(err, context.Canceled) || temporal.IsCanceledError(err))
		return !cancelled
	})
	if cancelled {
		return nil
	}
	return h.Handler.Handle(ctx, record)
}

func (h withoutCancels) WithAttrs(attrs []slog.Attr) slog.Handler {
	return withoutCancels{h.Handler.WithAttrs(attrs)}
}

func (h withoutCancels) WithGroup(name string) slog.Handler {
	return withoutCancels{h.Handler.WithGroup(name)}
}
