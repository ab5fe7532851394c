package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"taskbridge/mcpbridge"
	"taskbridge/mcpbridge/catalog"
)

func newServeCommand(s settings, io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the tools of a catalog over MCP, on an existing Temporal server",
		Long: "serve is the MCP front end. It needs a Temporal server and at least one catalog, and keeps no state: run as many\n" +
			"as you like behind a load balancer, with the same TASKBRIDGE_STATE_KEY.",
		Example: "  TEMPORAL_ADDRESS=127.0.0.1:7233 taskbridge serve --catalog tools.yaml",
		Args:    between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), s, io)
		},
	}
	addServeFlags(cmd, &s)
	cmd.Flags().StringSliceVar(&s.Catalog, "catalog", s.Catalog, "tool catalogs: YAML files or directories")
	return cmd
}

func addServeFlags(cmd *cobra.Command, s *settings) {
	cmd.Flags().StringVar(&s.Listen, "listen", s.Listen, "address to listen on; port 0 picks a free one")
	cmd.Flags().BoolVar(&s.Insecure, "insecure", s.Insecure, "listen on other than loopback addresses although callers are not authenticated")
}

func serve(ctx context.Context, s settings, io streams) error {
	if len(s.Catalog) == 0 {
		return exitError{exitUsage, errors.New("serve needs a tool catalog: name it with --catalog or TASKBRIDGE_CATALOG")}
	}
	tools, err := loadCatalog(s.Catalog)
	if err != nil {
		return err
	}
	listener, err := listen(s, io)
	if err != nil {
		return err
	}
	temporal, err := connectAll(ctx, s, io, tools.Tools())
	if err != nil {
		return err
	}
	defer temporal.Close()
	bridge, err := newBridge(s, io, temporal, tools)
	if err != nil {
		return err
	}
	if err := bridge.Ready(ctx); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(io.Out, "MCP endpoint: http://%s/mcp\n", listener.Addr())
	return bridge.Serve(ctx, listener)
}

// collectRarely makes garbage collections rare. What a front end keeps is a few megabytes, so that by default it would collect
// many times a second under load; it trades some tens of megabytes for a tenth of its time. GOGC says otherwise.
func collectRarely() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

func newBridge(s settings, io streams, temporal *connections, tools *catalog.Catalog) (*mcpbridge.Bridge, error) {
	collectRarely()
	return mcpbridge.New(mcpbridge.Options{
		Temporal:       temporal.Client,
		Namespace:      temporal.namespace,
		Namespaces:     temporal.others,
		Catalog:        tools,
		StateKey:       s.StateKey,
		MaxBody:        s.MaxBody,
		AllowedOrigins: s.AllowedOrigins,
		MaxSessions:    s.MaxSessions,
		SessionTimeout: s.SessionTimeout,
		Logger:         newLogger(io.Err, s.LogLevel),
	})
}

// listen opens the front end's address, early, so that a taken port is found before anything is started.
func listen(s settings, io streams) (net.Listener, error) {
	if err := s.checkListen(); err != nil {
		return nil, exitError{exitUsage, err}
	}
	if s.Insecure {
		_, _ = fmt.Fprintln(io.Err, "taskbridge: WARNING: --insecure: whoever reaches this address can start, read, answer and cancel tasks")
	}
	listener, err := net.Listen("tcp", s.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("address %s is already in use: choose another with --listen, or port 0 for a free one", s.Listen)
	}
	if err != nil {
		return nil, fmt.Errorf("listen: %w", unwrapOp(err))
	}
	return listener, nil
}

// unwrapOp shortens "listen tcp 1.2.3.4:80: bind: permission denied" to what follows the operation.
func unwrapOp(err error) error {
	var system *os.SyscallError
	if errors.As(err, &system) {
		return system
	}
	return err
}
