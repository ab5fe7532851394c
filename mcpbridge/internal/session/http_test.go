package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/session"
)

func TestAQuickAnswerIsJSON(t *testing.T) {
	e := newEndpoint(t, dialect{"test/echo": echo}, nil)
	for _, version := range versions {
		c := e.open(version)
		a := c.call("7", "test/echo", `{"b":1,"a":[2, 3]}`)
		assert.Equal(t, http.StatusOK, a.StatusCode)
		assert.Equal(t, "application/json", a.Header.Get("Content-Type"))
		assert.Equal(t, answered("7", `{"b":1,"a":[2, 3]}`), a.text())
	}
}

func TestAnAnswerThatSomethingPrecedesIsAStream(t *testing.T) {
	e := newEndpoint(t, dialect{"test/say": func(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
		say(c, "hello")
		return echo(ctx, c)
	}}, nil)
	for version, primed := range map[string]bool{march2025: false, june2025: false, november2025: true} {
		t.Run(version, func(t *testing.T) {
			c := e.open(version)
			a := c.call("7", "test/say", `{}`)
			if primed {
				a.prime()
			}
			a.message(said("hello"))
			a.message(answered("7", `{}`))
			a.ends()
			assert.Equal(t, "no", a.Header.Get("X-Accel-Buffering"))
		})
	}
}

// TestALongAnswerIsAStreamFromTheStart, which clients of 2025-11-25 can resume before anything has come.
func TestALongAnswerIsAStreamFromTheStart(t *testing.T) {
	for _, test := range []struct {
		version string
		primed  bool
	}{{march2025, false}, {june2025, false}, {november2025, true}} {
		for _, method := range []string{"tools/call", "tasks/result"} {
			t.Run(test.version+" "+method, func(t *testing.T) {
				e := newEndpoint(t, dialect{method: echo}, nil)
				a := e.open(test.version).call("7", method, `{}`)
				if test.primed {
					a.prime()
				}
				a.message(answered("7", `{}`))
				a.ends()
			})
		}
	}
}

// lost is a call that says "one" when it begins and "two" and "three" when the test lets it.
func lost() (dialect, gate) {
	goOn := newGate()
	return dialect{"tasks/result": func(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
		say(c, "one")
		goOn.wait(ctx)
		say(c, "two")
		say(c, "three")
		return echo(ctx, c)
	}, "test/echo": echo}, goOn
}

func TestABrokenStreamIsResumed(t *testing.T) {
	d, goOn := lost()
	c := newEndpoint(t, d, nil).open(november2025)
	rest := func(a *answer, from int) {
		for _, message := range []string{said("one"), said("two"), said("three"), answered("7", "{}")}[from:] {
			a.message(message)
		}
		a.ends()
	}

	t.Run("while the call goes on", func(t *testing.T) {
		a := c.call("7", "tasks/result", "{}")
		a.prime()
		one := a.message(said("one"))
		a.leave()
		resumed := c.listen(one)
		goOn.pass(t)
		rest(resumed, 1)
	})
	t.Run("after the call", func(t *testing.T) {
		a := c.call("7", "tasks/result", "{}")
		start := a.prime()
		one := a.message(said("one"))
		a.leave()
		goOn.pass(t)
		rest(c.listen(one), 1)
		rest(c.listen(one), 1)
		rest(c.listen(start), 0)
	})
	t.Run("though it was read to its end", func(t *testing.T) {
		a := c.call("7", "tasks/result", "{}")
		a.prime()
		a.message(said("one"))
		goOn.pass(t)
		two := a.message(said("two"))
		a.message(said("three"))
		last := a.message(answered("7", "{}"))
		a.ends()
		rest(c.listen(two), 2)
		c.listen(last).ends()
	})
	t.Run("though its first connection is still there", func(t *testing.T) {
		a := c.call("7", "tasks/result", "{}")
		start := a.prime()
		a.message(said("one"))
		resumed := c.listen(start)
		a.ends()
		goOn.pass(t)
		rest(resumed, 0)
	})
}

