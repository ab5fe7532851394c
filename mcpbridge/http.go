package mcpbridge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/session"
	"taskbridge/mcpbridge/tasks"
)

const (
	readyTimeout = 3 * time.Second
	// bodyTimeout is how long a client may take to send a request's body.
	bodyTimeout = 30 * time.Second
	usualBody   = 64 << 10
)

// httpTransport is the Streamable HTTP transport: it checks what HTTP adds to a message and passes the message to
// whoever serves it: the modern dialect, the go-sdk for the rest of the modern base protocol, or the sessions of earlier
// eras.
type httpTransport struct {
	modern    *modern
	stateless http.Handler
	sessions  *session.Handler
	maxBody   int64
	origins   []string
	log       *slog.Logger
}

func newHTTPTransport(d *modern, server *mcp.Server, sessions *session.Handler, o Options) (*httpTransport, error) {
	for _, origin := range o.AllowedOrigins {
		parsed, err := url.Parse(origin)
		if err != nil || parsed.Scheme == "" || parsed.Host == "" || parsed.Path != "" {
			return nil, fmt.Errorf("allowed origin %q: write scheme and host only, such as https://app.example.com", origin)
		}
	}
	return &httpTransport{
		modern:    d,
		stateless: statelessHandler(server),
		sessions:  sessions,
		maxBody:   o.MaxBody,
		origins:   o.AllowedOrigins,
		log:       o.Logger,
	}, nil
}

// app is the Echo application: /mcp and the health probes.
func (t *httpTransport) app(ready func(context.Context) error) *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Use(middleware.RecoverWithConfig(middleware.RecoverConfig{LogErrorFunc: t.logPanic}))
	e.Any("/mcp", t.serve, t.guard)
	e.GET("/healthz", func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	e.GET("/readyz", func(c echo.Context) error {
		ctx, cancel := context.WithTimeout(c.Request().Context(), readyTimeout)
		defer cancel()
		if err := ready(ctx); err != nil {
			return c.String(http.StatusServiceUnavailable, err.Error()+"\n")
		}
		return c.String(http.StatusOK, "ok\n")
	})
	return e
}

func (t *httpTransport) logPanic(c echo.Context, err error, stack []byte) error {
	t.log.Error("request handler panicked", "path", c.Path(), "error", err, "stack", string(stack))
	return echo.NewHTTPError(http.StatusInternalServerError)
}

// guard refuses what a page in a browser could send on its own: calls from other origins, and calls to a loopback
// address under a foreign name (DNS rebinding; Streamable HTTP, "Security & Endpoint").
func (t *httpTransport) guard(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if host := r.Host; isLoopbackConnection(r) && !isLoopbackHost(host) {
			return t.fail(c, http.StatusForbidden, nil, rpc.Errorf(rpc.CodeInvalidRequest, "Host %q is not this server's: use a loopback address or localhost", host))
		}
		if origin := r.Header.Get(echo.HeaderOrigin); origin != "" && !t.allows(origin, r.Host) {
			return t.fail(c, http.StatusForbidden, nil, rpc.Errorf(rpc.CodeInvalidRequest, "Origin %q may not call this server", origin))
		}
		return next(c)
	}
}

func (t *httpTransport) allows(origin, host string) bool {
	if slices.Contains(t.origins, origin) {
		return true
	}
	// A page may call the server that it came from. That its name is the one it calls proves nothing, as its owner could
	// point that name here; an address or localhost nobody else can have.
	parsed, err := url.Parse(origin)
	return err == nil && parsed.Host == host && (isLoopbackHost(host) || net.ParseIP(parsed.Hostname()) != nil)
}

func isLoopbackConnection(r *http.Request) bool {
	address, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && isLoopbackHost(address.String())
}

// isForwarded reports whether a proxy says that the request is not its own.
func isForwarded(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip", "Via"} {
		if r.Header.Get(name) != "" {
			return true
		}
	}
	return false
}

func isLoopbackHost(hostport string) bool {
	host := hostport
	if name, _, err := net.SplitHostPort(hostport); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback()
}

// serve answers one HTTP request.
func (t *httpTransport) serve(c echo.Context) error {
	r := c.Request()
	if r.Method != http.MethodPost {
		// Earlier revisions open streams by GET and end sessions by DELETE; this one has neither.
		if r.Header.Get("Mcp-Session-Id") == "" {
			c.Response().Header().Set(echo.HeaderAllow, http.MethodPost)
			return c.NoContent(http.StatusMethodNotAllowed)
		}
		t.sessions.ServeHTTP(c.Response(), r, nil)
		return nil
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType)); err != nil || media != echo.MIMEApplicationJSON {
		return t.fail(c, http.StatusUnsupportedMediaType, nil, rpc.Errorf(rpc.CodeInvalidRequest, "Content-Type must be application/json"))
	}
	connection := http.NewResponseController(c.Response())
	_ = connection.SetReadDeadline(time.Now().Add(bodyTimeout)) // not all connections have deadlines
	body, err := t.readBody(r)
	if err != nil {
		return t.refuseBody(c, err)
	}
	_ = connection.SetReadDeadline(time.Time{})
	return t.dispatch(c, body)
}

