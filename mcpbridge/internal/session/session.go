// Package session holds conversations with MCP clients: those that an `initialize` opens over Streamable HTTP (protocol
// revisions up to 2025-11-25), and those over stdio of any era.
//
// A [Session] passes each request to its [Dialect] or, if that does not serve it, to the go-sdk, which has the base
// protocol. It exists because the go-sdk drops what it does not know: members such as `task`, notifications such as
// notifications/tasks/status, texts of errors. Here both see every message as it came.
package session

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"taskbridge/mcpbridge/internal/rpc"
)

// Why a call's context ended.
var (
	// ErrCancelled says that the client cancelled the request. It then gets no answer.
	ErrCancelled = errors.New("the client cancelled the request")
	// ErrEnded says that the session ended: the client said so, or was not heard of for too long.
	ErrEnded = errors.New("the session ended")
	// ErrGone says that nobody reads the answer any more, though the session goes on.
	ErrGone = errors.New("the client does not read the answer")
	// ErrShutdown says that the server stops. What was started goes on.
	ErrShutdown = errors.New("the server is shutting down")
)

const (
	// maxCalls is how many calls of one session may be open at once.
	maxCalls = 1000
	// maxAsked is how many requests to one client may wait for its answer at once.
	maxAsked = 1000
)

// Dialect answers those requests of a session that are not the base protocol's.
type Dialect interface {
	// Serves reports whether the dialect answers a call. It sees all calls in the order in which they came.
	Serves(call *Call) bool
	// Serve answers a call with an encoded result.
	Serve(ctx context.Context, call *Call) ([]byte, *rpc.Error)
}

// Outlet carries messages to the client.
type Outlet interface {
	Send(message []byte)
	// Answer carries the answer to a call which came by this outlet. A nil one says that there will be none.
	Answer(message []byte)
}

// Session is one conversation.
type Session struct {
	ctx     context.Context
	end     context.CancelCauseFunc
	id      string
	dialect Dialect
	base    *base
	push    Outlet
	log     *slog.Logger

	mu     sync.Mutex
	calls  map[jsonrpc.ID]*Call // open ones
	asked  map[string]*request  // requests to the client by our ID
	serial int64
	// initialized says that the client opened the session and the base protocol agreed.
	initialized bool
	closing     bool // no more calls are taken
	running     sync.WaitGroup
}

// request is one that the client has not answered yet.
type request struct {
	outlet Outlet
	take   func(result jsontext.Value, err *rpc.Error)
}

// New makes a session with a client that reads what push carries. Values of ctx reach the handlers of the base protocol.
func New(ctx context.Context, id string, server *mcp.Server, dialect Dialect, push Outlet, log *slog.Logger) *Session {
	s := &Session{id: id, dialect: dialect, push: push, log: log, calls: map[jsonrpc.ID]*Call{}, asked: map[string]*request{}}
	s.ctx, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	s.base = newBase(s, server)
	return s
}

// End ends the session and its calls.
func (s *Session) End(cause error) {
	s.end(cause)
	_ = s.base.Close()
}

// Drain takes no more calls, ends those that only listen, and returns when all others have been answered.
func (s *Session) Drain() {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.stopListening()
	s.running.Wait()
}

// stopListening ends the calls that nothing but their end answers.
func (s *Session) stopListening() {
	s.mu.Lock()
	calls := slices.Collect(maps.Values(s.calls))
	s.mu.Unlock()
	for _, c := range calls {
		if c.Method == "subscriptions/listen" {
			c.cancel(ErrShutdown)
			s.base.stop(c)
		}
	}
}

// Listening reports whether the client reads what belongs to no call.
func (s *Session) Listening() bool {
	stream, ok := s.push.(*stream)
	return !ok || stream.isRead()
}

// Context ends with the session.
func (s *Session) Context() context.Context { return s.ctx }