// TestPollingDoesNotPushOutALostStream: only what was sent as a stream can be resumed, so only that is worth keeping.
func TestPollingDoesNotPushOutALostStream(t *testing.T) {
	d, goOn := lost()
	c := newEndpoint(t, d, nil).open(november2025)
	a := c.call("7", "tasks/result", "{}")
	start := a.prime()
	a.leave()
	goOn.pass(t)
	for id := range 20 {
		answer := c.call(strconv.Itoa(100+id), "test/echo", "{}").text()
		assert.Equal(t, answered(strconv.Itoa(100+id), "{}"), answer)
	}
	resumed := c.listen(start)
	resumed.message(said("one"))
	resumed.message(said("two"))
}

func TestOldStreamsAreForgotten(t *testing.T) {
	c := newEndpoint(t, dialect{"tasks/result": echo}, nil).open(november2025)
	first := ""
	for id := range 9 {
		a := c.call(strconv.Itoa(id), "tasks/result", "{}")
		if start := a.prime(); first == "" {
			first = start
		}
		a.message(answered(strconv.Itoa(id), "{}"))
		a.ends()
	}
	c.do(http.MethodGet, "", http.Header{"Last-Event-Id": {first}}).refused(http.StatusBadRequest, "header Last-Event-ID")
}

func TestUnknownEventsAreNotResumed(t *testing.T) {
	e := newEndpoint(t, dialect{"tasks/result": echo}, nil)
	c, other := e.open(november2025), e.open(november2025)
	a := c.call("7", "tasks/result", "{}")
	start := a.prime()
	last := a.message(answered("7", "{}"))
	name, _, _ := strings.Cut(start, "_")
	require.Equal(t, name+"_0", last)
	for _, unknown := range []string{"nonsense", "_", "0_", "0_x", "0_-2", "no-such-stream_0", name, name + "_", name + "_1", name + "_99", name + "_0_0", "0_0"} {
		c.do(http.MethodGet, "", http.Header{"Last-Event-Id": {unknown}}).refused(http.StatusBadRequest, `header Last-Event-ID is \"`+unknown+`\"`)
	}
	other.do(http.MethodGet, "", http.Header{"Last-Event-Id": {last}}).refused(http.StatusBadRequest, "no stream of this session")
}

// push is a dialect whose call test/push sends the client what belongs to no call.
func push() dialect {
	return dialect{"test/push": func(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
		c.Session.Notify("test/pushed", c.Params)
		return echo(ctx, c)
	}}
}

func (c client) push(text string) {
	c.t.Helper()
	assert.Equal(c.t, answered("1", `{"text":"`+text+`"}`), c.call("1", "test/push", `{"text":"`+text+`"}`).text())
}

func pushed(text string) string {
	return `{"jsonrpc":"2.0","method":"test/pushed","params":{"text":"` + text + `"}}`
}

func TestTheNewestGetHasTheSessionsStream(t *testing.T) {
	c := newEndpoint(t, push(), nil).open(june2025)
	older := c.listen("")
	c.push("a")
	older.message(pushed("a"))
	newer := c.listen("")
	older.ends()
	c.push("b")
	newer.message(pushed("b"))
	newest := c.listen("")
	newer.ends()
	c.push("c")
	newest.message(pushed("c"))
}

func TestGetBringsWhatNoConnectionCarriedBefore(t *testing.T) {
	c := newEndpoint(t, push(), nil).open(june2025)
	c.push("a")
	c.push("b")
	first := c.listen("")
	first.message(pushed("a"))
	b := first.message(pushed("b"))
	first.leave()

	second := c.listen("")
	c.push("c")
	second.message(pushed("c"))
	second.leave()

	resumed := c.listen(b)
	resumed.message(pushed("c"))
	c.push("d")
	resumed.message(pushed("d"))
}

