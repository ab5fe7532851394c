package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/session"
)

// newSession makes a session without HTTP. It ends with the test, after which no goroutine may be left.
func newSession(t testing.TB, d dialect, tools map[string]mcp.ToolHandler, out session.Outlet) *session.Session {
	t.Helper()
	leavesNothing(t)
	s := session.New(context.Background(), "", newBase(tools), d, out, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		s.End(session.ErrEnded)
		s.Drain()
	})
	return s
}

// receive passes a message to a session.
func receive(t testing.TB, s *session.Session, out session.Outlet, line string) {
	t.Helper()
	message, rpcErr := rpc.DecodeAny([]byte(line))
	require.Nil(t, rpcErr, line)
	s.Receive(message, nil, out)
}

// outlet keeps what is sent.
type outlet chan string

func (o outlet) Send(message []byte) { o <- string(message) }
func (o outlet) Answer(message []byte) {
	if message != nil {
		o.Send(message)
	}
}

func TestReadLines(t *testing.T) {
	const max = 100_000 // more than one buffer
	long, longer := strings.Repeat("x", max-1), strings.Repeat("y", max)
	for _, test := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"lines", "a\nb\n", []string{"a", "b"}},
		{"the last without a line break", "a\nb", []string{"a", "b"}},
		{"white space around", " a \r\n\r\n\n\t\nb\r\n", []string{"a", "b"}},
		{"as long as allowed", long + "\nb\n", []string{long, "b"}},
		{"longer", "a\n" + longer + "\nb\n", []string{"a", "line too long", "b"}},
		{"much longer", strings.Repeat(longer, 10) + "\nb\n", []string{"line too long", "b"}},
		{"longer and last", "a\n" + longer + "x", []string{"a", "line too long"}},
		{"longer twice", longer + "\n" + longer + "\nb", []string{"line too long", "line too long", "b"}},
		{"much white space", strings.Repeat(" ", 2*max) + "\nb\n", []string{"line too long", "b"}},
	} {
		for how, reader := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "halves": iotest.HalfReader} {
			t.Run(test.name+" in "+how, func(t *testing.T) {
				var got []string
				for line, err := range session.ReadLines(reader(strings.NewReader(test.in)), max) {
					if err != nil {
						require.ErrorIs(t, err, session.ErrLongLine)
						line = []byte(err.Error())
					}
					got = append(got, string(line))
				}
				assert.Equal(t, test.want, got)
			})
		}
	}
}

func TestReadLinesTellsWhyTheReaderFailed(t *testing.T) {
	var lines []string
	var failure error
	for line, err := range session.ReadLines(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(io.ErrClosedPipe)), 10) {
		if err != nil {
			failure = err
			continue
		}
		lines = append(lines, string(line))
	}
	assert.Equal(t, []string{"a"}, lines, "what has no end is no line")
	assert.ErrorIs(t, failure, io.ErrClosedPipe)
}

func TestReadLinesStopsWhenToldSo(t *testing.T) {
	in := strings.NewReader("a\nb\nc\n")
	for line, err := range session.ReadLines(in, 10) {
		require.NoError(t, err)
		assert.Equal(t, "a", string(line))
		break
	}
}

func TestLinesAreWhole(t *testing.T) {
	var out bytes.Buffer
	lines := session.NewLines(&out)
	lines.Send([]byte(`{"a": 1, "b":"\n"}`))
	lines.Send([]byte("{\n  \"big\": 12345678901234567890,\n  \"text\": \"<é>\\n\"\n}"))
	lines.Send([]byte("{\nno JSON"))
	lines.Answer(nil)
	lines.Answer([]byte(`{}`))
	assert.Equal(t, "{\"a\": 1, \"b\":\"\\n\"}\n{\"big\":12345678901234567890,\"text\":\"<é>\\n\"}\n{}\n", out.String())
}

func TestLinesOfManyDoNotMix(t *testing.T) {
	var out bytes.Buffer
	lines := session.NewLines(&out)
	var senders sync.WaitGroup
	for i := range 50 {
		senders.Go(func() { lines.Send(fmt.Appendf(nil, `{"from":%d,"text":%q}`, i, strings.Repeat("x", 1000))) })
	}
	senders.Wait()
	assert.Equal(t, 50, strings.Count(out.String(), "\n"))
	assert.Equal(t, 50, strings.Count(out.String(), strings.Repeat("x", 1000)+"\"}\n"))
}

func TestLinesForAClientThatHasGone(t *testing.T) {
	w := &brokenAfter{left: 1}
	lines := session.NewLines(w)
	for range 3 {
		lines.Send([]byte(`{}`))
	}
	assert.Equal(t, 2, w.writes, "nothing is written after a failure")
}

type brokenAfter struct{ left, writes int }

func (b *brokenAfter) Write(p []byte) (int, error) {
	b.writes++
	if b.left--; b.left < 0 {
		return 0, io.ErrClosedPipe
	}
	return len(p), nil
}