// Receive takes a message from the client. Messages that a request leads to go to its outlet. For the answer to a request
// of this server it returns when the answer has been taken.
func (s *Session) Receive(m rpc.Message, header http.Header, to Outlet) {
	switch {
	case m.IsResponse():
		s.resolve(m)
	case m.IsNotification():
		s.notice(m, header)
	default:
		s.open(&Call{Method: m.Method, Params: m.Params, Header: header, Session: s, id: m.ID, sdkID: sdkID(m.ID), outlet: to})
	}
}

// ReceiveLater is Receive for a reader that others wait behind.
func (s *Session) ReceiveLater(m rpc.Message, to Outlet) {
	if s.begin() {
		go func() {
			defer s.running.Done()
			s.Receive(m, nil, to)
		}()
	}
}

// begin counts something that has to end before the session has drained.
func (s *Session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing {
		s.running.Add(1)
	}
	return !s.closing
}

// open begins a call.
func (s *Session) open(c *Call) {
	c.ctx, c.cancel = context.WithCancelCause(s.ctx)
	if err := s.register(c); err != nil {
		c.cancel(nil)
		c.outlet.Answer(rpc.ErrorResponse(c.id, err))
		return
	}
	if !s.dialect.Serves(c) {
		s.base.forward(c)
		return
	}
	go func() { c.answer(s.serve(c)) }()
}

func (s *Session) register(c *Call) *rpc.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return errEnded
	}
	if _, open := s.calls[c.sdkID]; open {
		return idIsOpen(c)
	}
	if len(s.calls) >= maxCalls {
		return rpc.Errorf(rpc.CodeInternalError, "this session has %d open requests: wait until some are answered", maxCalls)
	}
	s.calls[c.sdkID] = c
	s.running.Add(1)
	return nil
}

func idIsOpen(c *Call) *rpc.Error {
	return rpc.Errorf(rpc.CodeInvalidRequest, "id %s is that of a request which is still open: use each ID once", rpc.Clip(string(c.id)))
}

func (s *Session) serve(c *Call) (result []byte, rpcErr *rpc.Error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.log.Error("request handler panicked", "method", c.Method, "error", cause, "stack", string(debug.Stack()))
			result, rpcErr = nil, rpc.Errorf(rpc.CodeInternalError, "internal error")
		}
	}()
	return s.dialect.Serve(c.ctx, c)
}

// notice takes a notification. One that cancels a call ends that; all others are the base protocol's.
func (s *Session) notice(m rpc.Message, header http.Header) {
	if m.Method != "notifications/cancelled" {
		s.base.notify(m.Method, m.Params, header)
		return
	}
	var params struct {
		RequestID jsontext.Value `json:"requestId"`
	}
	if m.DecodeParams(&params) != nil {
		return
	}
	s.mu.Lock()
	c, open := s.calls[sdkID(params.RequestID)]
	s.mu.Unlock()
	if open {
		c.cancel(ErrCancelled)
		s.base.cancel(c)
	}
}

// resolve takes the answer to a request of this server.
func (s *Session) resolve(m rpc.Message) {
	id := string(m.ID)
	s.mu.Lock()
	waiting, ok := s.asked[id]
	delete(s.asked, id)
	s.mu.Unlock()
	if !ok {
		return
	}
	var refusal *rpc.Error
	if m.Error != nil {
		refusal = new(rpc.Error)
		if err := json.Unmarshal(m.Error, refusal); err != nil {
			refusal = rpc.Errorf(rpc.CodeInternalError, "the client's error cannot be read")
		}
	}
	waiting.take(m.Result, refusal)
}

// ask sends the client a request. take gets the answer, whenever it comes, unless it is withdrawn.
func (s *Session) ask(to Outlet, method string, params []byte, take func(jsontext.Value, *rpc.Error)) (id string, err error) {
	s.mu.Lock()
	if len(s.asked) >= maxAsked {
		s.mu.Unlock()
		return "", errors.New("too many requests to this client wait for an answer")
	}
	s.serial++
	id = strconv.FormatInt(s.serial, 10)
	s.asked[id] = &request{outlet: to, take: take}
	s.mu.Unlock()
	to.Send(rpc.Request(jsontext.Value(id), method, params))
	return id, nil
}