// TestTheSessionsStreamForgetsItsOldest, so that a client which never listens costs no more than this.
func TestTheSessionsStreamForgetsItsOldest(t *testing.T) {
	const sent = 10_000
	c := newEndpoint(t, dialect{"test/flood": func(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
		for number := range sent {
			c.Session.Notify("test/pushed", map[string]int{"number": number})
		}
		return echo(ctx, c)
	}}, nil).open(june2025)
	c.call("1", "test/flood", "{}").text()
	pushed := c.listen("")
	var kept []int
	for len(kept) == 0 || kept[len(kept)-1] < sent-1 {
		var message struct{ Params struct{ Number int } }
		require.NoError(t, json.Unmarshal([]byte(pushed.next().data), &message))
		kept = append(kept, message.Params.Number)
	}
	assert.Greater(t, kept[0], 0)
	assert.Len(t, kept, sent-kept[0], "without a gap")
}

func TestBatches(t *testing.T) {
	e := newEndpoint(t, dialect{"test/echo": echo, "test/say": func(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
		say(c, "hello")
		return echo(ctx, c)
	}}, nil)
	const notification = `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`
	request := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"test/echo","params":{}}` }

	c := e.open(march2025)
	c.accepted("[" + notification + "," + notification + "]")
	one := c.post("[" + notification + "," + request("1") + "]")
	assert.Equal(t, answered("1", "{}"), one.text())
	two := c.post(" [" + request("1") + "," + request("2") + "]")
	assert.ElementsMatch(t, []string{answered("1", "{}"), answered("2", "{}")}, []string{two.next().data, two.next().data})
	two.ends()

	for body, message := range map[string]string{
		"[]":                                `{"jsonrpc":"2.0","error":{"code":-32700,"message":"the batch is empty or no JSON"}}`,
		"[" + request("1"):                  `{"jsonrpc":"2.0","error":{"code":-32700,"message":"the batch is empty or no JSON"}}`,
		"[" + request("1") + ",5]":          `{"jsonrpc":"2.0","error":{"code":-32600,"message":"a message must be a JSON object"}}`,
		"[[" + request("1") + "]]":          `{"jsonrpc":"2.0","error":{"code":-32600,"message":"batches are not part of MCP: send each message as a request of its own"}}`,
		`[{"jsonrpc":"2.0","id":"\u0041"}]`: `{"jsonrpc":"2.0","id":"\u0041","error":{"code":-32600,"message":"method must be a string"}}`,
	} {
		a := c.post(body)
		assert.Equal(t, http.StatusBadRequest, a.StatusCode, body)
		assert.Equal(t, message, a.text(), body)
	}
	for _, version := range []string{june2025, november2025} {
		e.open(version).post("["+request("1")+"]").refused(http.StatusBadRequest, "batches are not part of MCP")
	}
}

func TestRefusedRequests(t *testing.T) {
	e := newEndpoint(t, dialect{"test/echo": echo}, nil)
	c := e.open(november2025)
	const body = `{"jsonrpc":"2.0","id":1,"method":"test/echo"}`
	for _, test := range []struct {
		name, method string
		header       http.Header
		status       int
		message      string
	}{
		{"unknown session", http.MethodPost, http.Header{"Mcp-Session-Id": {"other"}}, 404, "open a new one with initialize"},
		{"unknown session", http.MethodGet, http.Header{"Mcp-Session-Id": {"other"}}, 404, "open a new one with initialize"},
		{"unknown session", http.MethodDelete, http.Header{"Mcp-Session-Id": {"other"}}, 404, "open a new one with initialize"},
		{"no session", http.MethodPost, http.Header{"Mcp-Session-Id": nil}, 400, "header Mcp-Session-Id is missing"},
		{"no session", http.MethodGet, http.Header{"Mcp-Session-Id": nil}, 400, "header Mcp-Session-Id is missing"},
		{"no session", http.MethodDelete, http.Header{"Mcp-Session-Id": nil}, 400, "header Mcp-Session-Id is missing"},
		{"unsupported version", http.MethodPost, http.Header{"Mcp-Protocol-Version": {"2024-01-01"}}, 400, "sessions have 2025-11-25, 2025-06-18, 2025-03-26"},
		{"unsupported version", http.MethodGet, http.Header{"Mcp-Protocol-Version": {"2024-01-01"}}, 400, "sessions have 2025-11-25, 2025-06-18, 2025-03-26"},
		{"unsupported version", http.MethodDelete, http.Header{"Mcp-Protocol-Version": {"2024-01-01"}}, 400, "sessions have 2025-11-25, 2025-06-18, 2025-03-26"},
		{"no streams taken", http.MethodPost, http.Header{"Accept": {"application/json"}}, 406, "application/json and text/event-stream"},
		{"no JSON taken", http.MethodPost, http.Header{"Accept": {"text/event-stream"}}, 406, "application/json and text/event-stream"},
		{"no streams taken", http.MethodGet, http.Header{"Accept": {"application/json"}}, 406, "text/event-stream"},
		{"neither taken", http.MethodPost, http.Header{"Accept": {"text/html"}}, 406, "application/json and text/event-stream"},
	} {
		t.Run(test.method+" "+test.name, func(t *testing.T) {
			c := c
			c.t = t
			sent := body
			if test.method != http.MethodPost {
				sent = ""
			}
			c.do(test.method, sent, test.header).refused(test.status, test.message)
		})
	}
	t.Run("another method", func(t *testing.T) {
		a := c.do(http.MethodPut, body, nil)
		assert.Equal(t, http.StatusMethodNotAllowed, a.StatusCode)
		assert.Equal(t, "GET, POST, DELETE", a.Header.Get("Allow"))
	})
	for _, accept := range [][]string{nil, {"*/*"}, {"application/*, text/*"}, {"application/json; q=0.9", "text/event-stream"}} {
		a := c.do(http.MethodPost, body, http.Header{"Accept": accept})
		assert.Equal(t, answered("1", "{}"), a.text(), accept)
	}
	for body, message := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"method":"test/echo","params":[]}`: `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"params must be an object, not \"[]\""}}`,
		`{"jsonrpc":`: `{"jsonrpc":"2.0","error":{"code":-32700,"message":"parse error: unexpected EOF at byte 11"}}`,
	} {
		a := c.post(body)
		assert.Equal(t, http.StatusBadRequest, a.StatusCode)
		assert.Equal(t, message, a.text())
	}
}

