package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"

	"taskbridge/mcpbridge"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/cluster"
	"taskbridge/mcpbridge/codec"
)

// connector connects to Temporal as the standard TEMPORAL_* variables and profiles say.
type connector struct {
	profile envconfig.ClientConfigProfile // of the default connection
	local   bool                          // its server is ours: all namespaces are there, whatever profiles say
	looking bool                          // what tools need is not required to be there
	keys    []codec.Key
	log     *slog.Logger // taskbridge's own
	sdkLog  log.Logger
}

// connections are clients of the namespaces that a catalog's tools need.
type connections struct {
	client.Client // the default one
	namespace     string
	others        map[string]mcpbridge.Namespace
}

// place is a namespace on a server, and how to talk to it.
type place struct {
	options client.Options
	codec   converter.PayloadCodec // nil encodes nothing
	profile string                 // that says so; "" for the default connection
	tools   []string               // that need the namespace
}

func newConnector(s settings, io streams) (*connector, error) {
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{})
	if err != nil {
		return nil, fmt.Errorf("temporal connection: %w", err)
	}
	profile.Namespace = cmp.Or(profile.Namespace, client.DefaultNamespace)
	return &connector{
		profile: profile,
		keys:    s.PayloadKeys,
		log:     newLogger(io.Err, s.LogLevel),
		sdkLog:  log.NewStructuredLogger(temporalLogger(io.Err, s.LogLevel)),
	}, nil
}

// connectAll connects to Temporal for tools.
func connectAll(ctx context.Context, s settings, io streams, tools []*catalog.Tool) (*connections, error) {
	c, err := newConnector(s, io)
	if err != nil {
		return nil, err
	}
	return c.connect(ctx, tools)
}

// connect connects to the default namespace and to those that tools name, and sees to what the tools need there.
func (c *connector) connect(ctx context.Context, tools []*catalog.Tool) (*connections, error) {
	all, err := c.connectTo(ctx, namespaces(tools))
	if err != nil {
		return nil, err
	}
	if err := c.searchAttributes(ctx, all.cluster(), tools); err != nil {
		all.Close()
		return nil, err
	}
	return all, nil
}

// connectTo connects to the default namespace, and to others that tools, by their names, need.
func (c *connector) connectTo(ctx context.Context, needs map[string][]string) (*connections, error) {
	standard, err := c.standard()
	if err != nil {
		return nil, err
	}
	standard.tools = needs[standard.options.Namespace]
	connected, err := c.dial(ctx, standard, nil)
	if err != nil {
		return nil, err
	}
	all := &connections{connected, standard.options.Namespace, map[string]mcpbridge.Namespace{}}
	delete(needs, all.namespace)
	if err := c.connectOthers(ctx, all, standard, needs); err != nil {
		all.Close()
		return nil, err
	}
	return all, nil
}

// searchAttributes sees to it that those that tools set are there: without them no workflow starts.
func (c *connector) searchAttributes(ctx context.Context, there cluster.Cluster, tools []*catalog.Tool) error {
	if c.looking {
		return nil
	}
	if c.local {
		return there.CreateSearchAttributes(ctx, tools)
	}
	return there.CheckSearchAttributes(ctx, tools)
}

// in is the client of one of the namespaces.
func (c *connections) in(namespace string) client.Client {
	if other, found := c.others[namespace]; found {
		return other.Temporal
	}
	return c.Client
}

// cluster is where the tools run.
func (c *connections) cluster() cluster.Cluster {
	clients := map[string]client.Client{c.namespace: c.Client}
	for name, other := range c.others {
		clients[name] = other.Temporal
	}
	return cluster.Cluster{Namespace: c.namespace, Clients: clients}
}

func (c *connector) connectOthers(ctx context.Context, all *connections, standard place, needs map[string][]string) error {
	profiles, err := c.profiles()
	if err != nil {
		return err
	}
	for _, namespace := range sorted(needs) {
		other, err := c.other(standard, profiles, namespace)
		if err != nil {
			return err
		}
		other.tools = needs[namespace]
		shared := all.Client
		if other.profile != "" {
			shared = nil
		}
		connected, err := c.dial(ctx, other, shared)
		if err != nil {
			return err
		}
		all.others[namespace] = mcpbridge.Namespace{Temporal: connected}
	}
	return nil
}

