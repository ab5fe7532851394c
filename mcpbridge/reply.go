package mcpbridge

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/sse"
)

// reply writes the response to one modern request: a JSON object, or an event stream once something precedes the result
// or the result takes its time (MCP 2026-07-28, Streamable HTTP, "Receiving Messages").
type reply struct {
	w *echo.Response
	// streams says that the client takes event streams.
	streams bool

	mu     sync.Mutex
	stream *sse.Writer
}

func newReply(c echo.Context) *reply {
	accept := strings.Join(c.Request().Header.Values(echo.HeaderAccept), ",")
	return &reply{
		w: c.Response(), stream: sse.NewWriter(c.Response()),
		streams: strings.Contains(accept, "text/event-stream") || strings.Contains(accept, "*/*"),
	}
}

// notify sends a notification before the result. A client that takes no streams gets none.
func (r *reply) notify(method string, params any) {
	encoded, err := json.Marshal(params)
	if err != nil || !r.streams {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.stream.Message("", rpc.Notification(method, encoded)) // the request's context ends when the client has gone
}

// keepAlive sends a comment now and then until ctx ends.
func (r *reply) keepAlive(ctx context.Context) {
	if !r.streams {
		return
	}
	ticker := time.NewTicker(sse.KeepAlive)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.comment(ctx)
		}
	}
}

func (r *reply) comment(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ctx.Err() == nil {
		_ = r.stream.Comment()
	}
}

// finish writes the response and ends the reply.
func (r *reply) finish(status int, message []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stream.Started() {
		return r.stream.Message("", message)
	}
	r.w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	r.w.WriteHeader(status)
	_, err := r.w.Write(message)
	return err
}
