package session

import (
	"context"
	"crypto/rand"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/sse"
)

const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	// patience is how long a POST may stay unanswered before its response becomes a stream.
	patience = time.Second
	// keptStreams and keptFor bound what is kept of a session's streams after their end, in case the client lost it.
	keptStreams = 4
	keptFor     = time.Minute
	// batches ended with this version.
	versionWithoutBatches = "2025-06-18"
	// streamsPrimed names the first version whose streams begin with an event to resume from.
	versionWithPrimedStreams = "2025-11-25"
)

// Options of a [Handler].
type Options struct {
	Server *mcp.Server
	// Open makes the dialect of a new session. Values of the context that it returns reach the base protocol's handlers.
	Open func(*http.Request) (context.Context, Dialect)
	// Versions are the protocol revisions that have sessions.
	Versions []string
	// Max is how many sessions there may be at once. When there are more, those that are not connected give way.
	Max int
	// Timeout ends a session whose client has had no connection for that long.
	Timeout time.Duration
	// Stopping ends when the server shuts down, and with it the streams that nothing else ends.
	Stopping context.Context
	Log      *slog.Logger
}

// Handler serves sessions over Streamable HTTP, as revisions 2025-03-26 to 2025-11-25 have it.
type Handler struct {
	Options
	mu       sync.Mutex
	sessions map[string]*client
}

// NewHandler makes a handler without sessions.
func NewHandler(o Options) *Handler { return &Handler{Options: o, sessions: map[string]*client{}} }

// client is a session with the HTTP side of it.
type client struct {
	*Session
	push *stream // what belongs to no call

	mu      sync.Mutex
	streams map[string]*stream // of calls, by name
	ended   []string           // names of those that are kept after their end, oldest first
	// attached counts the client's connections. While there are none, idle runs.
	attached int
	since    time.Time
	idle     *time.Timer
}

// ServeHTTP serves a request whose body has been read.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, body []byte) {
	if version := r.Header.Get(versionHeader); version != "" && !slices.Contains(h.Versions, version) {
		refuse(w, http.StatusBadRequest, "header MCP-Protocol-Version is "+rpc.Clip(version)+": sessions have "+strings.Join(h.Versions, ", "))
		return
	}
	switch r.Method {
	case http.MethodPost:
		h.post(w, r, body)
	case http.MethodGet:
		h.get(w, r)
	case http.MethodDelete:
		if c := h.find(w, r); c != nil {
			defer h.detach(c)
			h.drop(c, ErrEnded)
			w.WriteHeader(http.StatusNoContent)
		}
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// Len is how many sessions there are.
func (h *Handler) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.sessions)
}

func refuse(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, rpc.ErrorResponse(nil, rpc.Errorf(rpc.CodeInvalidRequest, "%s", message)))
}

func writeJSON(w http.ResponseWriter, status int, message []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(message)
}

