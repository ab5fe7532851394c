package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/session"
)

func done(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

func doneResult(text string) string { return `{"content":[{"type":"text","text":"` + text + `"}]}` }

func TestIDsComeBackAsSent(t *testing.T) {
	e := newEndpoint(t, dialect{"test/echo": echo}, nil)
	c := e.open(november2025)
	for _, method := range []string{"test/echo", "ping"} {
		for _, id := range []string{`0`, `-1`, `"1"`, `"a\u00e9\"/"`, `"a\u0000"`, `9007199254740993`, `123456789012345678901234567890`} {
			assert.Equal(t, answered(id, "{}"), c.call(id, method, "{}").text())
		}
	}
	refused := c.call(`"\u0041"`, "no/such", "{}").text()
	assert.Contains(t, refused, `"id":"\u0041",`)
	assert.Contains(t, refused, `"code":-32601`)
}

func TestAnOpenIDIsNotUsedTwice(t *testing.T) {
	goOn := newGate()
	e := newEndpoint(t, dialect{"test/echo": echo, "tasks/result": func(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
		say(c, "begun")
		goOn.wait(ctx)
		return echo(ctx, c)
	}}, nil)
	c, other := e.open(november2025), e.open(november2025)
	first := c.call("7", "tasks/result", `{}`)
	first.prime()
	first.message(said("begun"))
	for _, method := range []string{"test/echo", "ping"} {
		assert.Equal(t, `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"id \"7\" is that of a request which is still open: use each ID once"}}`,
			c.call("7", method, `{}`).text())
	}
	assert.Equal(t, answered(`"7"`, "{}"), c.call(`"7"`, "test/echo", "{}").text(), "a string is another ID")
	assert.Equal(t, answered("7", "{}"), other.call("7", "test/echo", "{}").text(), "another session has IDs of its own")
	goOn.pass(t)
	first.message(answered("7", "{}"))
	first.ends()
	assert.Equal(t, answered("7", "{}"), c.call("7", "test/echo", "{}").text(), "it is not open any more")
}

func TestAPanicIsAnError(t *testing.T) {
	e := newEndpoint(t, dialect{"test/panic": func(context.Context, *session.Call) ([]byte, *rpc.Error) { panic("told to") }}, nil)
	c := e.open(november2025)
	for range 2 {
		assert.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}`, c.call("1", "test/panic", "{}").text())
	}
	assert.Equal(t, answered("1", "{}"), c.call("1", "ping", "{}").text())
}

// TestACancelledCallIsNotAnswered, whoever serves it.
func TestACancelledCallIsNotAnswered(t *testing.T) {
	causes := make(chan error, 1)
	e := newEndpoint(t,
		dialect{"tasks/result": func(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
			say(c, "begun")
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return echo(ctx, c)
		}},
		map[string]mcp.ToolHandler{"wait": func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: "t", Progress: 1})
			<-ctx.Done()
			causes <- errors.Join(err, ctx.Err())
			return done("too late"), nil
		}})
	for _, version := range versions {
		for _, test := range []struct {
			method, params, begun string
			cause                 error
		}{
			{"tasks/result", `{}`, said("begun"), session.ErrCancelled},
			{"tools/call", `{"name":"wait"}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}`, context.Canceled},
		} {
			t.Run(version+" "+test.method, func(t *testing.T) {
				c := e.open(version)
				a := c.call(`"x\u0041"`, test.method, test.params)
				if version == november2025 {
					a.prime()
				}
				a.message(test.begun)
				c.accepted(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"other"}}`)
				c.accepted(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`)
				c.accepted(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
				c.accepted(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0078A","reason":"enough"}}`) // the same, spelled otherwise
				a.ends()
				assert.ErrorIs(t, await(t, causes), test.cause)
				c.accepted(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x\u0041"}}`)
				assert.Equal(t, answered(`"y"`, "{}"), c.call(`"y"`, "ping", "{}").text())
			})
		}
	}
}