// profiles are those of the configuration file that may have a namespace of a tool.
func (c *connector) profiles() (map[string]*envconfig.ClientConfigProfile, error) {
	if c.local {
		return nil, nil
	}
	file, err := envconfig.LoadClientConfig(envconfig.LoadClientConfigOptions{})
	if err != nil {
		return nil, fmt.Errorf("temporal connection: %w", err)
	}
	return file.Profiles, nil
}

// Close closes all of them.
func (c *connections) Close() {
	c.Client.Close()
	for _, other := range c.others {
		other.Temporal.Close()
	}
}

// namespaces are the names of tools by the namespace that they name.
func namespaces(tools []*catalog.Tool) map[string][]string {
	needs := map[string][]string{}
	for _, tool := range tools {
		if tool.Namespace != "" {
			needs[tool.Namespace] = append(needs[tool.Namespace], tool.Name)
		}
	}
	return needs
}

// standard is the place of the default connection.
func (c *connector) standard() (place, error) { return c.place(c.profile, "") }

// other is the place of a namespace that tools name: where the profile with it says, else beside the standard one.
func (c *connector) other(standard place, profiles map[string]*envconfig.ClientConfigProfile, namespace string) (place, error) {
	var found []string
	for _, name := range sorted(profiles) {
		if profiles[name].Namespace == namespace {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		standard.options.Namespace = namespace
		return standard, nil
	case 1:
		profile := *profiles[found[0]]
		if profile.Codec == nil { // rather encoded than not
			profile.Codec = c.profile.Codec
		}
		return c.place(profile, found[0])
	default:
		return place{}, fmt.Errorf("namespace %q, which a tool needs, is in the profiles %s: leave it in one", namespace, strings.Join(found, " and "))
	}
}

// place is what a profile says; name is "" for the default connection.
func (c *connector) place(profile envconfig.ClientConfigProfile, name string) (place, error) {
	p := place{profile: name}
	var err error
	if profile.APIKey != "" && profile.TLS != nil && profile.TLS.Disabled {
		err = errors.New("it has an API key and no TLS, so that the key would be sent in the clear: remove TEMPORAL_TLS=false (in a profile, tls.disabled), or TEMPORAL_API_KEY (api_key)")
	}
	if err == nil {
		p.options, err = profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	}
	if err == nil {
		p.codec, err = c.codec(profile)
	}
	if err != nil {
		return p, p.errorf("%w", err)
	}
	p.options.Logger = c.sdkLog
	// What a front end and Temporal tell each other is small: to compress it takes both longer than to send it.
	p.options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	if p.codec != nil {
		codec.Use(&p.options, p.codec)
	}
	return p, nil
}

// codec is that of our own keys, or the codec server of a profile, or nil.
func (c *connector) codec(profile envconfig.ClientConfigProfile) (converter.PayloadCodec, error) {
	var server envconfig.ClientConfigCodec
	if profile.Codec != nil {
		server = *profile.Codec
	}
	switch {
	case len(c.keys) > 0 && server.Endpoint != "":
		return nil, errors.New("there are both keys (TASKBRIDGE_PAYLOAD_KEYS) and a codec server (TEMPORAL_CODEC_ENDPOINT; in a profile, codec.endpoint): one of them encodes, so remove the other")
	case len(c.keys) > 0:
		return codec.NewAES(c.keys...)
	case server.Endpoint != "":
		return codec.NewServer(server.Endpoint, server.Auth)
	case server.Auth != "":
		return nil, errors.New("there is TEMPORAL_CODEC_AUTH without a codec server: name that with TEMPORAL_CODEC_ENDPOINT (in a profile, codec.endpoint)")
	}
	return nil, nil
}

// dial connects, over the connection of another client if there is one, and checks that everything works: the server and,
// unless we are only looking, the namespace and the codec.
func (c *connector) dial(ctx context.Context, p place, shared client.Client) (client.Client, error) {
	connected, err := open(ctx, p.options, shared)
	if err != nil {
		return nil, p.diagnose(ctx, err)
	}
	if c.looking {
		return connected, nil
	}
	if err := p.check(ctx, connected); err != nil {
		connected.Close()
		return nil, err
	}
	c.warnOfUnreadable(ctx, p, connected)
	return connected, nil
}

func open(ctx context.Context, options client.Options, shared client.Client) (client.Client, error) {
	if shared == nil {
		return client.DialContext(ctx, options)
	}
	return client.NewClientFromExistingWithContext(ctx, shared, options)
}

func sorted[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
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
