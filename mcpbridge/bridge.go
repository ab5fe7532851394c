// Package mcpbridge is the MCP front end: it runs tool calls as Temporal workflows and answers for their tasks, over HTTP
// and stdio, to clients of all protocol eras.
//
// Inside, requests go transport → dialect → task service → Temporal. Transports are http.go and stdio.go, with the
// sessions of earlier eras in internal/session. Dialects know the wire shapes of one era each: modern.go (2026-07-28 and
// the Tasks extension; its subscriptions are in listen.go), legacy.go (sessions and plain calls), core.go (the tasks of 2025-11-25), proposal.go (SEP-1686).
// waiter.go is what calls have in common that wait for a result. Package tasks knows what a task is. The go-sdk (sdk.go)
// serves the base protocol around it.
package mcpbridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/internal/seal"
	"taskbridge/mcpbridge/internal/session"
	"taskbridge/mcpbridge/tasks"
)

// StateKeySize is the length of Options.StateKey in bytes.
const StateKeySize = seal.KeySize

const (
	defaultMaxBody        = 4 << 20
	defaultMaxSessions    = 10_000
	defaultSessionTimeout = 30 * time.Minute
	// maxWatches is how many tasks of sessions may be watched at once to push their changes: each takes one of about 1,200
	// long-polls that Temporal allows by default.
	maxWatches    = 256
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// shutdownGrace is how long requests in flight may take to finish when the bridge stops.
	shutdownGrace = 10 * time.Second
)

// Options of a [Bridge]. Only Temporal is required.
type Options struct {
	// Temporal is a connected client.
	Temporal client.Client
	// Namespace is the client's, "default" if empty.
	Namespace string
	// DataConverter is the client's, if it has one of its own.
	DataConverter converter.DataConverter
	// Namespaces are the connections for tools of other namespaces than Namespace, by name.
	Namespaces map[string]Namespace
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
	// MaxSessions is how many sessions of earlier protocol revisions there may be at once. Default 10,000.
	MaxSessions int
	// SessionTimeout ends a session whose client has had no connection for that long. Default 30 minutes.
	SessionTimeout time.Duration
	// Logger receives one line for each failure that is the server's. Default slog.Default().
	Logger *slog.Logger
}

// Namespace is a connection to a Temporal namespace.
type Namespace struct {
	// Temporal is a connected client.
	Temporal client.Client
	// DataConverter is the client's, if it has one of its own.
	DataConverter converter.DataConverter
}

// Bridge is an MCP server on Temporal.
type Bridge struct {
	options  Options
	service  *tasks.Service
	tools    *toolSet
	server   *mcp.Server
	shared   *shared
	modern   *modern
	sessions *session.Handler
	watches  chan struct{}
	handler  http.Handler
	stop     context.CancelFunc
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
	if o.MaxSessions == 0 {
		o.MaxSessions = defaultMaxSessions
	}
	if o.SessionTimeout == 0 {
		o.SessionTimeout = defaultSessionTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	tools := newToolSet()
	service, err := tasks.New(o.Temporal, tasks.Options{
		Namespace: o.Namespace, DataConverter: o.DataConverter, Others: o.others(), Tool: tools.get,
	})
	if err != nil {
		return nil, fmt.Errorf("mcpbridge: %w", err)
	}
	sealer, err := seal.New(o.StateKey)
	if err != nil {
		return nil, fmt.Errorf("mcpbridge: Options.StateKey: %w", err)
	}
	b := &Bridge{options: o, service: service, tools: tools, watches: make(chan struct{}, maxWatches)}
	b.shared = &shared{service: service, tools: b.tools, sealer: sealer, waiting: newWaitingCalls(), log: o.Logger}
	b.shared.stopping, b.stop = context.WithCancel(context.Background())
	b.server = b.shared.newServer(o)
	if b.modern, err = newModern(b.shared, b.server, o.Implementation); err != nil {
		return nil, fmt.Errorf("mcpbridge: %w", err)
	}
	if o.Catalog != nil {
		for _, tool := range o.Catalog.Tools() {
			if err := b.add(tool); err != nil {
				return nil, err
			}
		}
	}
	b.sessions = b.newSessions()
	transport, err := newHTTPTransport(b.modern, b.server, b.sessions, o)
	if err != nil {
		return nil, fmt.Errorf("mcpbridge: Options.AllowedOrigins: %w", err)
	}
	b.handler = transport.app(b.Ready)
	return b, nil
}

// others are the connections to other namespaces, by name.
func (o Options) others() (others []tasks.Namespace) {
	for _, name := range slices.Sorted(maps.Keys(o.Namespaces)) {
		others = append(others, tasks.Namespace{Name: name, Temporal: o.Namespaces[name].Temporal, DataConverter: o.Namespaces[name].DataConverter})
	}
	return others
}

// newSessions serves the clients of earlier eras over HTTP.
func (b *Bridge) newSessions() *session.Handler {
	return session.NewHandler(session.Options{
		Server:   b.server,
		Versions: legacyVersions(),
		Open: func(r *http.Request) (context.Context, session.Dialect) {
			return b.newConversation(r.Context(), isLoopbackConnection(r) && !isForwarded(r))
		},
		Max:      b.options.MaxSessions,
		Timeout:  b.options.SessionTimeout,
		Stopping: b.shared.stopping,
		Log:      b.options.Logger,
	})
}

// newConversation is the dialect of a new session. Tasks may be listed if only the owner can be at the other end.
func (b *Bridge) newConversation(ctx context.Context, listable bool) (context.Context, *conversation) {
	c := &conversation{shared: b.shared, owner: tasks.Anonymous, listable: listable, watches: b.watches}
	return context.WithValue(ctx, conversationKey{}, c), c
}

// add offers a tool in every dialect, and the companions with the first tool that needs them. The error is that there is no
// connection to the tool's namespace.
func (b *Bridge) add(tool *catalog.Tool) error {
	if err := b.service.CheckTool(tool); err != nil {
		return fmt.Errorf("mcpbridge: %w: add it to Options.Namespaces", err)
	}
	needsCompanions := b.tools.add(tool)
	b.server.AddTool(describeTool(tool), servedByDialect)
	if needsCompanions {
		for _, companion := range companionTools() {
			b.server.AddTool(companion, servedByDialect)
		}
	}
	return nil
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
	server.RegisterOnShutdown(b.stop)
	defer b.sessions.EndAll(session.ErrShutdown)
	defer b.stop()
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