// TestALateAnswerIsNobodyElses: a client that uses the ID of a cancelled call again, which it should not, does not get what
// the tool of that call still returns.
func TestALateAnswerIsNobodyElses(t *testing.T) {
	begun, finish := newGate(), newGate()
	e := newEndpoint(t, nil, map[string]mcp.ToolHandler{"slow": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		begun.wait(context.Background())
		finish.wait(context.Background())
		return done("too late"), nil
	}})
	c := e.open(june2025)
	cancelled := make(chan string)
	go func() { cancelled <- c.call("7", "tools/call", `{"name":"slow"}`).text() }()
	begun.pass(t)
	c.accepted(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	assert.NotContains(t, await(t, cancelled), "7")
	again := c.call("7", "ping", "{}")
	assert.Contains(t, again.text(), "still open")
	finish.pass(t)
	assert.Eventually(t, func() bool { return c.call("7", "ping", "{}").text() == answered("7", "{}") }, soon, 5*time.Millisecond)
}

// TestANotificationIsNoAnswer: when a call that has sent something is cancelled before its response has become a stream,
// what it sent must not become the response.
func TestANotificationIsNoAnswer(t *testing.T) {
	spoken := newGate()
	e := newEndpoint(t, dialect{"test/say": func(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
		say(c, "begun")
		spoken.wait(ctx)
		<-ctx.Done()
		return echo(ctx, c)
	}}, nil)
	c := e.open(june2025)
	go func() {
		spoken.pass(t)
		c.accepted(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
	}()
	a := c.call("7", "test/say", "{}")
	a.message(said("begun"))
	a.ends()
}

// chat is a tool that does all that a tool can do with its client.
func chat(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	err := errors.Join(
		r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: 2, Message: "half"}),
		//nolint:staticcheck // SEP-2577 deprecates logging, and the revisions with sessions have it
		r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "so far"}))
	if err != nil {
		return nil, err
	}
	answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Which color?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"color":{"type":"string"}}}`)})
	if err != nil {
		return done(err.Error()), nil
	}
	return done(fmt.Sprint(answer.Action, answer.Content["color"])), nil
}

// TestWhatAToolSendsGoesWithItsCall: progress, log messages and requests come on the stream of the call that they belong
// to, though the client also has a stream for what belongs to none.
func TestWhatAToolSendsGoesWithItsCall(t *testing.T) {
	e := newEndpoint(t, nil, map[string]mcp.ToolHandler{"chat": chat})
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			c := e.open(version, `"elicitation":{}`)
			c.call("1", "logging/setLevel", `{"level":"info"}`).text()
			pushed := c.listen("")
			calls := map[string]*answer{}
			for id, color := range map[string]string{"2": "red", "3": "blue"} {
				a := c.call(id, "tools/call", `{"name":"chat","_meta":{"progressToken":"token `+id+`"}}`)
				if version == november2025 {
					a.prime()
				}
				a.message(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"token ` + id + `","message":"half","progress":1,"total":2}}`)
				a.message(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"so far","level":"info"}}`)
				question := a.next()
				assert.Contains(t, question.data, `"method":"elicitation/create"`)
				assert.Contains(t, question.data, "Which color?")
				defer a.message(answered(id, doneResult("accept"+color)))
				defer c.accepted(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"color":%q}}}`, idOf(t, question), color))
				calls[id] = a
			}
			addTool(e.base, "another "+version, chat)
			pushed.message(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}}`)
		})
	}
}

// idOf is the ID of a request in an event.
func idOf(t testing.TB, e event) string {
	t.Helper()
	var request struct{ ID json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(e.data), &request), e.data)
	require.NotEmpty(t, request.ID, e.data)
	return string(request.ID)
}

func TestAClientRefusesWhatAToolAsks(t *testing.T) {
	c := newEndpoint(t, nil, map[string]mcp.ToolHandler{"chat": chat}).open(june2025, `"elicitation":{}`)
	a := c.call("2", "tools/call", `{"name":"chat","_meta":{"progressToken":0}}`)
	a.next()
	question := a.next()
	c.accepted(`{"jsonrpc":"2.0","id":` + idOf(t, question) + `,"error":{"code":-1,"message":"nobody is here"}}`)
	a.message(answered("2", doneResult(`calling \"elicitation/create\": nobody is here`)))
}

