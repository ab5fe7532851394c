package mcpbridge

import (
	"context"
	"errors"
	"io"
	"time"

	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/session"
	"taskbridge/mcpbridge/tasks"
)

// flushGrace is how long calls may take to finish when the client has closed its end.
const flushGrace = 5 * time.Second

// ServeStdio answers one client that writes its messages to in, a line each, and reads from out (MCP, "stdio"). Clients
// of all eras are served. It returns when in ends or ctx does: replies in flight are written then, and workflows go on
// running. Nothing but messages is written to out.
func (b *Bridge) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	if err := b.Ready(ctx); err != nil {
		return err
	}
	pipe := b.newPipe(ctx, out)
	ended := make(chan error, 1)
	go func() { ended <- pipe.read(in, b.options.MaxBody) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done(): // the read cannot be interrupted; the process ends it
	}
	pipe.close(ctx)
	return err
}

// pipe is the conversation with the client at the other end. Eras do not share a session: each has its own rules.
type pipe struct {
	lines          *session.Lines
	modern, legacy *session.Session
}

func (b *Bridge) newPipe(ctx context.Context, out io.Writer) *pipe {
	lines := session.NewLines(out)
	legacyContext, conversation := b.newConversation(ctx, true)
	return &pipe{
		lines:  lines,
		modern: session.New(ctx, "", b.server, modernPipe{b.modern}, lines, b.options.Logger),
		legacy: session.New(legacyContext, "", b.server, conversation, lines, b.options.Logger),
	}
}

func (p *pipe) read(in io.Reader, longest int64) error {
	for line, err := range session.ReadLines(in, longest) {
		if errors.Is(err, session.ErrLongLine) {
			p.lines.Send(rpc.ErrorResponse(nil, rpc.Errorf(rpc.CodeInvalidRequest, "the message is larger than %d bytes: pass a reference to large data, such as a URL or a path", longest)))
			continue
		}
		if err != nil {
			return err
		}
		p.receive(line)
	}
	return nil
}

// receive passes a message to the session of its era.
func (p *pipe) receive(line []byte) {
	message, rpcErr := rpc.DecodeAny(line)
	if rpcErr != nil {
		p.lines.Send(rpc.ErrorResponse(message.ID, rpcErr))
		return
	}
	var params struct {
		Meta *requestMeta `json:"_meta"`
	}
	_ = message.DecodeParams(&params) // whoever serves the message says what is wrong with them
	switch {
	case message.IsResponse():
		p.legacy.ReceiveLater(message, p.lines) // it may take a call to Temporal
	case message.Method == "notifications/cancelled": // names a request of either
		p.modern.Receive(message, nil, p.lines)
		p.legacy.Receive(message, nil, p.lines)
	case params.Meta != nil && params.Meta.ProtocolVersion != "":
		p.modern.Receive(message, nil, p.lines)
	default:
		p.legacy.Receive(message, nil, p.lines)
	}
}

// close gives calls some seconds to finish, unless ctx ends, and ends both sessions.
func (p *pipe) close(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.modern.Drain()
		p.legacy.Drain()
	}()
	select {
	case <-done:
	case <-time.After(flushGrace):
	case <-ctx.Done():
	}
	p.modern.End(session.ErrShutdown)
	p.legacy.End(session.ErrShutdown)
	<-done
}

// modernPipe is the modern dialect without HTTP.
type modernPipe struct{ *modern }

// Serves implements [session.Dialect].
func (m modernPipe) Serves(call *session.Call) bool {
	var params requestParams
	if call.DecodeParams(&params) != nil {
		return true // so that what is wrong is said in our words
	}
	return m.serves(call.Method, params.Name)
}

// Serve implements [session.Dialect].
func (m modernPipe) Serve(ctx context.Context, call *session.Call) ([]byte, *rpc.Error) {
	r := &request{id: call.ID(), method: call.Method, owner: tasks.Anonymous, raw: call.Params, notify: call.Notify}
	if rpcErr := call.DecodeParams(&r.params); rpcErr != nil {
		return nil, rpcErr
	}
	if rpcErr := m.checkEnvelope(nil, r); rpcErr != nil {
		return nil, rpcErr
	}
	return m.handle(ctx, r)
}