// withdraw tells the client that the answer to a request is not needed any more.
func (s *Session) withdraw(id, reason string) {
	s.mu.Lock()
	waiting, ok := s.asked[id]
	delete(s.asked, id)
	s.mu.Unlock()
	if !ok {
		return
	}
	params, err := json.Marshal(struct {
		RequestID jsontext.Value `json:"requestId"`
		Reason    string         `json:"reason"`
	}{jsontext.Value(id), reason})
	if err == nil {
		waiting.outlet.Send(rpc.Notification("notifications/cancelled", params))
	}
}

// Ask is [Call.Ask] for what belongs to no call.
func (s *Session) Ask(method string, params []byte, take func(jsontext.Value, *rpc.Error)) (withdraw func(reason string), err error) {
	return s.askBy(s.push, method, params, take)
}

func (s *Session) askBy(to Outlet, method string, params []byte, take func(jsontext.Value, *rpc.Error)) (withdraw func(reason string), err error) {
	id, err := s.ask(to, method, params, take)
	if err != nil {
		return nil, err
	}
	return func(reason string) { s.withdraw(id, reason) }, nil
}

// Notify sends the client a notification that belongs to no call.
func (s *Session) Notify(method string, params any) { s.notify(s.push, method, params) }

func (s *Session) notify(to Outlet, method string, params any) {
	encoded, err := json.Marshal(params)
	if err != nil {
		s.log.Error("notification not sent", "method", method, "error", err)
		return
	}
	to.Send(rpc.Notification(method, encoded))
}

// Initialized reports whether the client has opened the session.
func (s *Session) Initialized() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.initialized
}

// Call is one request of the client.
type Call struct {
	Method  string
	Params  jsontext.Value
	Header  http.Header // of the HTTP request that brought it, if one did
	Session *Session

	ctx    context.Context
	cancel context.CancelCauseFunc
	id     jsontext.Value // as the client wrote it
	sdkID  jsonrpc.ID     // the same for all spellings of an ID
	outlet Outlet
	// answered is done with the first answer.
	answered sync.Once
}

// ID is the call's as the client wrote it.
func (c *Call) ID() jsontext.Value { return c.id }

// DecodeParams reads the call's params.
func (c *Call) DecodeParams(into any) *rpc.Error {
	return rpc.Message{Params: c.Params}.DecodeParams(into)
}

// Notify sends a notification that belongs to the call.
func (c *Call) Notify(method string, params any) { c.Session.notify(c.outlet, method, params) }

// Ask sends the client a request that belongs to the call. take gets the answer, even if it comes after the call has been
// answered. Withdraw tells the client that it need not answer any more.
func (c *Call) Ask(method string, params []byte, take func(jsontext.Value, *rpc.Error)) (withdraw func(reason string), err error) {
	return c.Session.askBy(c.outlet, method, params, take)
}

// EndIfUnread cancels the call with [ErrGone] once its client has not been connected to read the answer for a while. By
// default a call goes on, as the client may come back for it.
func (c *Call) EndIfUnread() {
	if stream, ok := c.outlet.(*stream); ok {
		stream.onUnread(func() { c.cancel(ErrGone) })
	}
}

// answer sends the result or the error, and nothing if the client cancelled the call. The first answer counts.
func (c *Call) answer(result []byte, err *rpc.Error) {
	c.answered.Do(func() { c.finish(result, err) })
}

func (c *Call) finish(result []byte, err *rpc.Error) {
	cause := context.Cause(c.ctx)
	s := c.Session
	s.mu.Lock()
	delete(s.calls, c.sdkID)
	if c.Method == "initialize" && err == nil {
		s.initialized = true
	}
	s.mu.Unlock()
	var message []byte
	switch {
	case errors.Is(cause, ErrCancelled):
	case err != nil:
		if err.Code == rpc.CodeInternalError && cause == nil {
			s.log.Error("request failed", "method", c.Method, "error", err.Message)
		}
		message = rpc.ErrorResponse(c.id, err)
	default:
		message = rpc.ResultResponse(c.id, result)
	}
	c.outlet.Answer(message)
	c.cancel(nil)
	s.running.Done()
}
