package session

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"taskbridge/mcpbridge/internal/rpc"
)

// callHeader tells the go-sdk's handlers, and through them what they send, to which call they belong.
const callHeader = "Taskbridge-Call"

type contextKey int

const (
	sessionKey contextKey = iota
	callKey
)

// base is the session's connection to the go-sdk, which reads requests from it and writes answers, requests and
// notifications to it. Calls have the client's IDs on it. The SDK's own requests get IDs of ours before the client sees
// them, among those of the dialects.
type base struct {
	session *Session
	server  *mcp.Server
	connect sync.Once
	in      chan jsonrpc.Message
	closed  chan struct{}

	mu    sync.Mutex
	calls map[jsonrpc.ID]*Call
	asked map[jsonrpc.ID]string // IDs of the SDK's requests to ours
	ended bool
}

func newBase(s *Session, server *mcp.Server) *base {
	return &base{
		session: s, server: server, in: make(chan jsonrpc.Message, 16), closed: make(chan struct{}),
		calls: map[jsonrpc.ID]*Call{}, asked: map[jsonrpc.ID]string{},
	}
}

// forward passes a call to the SDK.
func (b *base) forward(c *Call) {
	b.mu.Lock()
	_, open := b.calls[c.sdkID]
	ended := b.ended
	if !ended && !open {
		b.calls[c.sdkID] = c
	}
	b.mu.Unlock()
	switch {
	case ended:
		c.answer(nil, errEnded)
	case open:
		c.answer(nil, idIsOpen(c))
	default:
		b.put(&jsonrpc.Request{ID: c.sdkID, Method: c.Method, Params: []byte(c.Params), Extra: extra(c)})
	}
}

var errEnded = rpc.Errorf(rpc.CodeInternalError, "the session has ended")

// sdkID is an ID as the SDK can have it, which reads numbers as floats. It is the same for all spellings of an ID. What is
// no ID becomes one that nobody has.
func sdkID(id jsontext.Value) jsonrpc.ID {
	var value any
	if id.Kind() != '"' && id.Kind() != '0' || rpc.CheckExact(id) != nil || json.Unmarshal(id, &value) != nil {
		value = "not exact: " + string(id)
	}
	sdk, err := jsonrpc.MakeID(value)
	if err != nil { // strings and numbers always are IDs
		panic(err)
	}
	return sdk
}

func extra(c *Call) *mcp.RequestExtra {
	header := c.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set(callHeader, string(c.id))
	e := &mcp.RequestExtra{Header: header}
	if stream, ok := c.outlet.(*stream); ok {
		e.CloseSSEStream = func(args mcp.CloseSSEStreamArgs) { stream.hangUp(args.RetryAfter) }
	}
	return e
}

func (b *base) notify(method string, params jsontext.Value, header http.Header) {
	b.put(&jsonrpc.Request{Method: method, Params: []byte(params), Extra: &mcp.RequestExtra{Header: header}})
}

// cancel tells the SDK that a call, if it serves it, has been cancelled by the client, which gets no answer. The ID stays
// the call's until the SDK has answered, so that no other call gets that.
func (b *base) cancel(c *Call) {
	if b.stop(c) {
		c.answer(nil, errEnded)
	}
}

// stop has the SDK end a call, and reports whether it serves it.
func (b *base) stop(c *Call) bool {
	b.mu.Lock()
	open := b.calls[c.sdkID] == c
	b.mu.Unlock()
	id, err := json.Marshal(c.sdkID.Raw())
	if !open || err != nil { // IDs are strings and numbers
		return false
	}
	b.notify("notifications/cancelled", jsontext.Value(`{"requestId":`+string(id)+`}`), nil)
	return true
}

// put hands the SDK a message, connecting it first if need be.
func (b *base) put(message jsonrpc.Message) {
	b.connect.Do(func() {
		ctx := context.WithValue(b.session.ctx, sessionKey, b.session)
		if _, err := b.server.Connect(ctx, transport{b}, nil); err != nil {
			b.session.log.Error("session not connected", "error", err)
			_ = b.Close()
		}
	})
	select {
	case b.in <- message:
	case <-b.closed:
	}
}

// transport connects the SDK's server to the session.
type transport struct{ base *base }

func (t transport) Connect(context.Context) (mcp.Connection, error) { return t.base, nil }

// SessionID implements [mcp.Connection].
func (b *base) SessionID() string { return b.session.id }

