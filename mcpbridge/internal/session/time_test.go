package session_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/session"
)

// timed runs a test in a bubble whose time passes at once when nothing else can. At its end, no goroutine may be left.
func timed(t *testing.T, d dialect, tools map[string]mcp.ToolHandler, test func(t *testing.T, c *bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		stopping, stop := context.WithCancel(t.Context())
		defer stop()
		b := &bubble{t: t, handler: session.NewHandler(session.Options{
			Server:   newBase(tools),
			Versions: versions,
			Open:     func(r *http.Request) (context.Context, session.Dialect) { return r.Context(), d },
			Max:      10,
			Timeout:  timeout,
			Stopping: stopping,
			Log:      slog.New(slog.DiscardHandler),
		})}
		test(t, b)
	})
}

// timeout is how long a session lives in a bubble without a connection.
const timeout = 30 * time.Minute

// bubble calls a handler without a network, which has no place in a bubble.
type bubble struct {
	t       *testing.T
	handler *session.Handler
	id      string
}

// connection is a request being answered.
type connection struct {
	*httptest.ResponseRecorder
	leave context.CancelFunc
	begun time.Time
	ended chan struct{}
}

// start makes a request and returns when it is answered or waits.
func (b *bubble) start(method, body string, header ...string) *connection {
	ctx, leave := context.WithCancel(b.t.Context())
	request := httptest.NewRequestWithContext(ctx, method, "/mcp", strings.NewReader(body))
	request.Header.Set("Accept", "application/json, text/event-stream")
	if b.id != "" {
		request.Header.Set("Mcp-Session-Id", b.id)
		request.Header.Set("Mcp-Protocol-Version", june2025)
	}
	if len(header) > 0 {
		request.Header.Set(header[0], header[1])
	}
	c := &connection{httptest.NewRecorder(), leave, time.Now(), make(chan struct{})}
	go func() {
		defer close(c.ended)
		b.handler.ServeHTTP(c, request, []byte(body))
	}()
	synctest.Wait()
	return c
}

// took is how long the answer took in all.
func (c *connection) took() time.Duration {
	<-c.ended
	return time.Since(c.begun)
}

// open opens a session.
func (b *bubble) open() {
	opened := b.start(http.MethodPost, initialize)
	require.Zero(b.t, opened.took())
	b.id = opened.Header().Get("Mcp-Session-Id")
	require.NotEmpty(b.t, b.id)
	assert.Equal(b.t, http.StatusAccepted, b.start(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`).Code)
}

// end ends the session.
func (b *bubble) end() {
	assert.Equal(b.t, http.StatusNoContent, b.start(http.MethodDelete, "").Code)
}

// after is a dialect whose calls take this long.
func after(d time.Duration, methods ...string) dialect {
	slow := dialect{}
	for _, method := range methods {
		slow[method] = func(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
			select {
			case <-time.After(d):
				return echo(ctx, c)
			case <-ctx.Done():
				return nil, rpc.Errorf(rpc.CodeInternalError, "%v", context.Cause(ctx))
			}
		}
	}
	return slow
}

func TestAnAnswerThatTakesLongBecomesAStream(t *testing.T) {
	for took, stream := range map[time.Duration]bool{0: false, 900 * time.Millisecond: false, 1100 * time.Millisecond: true, time.Hour: true} {
		timed(t, after(took, "test/slow"), nil, func(t *testing.T, b *bubble) {
			b.open()
			c := b.start(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"test/slow"}`)
			assert.Equal(t, took, c.took())
			contentType := map[bool]string{false: "application/json", true: "text/event-stream"}[stream]
			assert.Equal(t, contentType, c.Header().Get("Content-Type"), took)
			assert.Contains(t, c.Body.String(), answered("1", "{}"))
			b.end()
		})
	}
}

