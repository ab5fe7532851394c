package session_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/session"
)

// The protocol versions that have sessions.
const (
	march2025    = "2025-03-26"
	june2025     = "2025-06-18"
	november2025 = "2025-11-25"
)

var versions = []string{november2025, june2025, march2025}

// soon is how long a test waits for what must come.
const soon = 20 * time.Second

// dialect serves methods by functions.
type dialect map[string]func(context.Context, *session.Call) ([]byte, *rpc.Error)

func (d dialect) Serves(c *session.Call) bool { return d[c.Method] != nil }

func (d dialect) Serve(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
	return d[c.Method](ctx, c)
}

// newBase is the server behind the sessions, with these tools.
func newBase(tools map[string]mcp.ToolHandler) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "base", Version: "1"}, nil)
	server.AddReceivingMiddleware(session.Middleware)
	for name, handler := range tools {
		addTool(server, name, handler)
	}
	return server
}

func addTool(server *mcp.Server, name string, handler mcp.ToolHandler) {
	server.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, handler)
}

// endpoint serves sessions over real HTTP.
type endpoint struct {
	t       testing.TB
	handler *session.Handler
	base    *mcp.Server
	url     string
	http    *http.Client
	stop    context.CancelFunc
}

// newEndpoint makes an endpoint. After the test and all that it opened, no goroutine may be left.
func newEndpoint(t testing.TB, d dialect, tools map[string]mcp.ToolHandler, change ...func(*session.Options)) endpoint {
	t.Helper()
	leavesNothing(t)
	stopping, stop := context.WithCancel(context.Background())
	o := session.Options{
		Server:   newBase(tools),
		Versions: versions,
		Open:     func(r *http.Request) (context.Context, session.Dialect) { return r.Context(), d },
		Max:      100,
		Timeout:  time.Hour,
		Stopping: stopping,
		Log:      slog.New(slog.DiscardHandler),
	}
	for _, change := range change {
		change(&o)
	}
	handler := session.NewHandler(o)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			handler.ServeHTTP(w, r, body)
		}
	}))
	client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	t.Cleanup(func() {
		stop()
		client.CloseIdleConnections()
		server.Close()
	})
	return endpoint{t, handler, o.Server, server.URL, client, stop}
}

// leavesNothing asserts at the end of the test that there are no more goroutines than now.
func leavesNothing(t testing.TB) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		const looking = 1 // Eventually looks from a goroutine of its own
		assert.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+looking }, soon, 5*time.Millisecond,
			"goroutines are left: %s", lazily(stacks))
	})
}

// lazily is text that is made only when it is printed.
type lazily func() string

func (l lazily) String() string { return l() }

func stacks() string {
	buffer := make([]byte, 1<<20)
	return string(buffer[:runtime.Stack(buffer, true)])
}

// client is one session, seen from the client.
type client struct {
	endpoint
	version, id string
}

