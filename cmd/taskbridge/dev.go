package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"taskbridge/examples/demo"
	"taskbridge/internal/devserver"
	"taskbridge/mcpbridge"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/workflows"
)

// devOptions are the flags of `taskbridge dev`.
type devOptions struct {
	settings
	server devserver.Options
}

func newDevCommand(s settings, io streams) *cobra.Command {
	o := devOptions{settings: s}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything locally: Temporal dev server, worker and MCP front end",
		Long: "dev starts a Temporal dev server with its web UI, a worker for the bundled workflows and the MCP front end, in one\n" +
			"process tree that ends with it. Without --catalog it offers the demo tools, whose commands run in the working\n" +
			"directory. It uses the server at TEMPORAL_ADDRESS if that is set.",
		Example: "  taskbridge dev\n  taskbridge dev --db state.db --catalog tools.yaml",
		Args:    between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return dev(cmd.Context(), o, io)
		},
	}
	addServeFlags(cmd, &o.settings)
	cmd.Flags().StringSliceVar(&o.Catalog, "catalog", s.Catalog, "tool catalogs: YAML files or directories; default the demo tools")
	cmd.Flags().IntVar(&o.server.Port, "temporal-port", 7233, "port of the Temporal server; 0 picks a free one")
	cmd.Flags().IntVar(&o.server.UIPort, "ui-port", 8233, "port of the Temporal UI; 0 picks a free one")
	cmd.Flags().BoolVar(&o.server.NoUI, "no-ui", false, "do not start the Temporal UI")
	cmd.Flags().StringVar(&o.server.DBFile, "db", "", "keep Temporal's state in this file over restarts; default in memory")
	return cmd
}

func dev(ctx context.Context, o devOptions, io streams) error {
	tools, err := devCatalog(o.Catalog)
	if err != nil {
		return err
	}
	listener, err := listen(o.settings, io)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	connector, err := newConnector(o.settings, io)
	if err != nil {
		return err
	}
	o.server.Further = sorted(namespaces(tools.Tools()))
	server, err := startTemporal(ctx, connector, o.server, io)
	if err != nil {
		return err
	}
	defer func() { _ = server.Stop() }()
	temporal, err := connector.connect(ctx, tools.Tools())
	if err != nil {
		return err
	}
	defer temporal.Close()
	stop, err := startWorkers(connector, temporal, o.TaskQueue)
	if err != nil {
		return err
	}
	defer stop()
	bridge, err := newBridge(o.settings, io, temporal, tools)
	if err != nil {
		return err
	}
	endpoint := fmt.Sprintf("http://%s/mcp", listener.Addr())
	_, _ = fmt.Fprint(io.Out, welcome(endpoint, server, bridge))

	return serveWhile(ctx, server, func(ctx context.Context) error { return bridge.Serve(ctx, listener) })
}

// startTemporal starts a server, unless the environment names one, and has the connector use it.
func startTemporal(ctx context.Context, c *connector, o devserver.Options, io streams) (*devserver.Server, error) {
	standard, err := c.standard()
	if err != nil {
		return nil, err
	}
	o.Address, o.Client, o.Namespace, o.Log = standard.options.HostPort, standard.options, standard.options.Namespace, io.Err
	server, err := devserver.Start(ctx, o)
	switch {
	case err != nil && o.Address != "":
		return nil, standard.diagnose(ctx, err)
	case err != nil:
		return nil, err
	}
	c.profile.Address, c.local = server.Address(), !server.External()
	return server, nil
}

// startWorkers starts a worker in the default namespace, and in all others of a server of ours.
func startWorkers(c *connector, temporal *connections, taskQueue string) (stop func(), err error) {
	clients := []client.Client{temporal.Client}
	if c.local {
		for _, other := range temporal.others {
			clients = append(clients, other.Temporal)
		}
	}
	var started []worker.Worker
	stop = func() {
		for _, w := range started {
			w.Stop()
		}
	}
	for _, connected := range clients {
		w := workflows.NewWorker(connected, taskQueue)
		if err := w.Start(); err != nil {
			stop()
			return nil, fmt.Errorf("start worker: %w", err)
		}
		started = append(started, w)
	}
	return stop, nil
}

// serveWhile serves until ctx ends, or until the Temporal server does, which is an error.
func serveWhile(ctx context.Context, server *devserver.Server, serve func(context.Context) error) error {
	serving, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- serve(serving) }()
	select {
	case err := <-served:
		return err
	case <-server.Done():
		stop()
		return errors.Join(server.Err(), <-served)
	}
}

func devCatalog(paths []string) (*catalog.Catalog, error) {
	if len(paths) > 0 {
		return loadCatalog(paths)
	}
	l, err := loader()
	if err != nil {
		return nil, err
	}
	return l.Parse(demo.CatalogName, demo.Catalog)
}

// welcome is what dev prints once everything runs.
func welcome(endpoint string, server *devserver.Server, bridge *mcpbridge.Bridge) string {
	var text strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	say("taskbridge is running; Ctrl-C ends everything.")
	say("")
	say("  MCP endpoint  %s", endpoint)
	whose := ""
	if server.External() {
		whose = " (was running before)"
	}
	say("  Temporal      %s, namespace %s%s", server.Address(), server.Namespace(), whose)
	if server.UIURL() != "" {
		say("  Temporal UI   %s", server.UIURL())
	}
	say("")
	say("Tools:")
	tools := bridge.Tools()
	for _, tool := range tools {
		say("  %s", strings.TrimSpace(fmt.Sprintf("%-14s %s", tool.Name, firstLine(tool.Description))))
	}
	if len(tools) > 0 {
		say("")
		say("From a second terminal:")
		say("  %s call %s '{}'%s", commandName(), tools[0].Name, urlFlag(endpoint))
	}
	say("")
	say("From an MCP host:")
	say("  Claude Code   claude mcp add --transport http taskbridge %s", endpoint)
	say(`  VS Code       code --add-mcp '{"name":"taskbridge","type":"http","url":"%s"}'`, endpoint)
	say("  Codex         codex mcp add taskbridge --url %s", endpoint)
	say("  Inspector     npx @modelcontextprotocol/inspector --cli %s --transport http --method tools/list", endpoint)
	say("")
	return text.String()
}

// commandName is how to call this program from where it was started: a checkout needs no installed one.
func commandName() string {
	if _, err := os.Stat("cmd/taskbridge/main.go"); err == nil {
		return "go run ./cmd/taskbridge"
	}
	return "taskbridge"
}

// urlFlag is the flag that the client commands need to reach another than the default endpoint.
func urlFlag(endpoint string) string {
	if endpoint == "http://127.0.0.1:8080/mcp" {
		return ""
	}
	return " --url " + endpoint
}
