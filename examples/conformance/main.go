// Command conformance is a fixture server for the official MCP conformance suite. The tools of its tasks scenarios are
// real Temporal workflows; base.go has what the base scenarios ask for.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"taskbridge/internal/devserver"
	"taskbridge/mcpbridge"
	"taskbridge/workflows"
)

const taskQueue = "conformance"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listen := flag.String("listen", "127.0.0.1:8080", "address to listen on; port 0 picks a free one")
	flag.Parse()
	if err := run(ctx, *listen, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// run serves the fixtures until ctx ends. It uses the Temporal server at TEMPORAL_ADDRESS, else starts a dev server.
func run(ctx context.Context, listen string, stdout, stderr io.Writer) error {
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	server, err := devserver.Start(ctx, devserver.Options{Address: os.Getenv("TEMPORAL_ADDRESS"), NoUI: true, Log: stderr})
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	logger := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	temporal, err := client.DialContext(ctx, client.Options{HostPort: server.Address(), Logger: log.NewStructuredLogger(logger)})
	if err != nil {
		return err
	}
	defer temporal.Close()

	bridge, err := mcpbridge.New(mcpbridge.Options{Temporal: temporal, ServerOptions: serverOptions(), Logger: logger})
	if err != nil {
		return err
	}
	addBaseFixtures(bridge.Server())
	w := worker.New(temporal, taskQueue, workflows.WorkerOptions())
	if err := addTaskFixtures(w, bridge); err != nil {
		return err
	}
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	_, _ = fmt.Fprintf(stdout, "MCP endpoint: http://%s/mcp\n", listener.Addr())
	return bridge.Serve(ctx, listener)
}