// Read implements [mcp.Connection].
func (b *base) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case message := <-b.in:
		return message, nil
	case <-b.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close implements [mcp.Connection]. The session ends with it, and calls that the SDK has not answered are answered with an
// error.
func (b *base) Close() error {
	b.session.end(ErrEnded)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return nil
	}
	b.ended = true
	close(b.closed)
	for _, c := range b.calls {
		go c.answer(nil, errEnded)
	}
	clear(b.calls)
	return nil
}

// Write implements [mcp.Connection].
func (b *base) Write(ctx context.Context, message jsonrpc.Message) error {
	switch m := message.(type) {
	case *jsonrpc.Response:
		b.answered(m)
	case *jsonrpc.Request:
		if m.IsCall() {
			return b.asks(ctx, m)
		}
		b.notifies(ctx, m)
	}
	return nil
}

func (b *base) answered(m *jsonrpc.Response) {
	b.mu.Lock()
	c, open := b.calls[m.ID]
	delete(b.calls, m.ID)
	b.mu.Unlock()
	if open {
		c.answer(m.Result, wireError(m.Error))
	}
}

func wireError(err error) *rpc.Error {
	if err == nil {
		return nil
	}
	var sdk *jsonrpc.Error
	if !errors.As(err, &sdk) {
		return rpc.Errorf(rpc.CodeInternalError, "%v", err)
	}
	wire := &rpc.Error{Code: sdk.Code, Message: sdk.Message}
	if sdk.Data != nil {
		wire.Data = jsontext.Value(sdk.Data)
	}
	return wire
}

// asks passes a request of the SDK on to the client, and the answer back.
func (b *base) asks(ctx context.Context, m *jsonrpc.Request) error {
	id, err := b.session.ask(b.outlet(ctx), m.Method, orEmpty(m.Params), func(result jsontext.Value, refusal *rpc.Error) {
		b.mu.Lock()
		delete(b.asked, m.ID)
		b.mu.Unlock()
		response := &jsonrpc.Response{ID: m.ID, Result: []byte(result)}
		if refusal != nil {
			response.Error = &jsonrpc.Error{Code: refusal.Code, Message: refusal.Message}
		}
		b.put(response)
	})
	if err != nil { // an error of Write would break the SDK's connection for good
		b.put(&jsonrpc.Response{ID: m.ID, Error: &jsonrpc.Error{Code: rpc.CodeInternalError, Message: err.Error()}})
		return nil
	}
	b.mu.Lock()
	b.asked[m.ID] = id
	b.mu.Unlock()
	return nil
}

// notifies passes a notification of the SDK on to the client.
func (b *base) notifies(ctx context.Context, m *jsonrpc.Request) {
	if m.Method != "notifications/cancelled" {
		b.outlet(ctx).Send(rpc.Notification(m.Method, orEmpty(m.Params)))
		return
	}
	var params struct {
		RequestID any    `json:"requestId"`
		Reason    string `json:"reason"`
	}
	if json.Unmarshal(m.Params, &params) != nil {
		return
	}
	id, err := jsonrpc.MakeID(params.RequestID)
	if err != nil {
		return
	}
	b.mu.Lock()
	ours, asked := b.asked[id]
	delete(b.asked, id)
	listening, open := b.calls[id]
	b.mu.Unlock()
	switch {
	case asked:
		b.session.withdraw(ours, params.Reason)
	case open: // a subscription that the server ends
		listening.outlet.Send(rpc.Notification(m.Method, m.Params))
	}
}

// outlet is where a message of the SDK goes: with the call that it belongs to, while that is open.
func (b *base) outlet(ctx context.Context) Outlet {
	id, _ := ctx.Value(callKey).(jsonrpc.ID)
	b.mu.Lock()
	defer b.mu.Unlock()
	if c, open := b.calls[id]; open {
		return c.outlet
	}
	return b.session.push
}

func orEmpty(params []byte) []byte {
	if len(params) == 0 {
		return []byte("{}")
	}
	return params
}

// Middleware lets what the SDK's handlers send go with the call that they serve. Every server that sessions are made with
// needs it.
func Middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		if e := request.GetExtra(); e != nil && e.Header.Get(callHeader) != "" && ctx.Value(sessionKey) != nil {
			ctx = context.WithValue(ctx, callKey, sdkID(jsontext.Value(e.Header.Get(callHeader))))
		}
		return next(ctx, method, request)
	}
}