// dispatch passes a message to whoever serves its era and method.
func (t *httpTransport) dispatch(c echo.Context, body []byte) error {
	r := c.Request()
	message, rpcErr := rpc.Decode(body)
	request := &request{id: message.ID, method: message.Method, owner: tasks.Anonymous, raw: message.Params, header: r.Header}
	paramsErr := message.DecodeParams(&request.params)
	if t.isLegacy(r, message.Method, request.params.Meta) {
		t.sessions.ServeHTTP(c.Response(), r, body)
		return nil
	}
	if rpcErr = cmp.Or(rpcErr, paramsErr); rpcErr != nil {
		return t.fail(c, http.StatusBadRequest, message.ID, rpcErr)
	}
	if message.IsNotification() {
		return c.NoContent(http.StatusAccepted)
	}
	if rpcErr := t.modern.checkEnvelope(r.Header, request); rpcErr != nil {
		return t.fail(c, http.StatusBadRequest, message.ID, rpcErr)
	}
	if !t.modern.serves(request.method, request.params.Name) {
		if rpcErr := rpc.CheckExact(message.ID); rpcErr != nil {
			return t.fail(c, http.StatusBadRequest, message.ID, rpcErr)
		}
		decodeName(r.Header, request)
		return t.pass(c, body)
	}
	return t.handle(c, request)
}

// handle has the modern dialect answer a request.
func (t *httpTransport) handle(c echo.Context, request *request) error {
	ctx, id := c.Request().Context(), request.id
	listens := request.method == "subscriptions/listen"
	if !listens && request.method != "tools/call" { // which alone take time
		result, rpcErr := t.modern.handle(ctx, request)
		if rpcErr != nil {
			return t.fail(c, httpStatus(rpcErr), id, rpcErr)
		}
		return c.JSONBlob(http.StatusOK, rpc.ResultResponse(id, result))
	}
	reply := newReply(c)
	if listens && !reply.streams {
		return t.fail(c, http.StatusNotAcceptable, id, rpc.Errorf(rpc.CodeInvalidRequest, "header Accept must list text/event-stream: %s is answered by a stream", request.method))
	}
	request.notify = reply.notify
	reply.keepAlive()
	defer reply.end()
	result, rpcErr := t.modern.handle(ctx, request)
	if rpcErr != nil {
		t.logFailure(ctx, rpcErr)
		return reply.finish(httpStatus(rpcErr), rpc.ErrorResponse(id, rpcErr))
	}
	return reply.finish(http.StatusOK, rpc.ResultResponse(id, result))
}

// isLegacy reports whether a message belongs to an era with sessions: it has one, opens one, or says so by its version.
func (t *httpTransport) isLegacy(r *http.Request, method string, meta *requestMeta) bool {
	if meta != nil && meta.ProtocolVersion != "" {
		return false
	}
	version := r.Header.Get("Mcp-Protocol-Version")
	if version != "" {
		return version < modernVersion && slices.Contains(t.modern.versions, version)
	}
	return method == "initialize" || r.Header.Get("Mcp-Session-Id") != ""
}

// pass hands a modern request to the go-sdk, with the body it has not seen yet.
func (t *httpTransport) pass(c echo.Context, body []byte) error {
	r := c.Request()
	r.Body = io.NopCloser(bytes.NewReader(body))
	c.Response().Header().Set("X-Accel-Buffering", "no")
	t.stateless.ServeHTTP(c.Response(), r)
	return nil
}

// fail answers with a JSON-RPC error.
func (t *httpTransport) fail(c echo.Context, status int, id []byte, err *rpc.Error) error {
	t.logFailure(c.Request().Context(), err)
	return c.JSONBlob(status, rpc.ErrorResponse(id, err))
}

// logFailure logs a failure that is the server's, and not that of a client which has gone.
func (t *httpTransport) logFailure(ctx context.Context, err *rpc.Error) {
	if err.Code == rpc.CodeInternalError && ctx.Err() == nil {
		t.log.Error("request failed", "error", err.Message)
	}
}

// httpStatus is the HTTP status for an error of a dialect. Errors of the protocol have one of their own; errors about
// what a well-formed request asks for do not.
func httpStatus(err *rpc.Error) int {
	switch err.Code {
	case rpc.CodeHeaderMismatch, rpc.CodeMissingCapability, rpc.CodeUnsupportedProtocolVersion, rpc.CodeInvalidRequest:
		return http.StatusBadRequest
	case rpc.CodeMethodNotFound:
		return http.StatusNotFound
	}
	return http.StatusOK
}

// readBody reads a whole body of at most maxBody bytes.
func (t *httpTransport) readBody(r *http.Request) ([]byte, error) {
	if r.ContentLength > t.maxBody {
		return nil, &http.MaxBytesError{Limit: t.maxBody}
	}
	var body bytes.Buffer
	if r.ContentLength > 0 { // which is but a promise, so no more than a usual request is paid in advance
		body.Grow(int(min(r.ContentLength, usualBody)) + bytes.MinRead)
	}
	_, err := body.ReadFrom(http.MaxBytesReader(nil, r.Body, t.maxBody))
	return body.Bytes(), err
}

func (t *httpTransport) refuseBody(c echo.Context, err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		// A client that writes all before it reads would see a reset connection instead of the reason.
		_, _ = io.CopyN(io.Discard, c.Request().Body, t.maxBody)
		return t.fail(c, http.StatusRequestEntityTooLarge, nil, rpc.Errorf(rpc.CodeInvalidRequest, "the request body is larger than %d bytes: pass a reference to large data, such as a URL or a path", tooLarge.Limit))
	}
	return t.fail(c, http.StatusBadRequest, nil, rpc.Errorf(rpc.CodeInvalidRequest, "the request body could not be read: %v", err))
}