// open opens a session whose client has these capabilities. The session ends with the test.
func (e endpoint) open(version string, capabilities ...string) client {
	e.t.Helper()
	c := client{endpoint: e, version: version}
	opened := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":%q,"capabilities":{%s},`+
		`"clientInfo":{"name":"raw","version":"1"}}}`, version, strings.Join(capabilities, ",")))
	assert.Contains(e.t, opened.text(), fmt.Sprintf(`"protocolVersion":%q`, version))
	require.Equal(e.t, http.StatusOK, opened.StatusCode)
	require.Equal(e.t, "application/json", opened.Header.Get("Content-Type"))
	c.id = opened.Header.Get("Mcp-Session-Id")
	require.NotEmpty(e.t, c.id)
	e.t.Cleanup(c.end)
	c.accepted(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// end ends the session, if it was opened and nothing else has ended it.
func (c client) end() {
	if c.id == "" {
		return
	}
	ended := c.do(http.MethodDelete, "", nil)
	assert.Contains(c.t, []int{http.StatusNoContent, http.StatusNotFound}, ended.StatusCode)
}

// do makes a request, with the headers that a good client sends and then these.
func (c client) do(method, body string, header http.Header) *answer {
	c.t.Helper()
	request, err := http.NewRequest(method, c.url, strings.NewReader(body))
	require.NoError(c.t, err)
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("Content-Type", "application/json")
	if c.id != "" {
		request.Header.Set("Mcp-Session-Id", c.id)
		if c.version >= june2025 { // which brought the header
			request.Header.Set("Mcp-Protocol-Version", c.version)
		}
	}
	for name, values := range header {
		request.Header[name] = values
	}
	response, err := c.http.Do(request)
	require.NoError(c.t, err)
	a := &answer{response, c.t, bufio.NewReader(response.Body)}
	c.t.Cleanup(a.leave)
	return a
}

func (c client) post(body string) *answer {
	c.t.Helper()
	return c.do(http.MethodPost, body, nil)
}

// call sends a request.
func (c client) call(id, method, params string) *answer {
	c.t.Helper()
	return c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
}

// accepted posts what is not answered.
func (c client) accepted(body string) {
	c.t.Helper()
	a := c.post(body)
	require.Equal(c.t, http.StatusAccepted, a.StatusCode)
	assert.Empty(c.t, a.text())
}

// listen opens a stream by GET, from an event on if there is one.
func (c client) listen(lastEventID string) *answer {
	c.t.Helper()
	header := http.Header{}
	if lastEventID != "" {
		header.Set("Last-Event-ID", lastEventID)
	}
	a := c.do(http.MethodGet, "", header)
	require.Equal(c.t, http.StatusOK, a.StatusCode)
	require.Equal(c.t, "text/event-stream", a.Header.Get("Content-Type"))
	return a
}

// answer is an HTTP response that is read as it comes.
type answer struct {
	*http.Response
	t     testing.TB
	lines *bufio.Reader
}

// leave closes the connection, whatever is still to come.
func (a *answer) leave() { _ = a.Body.Close() }

// text is all that is still to come.
func (a *answer) text() string {
	a.t.Helper()
	text, err := io.ReadAll(a.lines)
	require.NoError(a.t, err)
	return string(text)
}

// event is a server-sent event.
type event struct{ name, id, data, retry string }

// next is the next event.
func (a *answer) next() event {
	a.t.Helper()
	require.Equal(a.t, "text/event-stream", a.Header.Get("Content-Type"))
	var e event
	for {
		line, err := a.lines.ReadString('\n')
		require.NoError(a.t, err, "the stream has no further event")
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "retry":
			e.retry = value
		case "data":
			e.data += value
		case "":
			if line == "\n" && e.name != "" {
				return e
			}
		}
	}
}

// message asserts the next event and returns its ID.
func (a *answer) message(data string) string {
	a.t.Helper()
	e := a.next()
	assert.Equal(a.t, "message", e.name)
	assert.Equal(a.t, data, e.data)
	return e.id
}

// prime asserts that the next event has nothing but an ID, and returns that.
func (a *answer) prime() string {
	a.t.Helper()
	e := a.next()
	assert.Equal(a.t, "prime", e.name)
	assert.Empty(a.t, e.data)
	assert.NotEmpty(a.t, e.id)
	return e.id
}

// ends asserts that nothing more comes but the end.
func (a *answer) ends() {
	a.t.Helper()
	rest := a.text()
	assert.Empty(a.t, strings.ReplaceAll(rest, ":\n\n", ""))
}

// refused asserts an error that is no answer to a request.
func (a *answer) refused(status int, message string) {
	a.t.Helper()
	text := a.text()
	assert.Equal(a.t, status, a.StatusCode, text)
	assert.Equal(a.t, "application/json", a.Header.Get("Content-Type"))
	assert.Contains(a.t, text, `"code":-32600`)
	assert.Contains(a.t, text, message)
	assert.NotContains(a.t, text, `"id"`)
}

// gate is where a test and what it tests meet.
type gate chan struct{}

func newGate() gate { return make(gate) }

// pass lets the other side go on, when it has come.
func (g gate) pass(t testing.TB) {
	t.Helper()
	select {
	case g <- struct{}{}:
	case <-time.After(soon):
		require.FailNow(t, "nobody has come to the gate")
	}
}

// wait waits for the other side, but not after ctx has ended.
func (g gate) wait(ctx context.Context) {
	select {
	case <-g:
	case <-ctx.Done():
	}
}

// await is what comes from a channel.
func await[T any](t testing.TB, done <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-done:
	case <-time.After(soon):
		require.FailNow(t, "nothing came")
	}
	return value
}

// echo answers a call with its own params.
func echo(_ context.Context, c *session.Call) ([]byte, *rpc.Error) {
	if c.Params == nil {
		return []byte("{}"), nil
	}
	return c.Params, nil
}

// say sends a notification of a call.
func say(c *session.Call, text string) { c.Notify("test/said", jsontext.Value(`{"text":"`+text+`"}`)) }

func said(text string) string {
	return `{"jsonrpc":"2.0","method":"test/said","params":{"text":"` + text + `"}}`
}

func answered(id, result string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`
}