// TestAToolWithdrawsItsQuestion: the client is told so by the ID that it was asked under.
func TestAToolWithdrawsItsQuestion(t *testing.T) {
	goOn := newGate()
	e := newEndpoint(t, nil, map[string]mcp.ToolHandler{"hasty": func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		asking, enough := context.WithCancel(ctx)
		go func() { goOn.wait(ctx); enough() }()
		if _, err := r.Session.Elicit(asking, &mcp.ElicitParams{Message: "Now?", RequestedSchema: json.RawMessage(`{"type":"object"}`)}); !errors.Is(err, context.Canceled) {
			return nil, fmt.Errorf("asked in vain: %w", err)
		}
		goOn.wait(ctx)
		return done("went on"), nil
	}})
	c := e.open(june2025, `"elicitation":{}`)
	a := c.call("2", "tools/call", `{"name":"hasty"}`)
	id := idOf(t, a.next())
	goOn.pass(t)
	a.message(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"context canceled"}}`)
	c.accepted(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"cancel"}}`)
	goOn.pass(t)
	a.message(answered("2", doneResult("went on")))
}

// TestAToolHangsUp: it ends its call's connection, which the client opens again.
func TestAToolHangsUp(t *testing.T) {
	goOn := newGate()
	e := newEndpoint(t, nil, map[string]mcp.ToolHandler{"polled": func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 1500 * time.Millisecond})
		goOn.wait(ctx)
		return done("done"), nil
	}})
	c := e.open(november2025)
	a := c.call("2", "tools/call", `{"name":"polled"}`)
	start := a.prime()
	assert.Equal(t, event{name: "close", retry: "1500"}, a.next())
	a.ends()
	resumed := c.listen(start)
	goOn.pass(t)
	resumed.message(answered("2", doneResult("done")))
	resumed.ends()
}

// question is a call that asks the client something and waits for the answer.
func question() dialect {
	return dialect{"tasks/result": func(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
		answers := make(chan []byte, 10)
		_, err := c.Ask("test/question", []byte(`{"text":"Which color?"}`), func(result jsontext.Value, refusal *rpc.Error) {
			if refusal != nil {
				result = jsontext.Value(fmt.Sprintf(`{"refused":%q,"code":%d}`, refusal.Message, refusal.Code))
			}
			answers <- result
		})
		if err != nil {
			return nil, rpc.Errorf(rpc.CodeInternalError, "%v", err)
		}
		select {
		case answer := <-answers:
			return answer, nil
		case <-ctx.Done():
			return nil, rpc.Errorf(rpc.CodeInternalError, "nobody answered")
		}
	}}
}

func TestAnswers(t *testing.T) {
	c := newEndpoint(t, question(), nil).open(june2025)
	for sent, got := range map[string]string{
		`"result":{"color": "blue", "n":1.50}`:                     `{"color": "blue", "n":1.50}`,
		`"error":{"code":-1,"message":"no","data":{"why":"dark"}}`: `{"refused":"no","code":-1}`,
		`"error":"no"`: `{"refused":"the client's error cannot be read","code":-32603}`,
	} {
		a := c.call("1", "tasks/result", "{}")
		asked := a.next()
		id := idOf(t, asked)
		assert.Equal(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"test/question","params":{"text":"Which color?"}}`, asked.data)
		c.accepted(`{"jsonrpc":"2.0","id":` + id + `,` + sent + `}`)
		a.message(answered("1", got))
		a.ends()
		c.accepted(`{"jsonrpc":"2.0","id":` + id + `,` + sent + `}`) // for the second time
	}
	c.accepted(`{"jsonrpc":"2.0","id":"unknown","result":{}}`)
}

// TestAnAnswerMayComeLate: the call that asked is over, but the answer still goes to whom it concerns.
func TestAnAnswerMayComeLate(t *testing.T) {
	answers := make(chan string, 1)
	c := newEndpoint(t, dialect{"tasks/result": func(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
		_, err := c.Ask("test/question", []byte(`{}`), func(result jsontext.Value, _ *rpc.Error) {
			answers <- string(result)
		})
		if err != nil {
			return nil, rpc.Errorf(rpc.CodeInternalError, "%v", err)
		}
		return echo(ctx, c)
	}}, nil).open(june2025)
	a := c.call("1", "tasks/result", "{}")
	id := idOf(t, a.next())
	a.message(answered("1", "{}"))
	a.ends()
	c.accepted(`{"jsonrpc":"2.0","id":` + id + `,"result":{"late":true}}`)
	assert.Equal(t, `{"late":true}`, await(t, answers))
}

func TestWithdraw(t *testing.T) {
	goOn := newGate()
	c := newEndpoint(t, dialect{"tasks/result": func(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
		withdraw, err := c.Ask("test/question", []byte(`{}`), func(jsontext.Value, *rpc.Error) {
			t.Error("the question was withdrawn")
		})
		if err != nil {
			return nil, rpc.Errorf(rpc.CodeInternalError, "%v", err)
		}
		withdraw("settled")
		withdraw("settled") // once more does nothing
		goOn.wait(ctx)
		return echo(ctx, c)
	}}, nil).open(june2025)
	a := c.call("1", "tasks/result", "{}")
	id := idOf(t, a.next())
	a.message(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"settled"}}`)
	c.accepted(`{"jsonrpc":"2.0","id":` + id + `,"result":{}}`)
	goOn.pass(t)
	a.message(answered("1", "{}"))
}