// find is the session of a request, which the caller detaches from; nil if there is none, which then has been answered.
func (h *Handler) find(w http.ResponseWriter, r *http.Request) *client {
	id := r.Header.Get(sessionHeader)
	if id == "" {
		refuse(w, http.StatusBadRequest, "header Mcp-Session-Id is missing: open a session with initialize first")
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c, ok := h.sessions[id]
	if !ok {
		refuse(w, http.StatusNotFound, "there is no such session, or it has ended: open a new one with initialize")
		return nil
	}
	c.attach()
	return c
}

// post takes the messages of a POST and answers those that are requests.
func (h *Handler) post(w http.ResponseWriter, r *http.Request, body []byte) {
	messages, rpcErr := decode(body, r.Header.Get(versionHeader))
	if rpcErr != nil {
		writeJSON(w, http.StatusBadRequest, rpc.ErrorResponse(messages[0].ID, rpcErr))
		return
	}
	if !accepts(r, "application/json") || !accepts(r, "text/event-stream") {
		refuse(w, http.StatusNotAcceptable, "header Accept must list application/json and text/event-stream")
		return
	}
	initialize := messages[0].Method == "initialize" && r.Header.Get(sessionHeader) == ""
	var c *client
	if initialize {
		c = h.open(w, r)
	} else {
		c = h.find(w, r)
	}
	if c == nil {
		return
	}
	defer h.detach(c)
	if initialize {
		w.Header().Set(sessionHeader, c.id)
		defer func() {
			if !c.Initialized() {
				h.drop(c, ErrEnded)
			}
		}()
	}
	h.exchange(w, r, c, messages)
}

// decode reads one message, or a batch of them where the protocol has those. After an error there is one message, for
// its ID.
func decode(body []byte, version string) ([]rpc.Message, *rpc.Error) {
	parts := []jsontext.Value{body}
	if jsontext.Value(body).Kind() == '[' && version < versionWithoutBatches {
		if err := json.Unmarshal(body, &parts); err != nil || len(parts) == 0 {
			return make([]rpc.Message, 1), rpc.Errorf(rpc.CodeParseError, "the batch is empty or no JSON")
		}
	}
	messages := make([]rpc.Message, len(parts))
	for i, part := range parts {
		message, err := rpc.DecodeAny(part)
		if err != nil {
			return []rpc.Message{message}, err
		}
		messages[i] = message
	}
	return messages, nil
}

// accepts reports whether a client takes a media type. One that does not say so takes anything.
func accepts(r *http.Request, want string) bool {
	values := r.Header.Values("Accept")
	if len(values) == 0 {
		return true
	}
	family, _, _ := strings.Cut(want, "/")
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		media, _, err := mime.ParseMediaType(part)
		if err == nil && (media == want || media == family+"/*" || media == "*/*") {
			return true
		}
	}
	return false
}

// exchange passes messages to the session and writes what comes of them.
func (h *Handler) exchange(w http.ResponseWriter, r *http.Request, c *client, messages []rpc.Message) {
	answers := newAnswers(messages)
	for _, m := range messages {
		c.Receive(m, r.Header, answers)
	}
	if answers.name == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	ctx, cancel := h.connection(r, c)
	defer cancel()
	if !slices.ContainsFunc(messages, isLong) {
		if answer := answers.answer(ctx, patience); answer != nil {
			writeJSON(w, http.StatusOK, answer)
			return
		}
	}
	c.keep(answers)
	stream := sse.NewWriter(w)
	if version := r.Header.Get(versionHeader); version >= versionWithPrimedStreams {
		_ = stream.Prime(answers.eventID(-1)) // a connection that is broken breaks the next write too
	}
	answers.serve(ctx, stream, 0)
}

// isLong reports whether a request may take long, so that its client should be able to come back for the answer.
func isLong(m rpc.Message) bool { return m.Method == "tools/call" || m.Method == "tasks/result" }

// connection is the context of a connection, which also ends with the session.
func (h *Handler) connection(r *http.Request, c *client) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(c.Context(), cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

// get gives a client what belongs to no call, or the rest of a stream that it lost.
func (h *Handler) get(w http.ResponseWriter, r *http.Request) {
	if !accepts(r, "text/event-stream") {
		refuse(w, http.StatusNotAcceptable, "header Accept must list text/event-stream")
		return
	}
	c := h.find(w, r)
	if c == nil {
		return
	}
	defer h.detach(c)
	ctx, cancel := h.connection(r, c)
	defer cancel()
	wanted, from := c.push, fromUnsent
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		name, index, ok := parseEventID(last)
		if wanted = c.stream(name); !ok || wanted == nil || !wanted.had(index) {
			refuse(w, http.StatusBadRequest, "header Last-Event-ID is "+rpc.Clip(last)+": no stream of this session has it, or not any more")
			return
		}
		from = index + 1
	}
	if wanted == c.push { // streams of calls end with their answers
		defer context.AfterFunc(h.Stopping, cancel)()
	}
	wanted.serve(ctx, sse.NewWriter(w), from)
}