// TestASessionOverPipes is one over stdio: lines in, lines out, and the end when the input ends.
func TestASessionOverPipes(t *testing.T) {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	lines := session.NewLines(out)
	s := newSession(t, dialect{"test/say": func(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
		say(c, "hello")
		return echo(ctx, c)
	}}, map[string]mcp.ToolHandler{"chat": chat}, lines)
	served := make(chan error, 1)
	go func() {
		for line, err := range session.ReadLines(in, 1<<20) {
			message, rpcErr := rpc.DecodeAny(line)
			if err = errors.Join(err, refused(rpcErr)); err == nil {
				s.Receive(message, nil, lines)
			}
			if err != nil {
				served <- err
				return
			}
		}
		s.Drain()
		served <- out.Close()
	}()
	reader := session.ReadLines(fromServer, 1<<20)
	answers := make(chan string)
	go func() {
		defer close(answers)
		for line, err := range reader {
			answers <- string(line) + fmt.Sprint(errors.Join(err))
		}
	}()
	send := func(line string) {
		_, err := io.WriteString(toServer, line+"\n")
		require.NoError(t, err)
	}
	next := func() string { return strings.TrimSuffix(await(t, answers), "<nil>") }

	assert.False(t, s.Initialized())
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"x","version":"1"}}}`)
	assert.Contains(t, next(), `"protocolVersion":"2025-06-18"`)
	assert.True(t, s.Initialized())
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(`{"jsonrpc":"2.0","id":"a\u00e9","method":"test/say","params":{"n":1}}`)
	assert.Equal(t, said("hello"), next())
	assert.Equal(t, answered(`"a\u00e9"`, `{"n":1}`), next())
	send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"chat","_meta":{"progressToken":1}}}`)
	assert.Contains(t, next(), "notifications/progress")
	id := idOf(t, event{data: next()})
	s.Notify("test/pushed", map[string]string{"text": "x"})
	assert.Equal(t, pushed("x"), next())
	send(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept","content":{"color":"red"}}}`)
	assert.Equal(t, answered("2", doneResult("acceptred")), next())
	require.NoError(t, toServer.Close())
	assert.NoError(t, await(t, served))
	_, more := <-answers
	assert.False(t, more)
}

func refused(err *rpc.Error) error {
	if err == nil {
		return nil
	}
	return err
}

// TestDrainWhileCallsCome: those that come in time are answered, those that come too late are refused.
func TestDrainWhileCallsCome(t *testing.T) {
	const calls = 100
	out := make(outlet, calls)
	s := newSession(t, dialect{"test/echo": echo}, nil, out)
	begun := make(chan struct{})
	go func() {
		for id := range calls {
			receive(t, s, out, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"test/echo"}`, id))
			if id == calls/10 {
				close(begun)
			}
		}
	}()
	await(t, begun)
	s.Drain()
	for range calls {
		answer := await(t, out)
		assert.True(t, strings.HasSuffix(answer, `"result":{}}`) || strings.HasSuffix(answer, `"error":{"code":-32603,"message":"the session has ended"}}`), answer)
	}
	receive(t, s, out, `{"jsonrpc":"2.0","id":"late","method":"ping"}`)
	assert.Equal(t, `{"jsonrpc":"2.0","id":"late","error":{"code":-32603,"message":"the session has ended"}}`, await(t, out))
}

// TestDrainEndsSubscriptions, which have no end of their own.
func TestDrainEndsSubscriptions(t *testing.T) {
	out := make(outlet, 10)
	s := newSession(t, nil, nil, out)
	receive(t, s, out, `{"jsonrpc":"2.0","id":"listen","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	assert.Contains(t, await(t, out), "notifications/subscriptions/acknowledged")
	s.Drain()
	assert.Contains(t, await(t, out), `"id":"listen"`)
}

// TestEndAnswersWhatIsOpen: nobody waits for ever.
func TestEndAnswersWhatIsOpen(t *testing.T) {
	begun := newGate()
	out := make(outlet, 10)
	s := newSession(t, dialect{"tasks/result": func(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
		begun.wait(ctx)
		<-ctx.Done()
		return nil, rpc.Errorf(rpc.CodeInternalError, "%v", context.Cause(ctx))
	}}, map[string]mcp.ToolHandler{"wait": func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		begun.wait(ctx)
		<-ctx.Done()
		return nil, ctx.Err()
	}}, out)
	receive(t, s, out, initialize)
	await(t, out)
	receive(t, s, out, `{"jsonrpc":"2.0","id":1,"method":"tasks/result"}`)
	receive(t, s, out, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait"}}`)
	begun.pass(t)
	begun.pass(t)
	s.End(session.ErrShutdown)
	s.Drain()
	assert.ElementsMatch(t, []string{
		`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the server is shutting down"}}`,
		`{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the session has ended"}}`,
	}, []string{await(t, out), await(t, out)})
	receive(t, s, out, `{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	assert.Equal(t, `{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"the session has ended"}}`, await(t, out))
}