func TestASessionThatDoesNotOpenIsNotKept(t *testing.T) {
	e := newEndpoint(t, nil, nil)
	c := client{endpoint: e}
	a := c.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5}}`)
	assert.Contains(t, a.text(), `"error"`)
	assert.Eventually(t, func() bool { return e.handler.Len() == 0 }, soon, time.Millisecond)
	c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).refused(http.StatusBadRequest, "header Mcp-Session-Id is missing")
	assert.Zero(t, e.handler.Len())
}

func TestDelete(t *testing.T) {
	cause := make(chan error, 1)
	e := newEndpoint(t, dialect{"tasks/result": func(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
		say(c, "waiting")
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil, rpc.Errorf(rpc.CodeInternalError, "ended")
	}}, nil)
	c, other := e.open(november2025), e.open(november2025)
	pushed, call := c.listen(""), c.call("1", "tasks/result", "{}")
	call.prime()
	call.message(said("waiting"))
	assert.Equal(t, 2, e.handler.Len())

	assert.Equal(t, http.StatusNoContent, c.do(http.MethodDelete, "", nil).StatusCode)
	assert.ErrorIs(t, await(t, cause), session.ErrEnded)
	pushed.ends()
	assert.NotContains(t, call.text(), `"result"`)
	c.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`).refused(http.StatusNotFound, "it has ended")
	c.do(http.MethodDelete, "", nil).refused(http.StatusNotFound, "it has ended")
	assert.Equal(t, answered("1", "{}"), other.call("1", "ping", "{}").text(), "other sessions go on")
	assert.Equal(t, 1, e.handler.Len())
}