// open makes a session, which the caller detaches from.
func (h *Handler) open(w http.ResponseWriter, r *http.Request) *client {
	ctx, dialect := h.Open(r)
	c := &client{push: newStream("0"), streams: map[string]*stream{}}
	c.push.lasting = true
	c.Session = New(ctx, rand.Text(), h.Server, dialect, c.push, h.Log)
	c.idle = time.AfterFunc(h.Timeout, func() { h.expire(c) })
	c.attach()
	h.mu.Lock()
	if len(h.sessions) >= h.Max && !h.makeRoom() {
		h.mu.Unlock()
		c.close(ErrEnded)
		w.Header().Set("Retry-After", "60")
		refuse(w, http.StatusServiceUnavailable, "there are "+strconv.Itoa(h.Max)+" sessions, all of them connected: try again later")
		return nil
	}
	h.sessions[c.id] = c
	h.mu.Unlock()
	context.AfterFunc(c.Context(), func() { h.drop(c, ErrEnded) })
	return c
}

// makeRoom ends the session that has been without a connection for longest. The caller holds mu.
func (h *Handler) makeRoom() bool {
	var longest *client
	var oldest time.Time
	for _, c := range h.sessions {
		if since, idle := c.idleSince(); idle && (longest == nil || since.Before(oldest)) {
			longest, oldest = c, since
		}
	}
	if longest == nil {
		return false
	}
	delete(h.sessions, longest.id)
	longest.close(ErrEnded)
	return true
}

// EndAll ends all sessions.
func (h *Handler) EndAll(cause error) {
	h.mu.Lock()
	clients := slices.Collect(maps.Values(h.sessions))
	h.mu.Unlock()
	for _, c := range clients {
		h.drop(c, cause)
	}
}

// drop ends a session.
func (h *Handler) drop(c *client, cause error) {
	h.mu.Lock()
	delete(h.sessions, c.id)
	h.mu.Unlock()
	c.close(cause)
}

// expire ends a session that is still without a connection.
func (h *Handler) expire(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, idle := c.idleSince(); idle {
		delete(h.sessions, c.id)
		c.close(ErrEnded)
	}
}

// attach counts a connection of the client until it is detached. A session that others may know already is attached to
// with the handler's mu, so that it does not give way at that moment.
func (c *client) attach() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attached++
	c.idle.Stop()
}

func (h *Handler) detach(c *client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attached--
	if c.attached == 0 && c.Context().Err() == nil {
		c.since = time.Now()
		c.idle.Reset(h.Timeout)
	}
}

// close ends a session that is not listed any more.
func (c *client) close(cause error) {
	c.End(cause)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle.Stop()
}

func (c *client) idleSince() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.since, c.attached == 0
}

// newAnswers makes the stream that carries the answers to these messages. It has no name if none of them needs one.
func newAnswers(messages []rpc.Message) *stream {
	calls := 0
	for _, m := range messages {
		if !m.IsResponse() && !m.IsNotification() {
			calls++
		}
	}
	if calls == 0 {
		return newStream("")
	}
	s := newStream(rand.Text())
	s.open = calls
	return s
}

// keep lets the client come back for a stream.
func (c *client) keep(s *stream) {
	c.mu.Lock()
	c.streams[s.name] = s
	c.mu.Unlock()
	s.whenEnded(c.settle)
}

func (c *client) stream(name string) *stream {
	if name == c.push.name {
		return c.push
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams[name]
}

// settle keeps a stream that has ended, and forgets an older one.
func (c *client) settle(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = append(c.ended, s.name)
	if len(c.ended) > keptStreams {
		delete(c.streams, c.ended[0])
		c.ended = c.ended[1:]
	}
	time.AfterFunc(keptFor, func() { c.forget(s) })
}

func (c *client) forget(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, s.name)
	c.ended = slices.DeleteFunc(c.ended, func(name string) bool { return name == s.name })
}