// TestTooManyOpenCalls: one client cannot have any number of them.
func TestTooManyOpenCalls(t *testing.T) {
	outlet := make(outlet, 2000)
	goOn := newGate()
	s := newSession(t, dialect{"tasks/result": func(ctx context.Context, c *session.Call) ([]byte, *rpc.Error) {
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return echo(ctx, c)
	}}, nil, outlet)
	for id := range 1000 {
		receive(t, s, outlet, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tasks/result"}`, id))
	}
	for _, method := range []string{"tasks/result", "ping"} {
		receive(t, s, outlet, fmt.Sprintf(`{"jsonrpc":"2.0","id":"more","method":%q}`, method))
		assert.Equal(t, `{"jsonrpc":"2.0","id":"more","error":{"code":-32603,"message":"this session has 1000 open requests: wait until some are answered"}}`, await(t, outlet))
	}
	goOn.pass(t)
	await(t, outlet)
	receive(t, s, outlet, `{"jsonrpc":"2.0","id":"more","method":"ping"}`)
	assert.Equal(t, answered(`"more"`, "{}"), await(t, outlet))
}

// TestTooManyQuestions: the client leaves more of them open than it may. Calls that ask go on being served.
func TestTooManyQuestions(t *testing.T) {
	const most = 1000
	outlet := make(outlet, 3000)
	refusals := make(chan error, 1)
	s := newSession(t, nil, map[string]mcp.ToolHandler{
		"ask": func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			for range most {
				go func() {
					_, _ = r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "?", RequestedSchema: json.RawMessage(`{"type":"object"}`)})
				}()
			}
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"once more": func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			_, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "?", RequestedSchema: json.RawMessage(`{"type":"object"}`)})
			refusals <- err
			return done("refused"), nil
		},
	}, outlet)
	receive(t, s, outlet, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"x","version":"1"}}}`)
	await(t, outlet)
	receive(t, s, outlet, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	receive(t, s, outlet, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask"}}`)
	for range most {
		assert.Contains(t, await(t, outlet), "elicitation/create")
	}
	for range 2 {
		receive(t, s, outlet, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"once more"}}`)
		assert.ErrorContains(t, await(t, refusals), "too many requests to this client wait for an answer")
		assert.Equal(t, answered("3", doneResult("refused")), await(t, outlet))
	}
}

// TestWhatTheSessionServesKnowsItsContext: values of the context that a session is made with reach the base protocol's
// handlers.
func TestWhatTheSessionServesKnowsItsContext(t *testing.T) {
	type key struct{}
	e := newEndpoint(t, nil, map[string]mcp.ToolHandler{"who": func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return done(fmt.Sprint(ctx.Value(key{}))), nil
	}}, func(o *session.Options) {
		o.Open = func(r *http.Request) (context.Context, session.Dialect) {
			return context.WithValue(r.Context(), key{}, "it is me"), dialect(nil)
		}
	})
	a := e.open(june2025).call("1", "tools/call", `{"name":"who"}`)
	a.message(answered("1", doneResult("it is me")))
}

// TestErrorsOfTheBaseProtocolKeepTheirData.
func TestErrorsOfTheBaseProtocolKeepTheirData(t *testing.T) {
	e := newEndpoint(t, nil, map[string]mcp.ToolHandler{"fail": func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: -31999, Message: "told to", Data: json.RawMessage(`{"big":12345678901234567890}`)}
	}})
	a := e.open(june2025).call("1", "tools/call", `{"name":"fail"}`)
	a.message(`{"jsonrpc":"2.0","id":1,"error":{"code":-31999,"message":"told to","data":{"big":12345678901234567890}}}`)
}