const initialize = `{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

func TestSessionsThatAreNotConnectedGiveWay(t *testing.T) {
	e := newEndpoint(t, nil, nil, func(o *session.Options) { o.Max = 3 })
	first, connected, third := e.open(june2025), e.open(june2025), e.open(june2025)
	stream := connected.listen("")
	first.call("1", "ping", "{}").text() // so that the third is without a connection for longest

	fourth := e.open(june2025)
	third.call("1", "ping", "{}").refused(http.StatusNotFound, "it has ended")
	for _, c := range []client{first, connected, fourth} {
		assert.Equal(t, answered("1", "{}"), c.call("1", "ping", "{}").text())
	}
	assert.Equal(t, 3, e.handler.Len())

	streams := []*answer{stream, first.listen(""), fourth.listen("")}
	refused := client{endpoint: e}.post(initialize)
	refused.refused(http.StatusServiceUnavailable, "there are 3 sessions, all of them connected")
	assert.Equal(t, "60", refused.Header.Get("Retry-After"))
	assert.Empty(t, refused.Header.Get("Mcp-Session-Id"))

	streams[1].leave()
	assert.Eventually(t, func() bool {
		a := client{endpoint: e}.post(initialize)
		c := client{e, june2025, a.Header.Get("Mcp-Session-Id")}
		c.end()
		return a.StatusCode == http.StatusOK
	}, soon, 10*time.Millisecond)
}

// TestOpeningSessionsDoNotEndEachOther: a session whose initialize is still being answered is connected.
func TestOpeningSessionsDoNotEndEachOther(t *testing.T) {
	const most, clients = 4, 200
	e := newEndpoint(t, nil, nil, func(o *session.Options) { o.Max = most })
	type opened struct{ id, text string }
	answers := make(chan opened, clients)
	for range clients {
		go func() {
			answer, err := e.http.Post(e.url, "application/json", strings.NewReader(initialize))
			if err != nil {
				answers <- opened{text: err.Error()}
				return
			}
			text, err := io.ReadAll(answer.Body)
			answers <- opened{answer.Header.Get("Mcp-Session-Id"), fmt.Sprint(string(text), errors.Join(err, answer.Body.Close()))}
		}()
	}
	for range clients {
		answer := await(t, answers)
		assert.True(t, strings.Contains(answer.text, `"protocolVersion":"2025-06-18"`) || strings.Contains(answer.text, "all of them connected"), answer.text)
		t.Cleanup(client{e, june2025, answer.id}.end)
	}
	assert.Equal(t, most, e.handler.Len())
}

// TestShutdown ends what has no end of its own; calls are answered first.
func TestShutdown(t *testing.T) {
	d, goOn := lost()
	e := newEndpoint(t, d, nil)
	c := e.open(november2025)
	pushed, call := c.listen(""), c.call("1", "tasks/result", "{}")
	call.prime()
	call.message(said("one"))
	e.stop()
	pushed.ends()
	goOn.pass(t)
	call.message(said("two"))
	call.message(said("three"))
	call.message(answered("1", "{}"))
	call.ends()
}

func TestEndAll(t *testing.T) {
	e := newEndpoint(t, nil, nil)
	c, idle := e.open(june2025), e.open(june2025)
	stream := c.listen("")
	e.handler.EndAll(session.ErrShutdown)
	stream.ends()
	assert.Zero(t, e.handler.Len())
	for _, c := range []client{c, idle} {
		c.call("1", "ping", "{}").refused(http.StatusNotFound, "it has ended")
	}
}

// TestListening: a session knows whether its client reads what belongs to no call.
func TestListening(t *testing.T) {
	c := newEndpoint(t, dialect{"test/listening": func(_ context.Context, c *session.Call) ([]byte, *rpc.Error) {
		return []byte(strconv.FormatBool(c.Session.Listening())), nil
	}}, nil).open(june2025)
	listening := func(want string) func() bool {
		return func() bool { return c.call("1", "test/listening", "{}").text() == answered("1", want) }
	}
	assert.True(t, listening("false")())
	stream := c.listen("")
	assert.Eventually(t, listening("true"), soon, time.Millisecond)
	stream.leave()
	assert.Eventually(t, listening("false"), soon, time.Millisecond)
}