// TestQuietStreamsCarryComments, so that nothing on the way takes them for dead.
func TestQuietStreamsCarryComments(t *testing.T) {
	timed(t, after(61*time.Second, "tasks/result"), nil, func(t *testing.T, b *bubble) {
		b.open()
		get := b.start(http.MethodGet, "")
		call := b.start(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tasks/result"}`)
		call.took()
		const comment = ":\n\n"
		assert.Equal(t, 1+4, strings.Count(call.Body.String(), comment), "one for the headers and one each 15 s")
		get.leave()
		get.took()
		assert.Equal(t, strings.Repeat(comment, 1+4), get.Body.String(), "one for the headers and one each 15 s")
		b.end()
	})
}

func TestASessionEndsWhenItsClientIsNotHeardOf(t *testing.T) {
	causes := make(map[string]error)
	timed(t, dialect{"tasks/result": func(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
		<-ctx.Done()
		causes["tasks/result"] = context.Cause(ctx)
		return nil, rpc.Errorf(rpc.CodeInternalError, "ended")
	}}, map[string]mcp.ToolHandler{"wait": func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}, func(t *testing.T, b *bubble) {
		b.open()
		time.Sleep(timeout - time.Second)
		assert.Equal(t, http.StatusOK, b.start(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`).Code, "each request begins the time anew")
		time.Sleep(timeout - time.Second)
		get := b.start(http.MethodGet, "")
		time.Sleep(10 * timeout)
		synctest.Wait()
		assert.Equal(t, 1, b.handler.Len(), "a connected client is there")
		get.leave()
		get.took()
		for _, call := range []string{`"method":"tasks/result"`, `"method":"tools/call","params":{"name":"wait"}`} {
			c := b.start(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,%s}`, call, call))
			time.Sleep(time.Second)
			c.leave()
			c.took()
		}
		time.Sleep(timeout - 2*time.Second)
		assert.Equal(t, 1, b.handler.Len())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Zero(t, b.handler.Len())
		assert.ErrorIs(t, causes["tasks/result"], session.ErrEnded)
		assert.Equal(t, http.StatusNotFound, b.start(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`).Code)
	})
}

// TestACallThatMustBeReadEndsWhenItIsNot, unless its client comes back in time.
func TestACallThatMustBeReadEndsWhenItIsNot(t *testing.T) {
	timed(t, dialect{"tasks/result": func(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
		c.EndIfUnread()
		say(c, "begun")
		<-ctx.Done()
		return nil, rpc.Errorf(rpc.CodeInternalError, "%v", context.Cause(ctx))
	}}, nil, func(t *testing.T, b *bubble) {
		b.open()
		call := b.start(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tasks/result"}`)
		time.Sleep(time.Hour)
		call.leave()
		call.took()
		_, id, _ := strings.Cut(call.Body.String(), "id: ")
		id, _, _ = strings.Cut(id, "\n")
		assert.Equal(t, "event: message\nid: "+id+"\ndata: "+said("begun")+"\n\n", strings.ReplaceAll(call.Body.String(), ":\n\n", ""))

		for _, away := range []time.Duration{9 * time.Second, 11 * time.Second} {
			time.Sleep(away)
			resumed := b.start(http.MethodGet, "", "Last-Event-ID", id)
			time.Sleep(time.Minute)
			resumed.leave()
			resumed.took()
			rest := strings.ReplaceAll(resumed.Body.String(), ":\n\n", "")
			if away < 10*time.Second {
				assert.Empty(t, rest)
			} else {
				assert.Contains(t, rest, session.ErrGone.Error())
			}
		}
		b.end()
	})
}

// TestALostStreamIsKeptForAMinute after its end, however long it takes until then.
func TestALostStreamIsKeptForAMinute(t *testing.T) {
	timed(t, after(time.Hour, "tasks/result"), nil, func(t *testing.T, b *bubble) {
		b.open()
		get := b.start(http.MethodGet, "") // so that the session stays
		call := b.start(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tasks/result"}`, "Mcp-Protocol-Version", november2025)
		call.leave()
		call.took()
		_, id, _ := strings.Cut(call.Body.String(), "id: ")
		id, _, _ = strings.Cut(id, "\n")
		time.Sleep(time.Hour + 59*time.Second)
		resumed := b.start(http.MethodGet, "", "Last-Event-ID", id)
		resumed.took()
		assert.Contains(t, resumed.Body.String(), answered("1", "{}"))
		time.Sleep(2 * time.Second)
		assert.Equal(t, http.StatusBadRequest, b.start(http.MethodGet, "", "Last-Event-ID", id).Code)
		get.leave()
		get.took()
		b.end()
	})
}
