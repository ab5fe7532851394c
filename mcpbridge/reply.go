package mcpbridge

import (
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
	alive  *time.Timer // of the next comment
	ended  bool
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
	if !r.ended {
		_ = r.stream.Message("", rpc.Notification(method, encoded)) // the request's context ends when the client has gone
	}
}

// keepAlive has a comment sent now and then until the reply ends.
func (r *reply) keepAlive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.streams {
		r.alive = time.AfterFunc(sse.KeepAlive, r.comment)
	}
}

func (r *reply) comment() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ended && r.stream.Comment() == nil {
		r.alive.Reset(sse.KeepAlive)
	}
}

// end has nothing more written.
func (r *reply) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended = true; r.alive != nil {
		r.alive.Stop()
	}
}

// finish writes the response and ends the reply.
func (r *reply) finish(status int, message []byte) error {
	r.end()
	if r.stream.Started() {
		return r.stream.Message("", message)
	}
	r.w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	r.w.WriteHeader(status)
	_, err := r.w.Write(message)
	return err
}
