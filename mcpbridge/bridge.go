// Package mcpbridge is the MCP front end: an HTTP server that runs tool calls as Temporal workflows and answers for
// their tasks.
//
// Inside, requests go transport → dialect → task service → Temporal: the transport (http.go) checks HTTP, a dialect
// (modern.go) knows the wire shapes of one protocol era, package tasks knows what a task is. The go-sdk (sdk.go) serves
// the base protocol around it.
package mcpbridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/internal/seal"
	"taskbridge/mcpbridge/tasks"
)

// StateKeySize is the length of Options.StateKey in bytes.
const StateKeySize = seal.KeySize

const (
	defaultMaxBody = 4 << 20
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	// shutdownGrace is how long requests in flight may take to finish when the bridge stops.
	shutdownGrace = 10 * time.Second
	// sessionTimeout ends sessions of earlier eras whose clients went away without a word.
	sessionTimeout = time.Hour
)

// Options of a [Bridge]. Only Temporal is required.
type Options struct {
	// Temporal is a connected client.
	Temporal client.Client
	// Namespace is the client's, "default" if empty.
	Namespace string
	// DataConverter is the client's, if it has one of its own.
	DataConverter converter.DataConverter
	// Catalog are the tools to begin with; [AddTool] adds more.
	Catalog *catalog.Catalog
	// Implementation names the server to its clients. Default "taskbridge".
	Implementation *mcp.Implementation
	// ServerOptions configure the base protocol; see [Bridge.Server].
	ServerOptions *mcp.ServerOptions
	// StateKey seals the state that travels through clients between the rounds of a call. Front ends that share it
	// ([StateKeySize] random bytes) can finish each other's calls; nil makes a random one for this process.
	StateKey []byte
	// MaxBody is the largest request body in bytes. Default 4 MiB.
	MaxBody int64
	// AllowedOrigins are browser origins beside the server's own, such as "https://app.example.com", that may call.
	AllowedOrigins []string
	// Logger receives one line for each failure that is the server's. Default slog.Default().
	Logger *slog.Logger
}

// Bridge is an MCP server on Temporal.
type Bridge struct {
	options   Options
	service   *tasks.Service
	tools     *toolSet
	server    *mcp.Server
	modern    *modern
	transport *httpTransport
	handler   http.Handler
}

// New makes a bridge. It does not talk to Temporal yet.
func New(o Options) (*Bridge, error) {
	if o.Temporal == nil {
		return nil, errors.New("mcpbridge: Options.Temporal is nil: it needs a connected Temporal client")
	}
	if o.Implementation == nil {
		o.Implementation = &mcp.Implementation{Name: "taskbridge", Version: Version()}
	}
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	service, err := tasks.New(o.Temporal, tasks.Options{Namespace: o.Namespace, DataConverter: o.DataConverter})
	if err != nil {
		return nil, fmt.Errorf("mcpbridge: %w", err)
	}
	sealer, err := seal.New(o.StateKey)
	if err != nil {
		return nil, fmt.Errorf("mcpbridge: Options.StateKey: %w", err)
	}
	b := &Bridge{options: o, service: service, tools: newToolSet()}
	b.modern, err = newModern(service, b.tools, sealer, o.Implementation)
	if err != nil {
		return nil, fmt.Errorf("mcpbridge: %w", err)
	}
	b.server = newServer(o)
	if o.Catalog != nil {
		for _, tool := range o.Catalog.Tools() {
			b.add(tool)
		}
	}
	if b.transport, err = newHTTPTransport(b.modern, b.server, o); err != nil {
		return nil, fmt.Errorf("mcpbridge: Options.AllowedOrigins: %w", err)
	}
	b.handler = b.transport.app(b.Ready)
	return b, nil
}

// add offers a tool in every dialect.
func (b *Bridge) add(tool *catalog.Tool) {
	b.tools.add(tool)
	b.server.AddTool(describeTool(tool), b.modern.synchronous(tool))
}

// Server is the go-sdk server behind the bridge, for prompts, resources and tools that are not workflows.
func (b *Bridge) Server() *mcp.Server { return b.server }

// Tools are the tools that run as workflows, ordered by name.
func (b *Bridge) Tools() []*catalog.Tool { return b.tools.list() }

// Handler serves /mcp, /healthz and /readyz.
func (b *Bridge) Handler() http.Handler { return b.handler }

// Ready reports whether Temporal answers and has the namespace; the error says which does not.
func (b *Bridge) Ready(ctx context.Context) error { return b.service.Check(ctx) }

// Serve answers requests on a listener until ctx ends, then gives requests in flight some seconds to finish. It fails at
// once when Temporal is not there.
func (b *Bridge) Serve(ctx context.Context, listener net.Listener) error {
	if err := b.Ready(ctx); err != nil {
		return err
	}
	server := &http.Server{
		Handler:           b.handler,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(b.options.Logger.Handler(), slog.LevelWarn),
	}
	server.RegisterOnShutdown(b.transport.stop)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	if err := server.Shutdown(grace); err != nil {
		return server.Close()
	}
	return nil
}
