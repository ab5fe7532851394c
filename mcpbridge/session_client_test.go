package mcpbridge_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patience is how long a session waits for what must come. The slowest is a deletion: Temporal takes half a minute for it.
const patience = 90 * time.Second

// The protocol versions that have sessions.
const (
	march2025    = "2025-03-26"
	june2025     = "2025-06-18"
	november2025 = "2025-11-25"
)

// session is a scripted client of an MCP session over Streamable HTTP, as protocol versions before 2026-07-28 have it. It
// sends what the test says and keeps what comes back; on its own it does nothing but answer the server's requests, if
// [session.onRequest] says how. It ends with the test.
type session struct {
	t testing.TB
	*connection
}

// in is the session as seen from a subtest.
func (s session) in(t testing.TB) session { return session{t, s.connection} }

type connection struct {
	url, version string
	// id is the Mcp-Session-Id; empty before the session is open and after it is closed.
	id string
	// initialized is the answer to initialize.
	initialized response
	http        *http.Client
	ctx         context.Context
	stop        context.CancelFunc
	running     sync.WaitGroup
	lastID      atomic.Int64
	mu          sync.Mutex
	fulfil      func(wireMessage) any
}

// wireMessage is a request or a notification of the server.
type wireMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// openSession initializes a session with a front end. Capabilities are the client's, as JSON.
func openSession(f front, version, capabilities string) session {
	f.t.Helper()
	ctx, stop := context.WithCancel(context.Background()) // not the test's, which ends before its cleanup
	s := session{f.t, &connection{
		url: f.url + "/mcp", version: version, http: &http.Client{Transport: &http.Transport{}}, ctx: ctx, stop: stop,
	}}
	f.t.Cleanup(s.end)
	call := s.start("initialize", map[string]any{
		"protocolVersion": version,
		"capabilities":    json.RawMessage(capabilities),
		"clientInfo":      map[string]string{"name": "scripted", "version": "1"},
	})
	s.initialized = call.response()
	require.Equal(f.t, version, decode[struct{ ProtocolVersion string }](f.t, s.initialized).ProtocolVersion)
	s.id = call.header.Get("Mcp-Session-Id")
	require.NotEmpty(f.t, s.id)
	s.notify("notifications/initialized", nil)
	return s
}

// end leaves nothing behind: no stream, no goroutine, no session.
func (s session) end() {
	s.stop()
	s.running.Wait()
	s.close()
	s.http.CloseIdleConnections()
}

// close ends the session by DELETE, if it is open.
func (s session) close() {
	s.t.Helper()
	if s.id == "" {
		return
	}
	status, body := s.exchange(http.MethodDelete, nil)
	assert.Contains(s.t, []int{http.StatusOK, http.StatusNoContent}, status, body)
	s.id = ""
}

// onRequest makes the session answer requests of the server, on whatever stream they come, with what how returns. It leaves
// a request alone if that is nil; the test can then [session.reply].
func (s session) onRequest(how func(wireMessage) any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fulfil = how
}

// start sends a request and does not wait for its answer. Params may be anything that is an object in JSON, or nil.
func (s session) start(method string, params any) *sessionCall {
	s.t.Helper()
	ctx, abort := context.WithCancel(s.ctx)
	c := &sessionCall{stream: newStream(s.t), id: s.lastID.Add(1), abort: abort}
	message := map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method}
	if params != nil {
		message["params"] = params
	}
	body := encode(s.t, message)
	s.running.Go(func() {
		defer abort()
		c.finish(s.read(ctx, http.MethodPost, body, c.stream))
	})
	return c
}

// send sends a request and waits for its answer.
func (s session) send(method string, params any) response {
	s.t.Helper()
	return s.start(method, params).response()
}

// listen opens the stream on which the server sends what belongs to no request.
func (s session) listen() *stream {
	s.t.Helper()
	opened := newStream(s.t)
	s.running.Go(func() { opened.finish(s.read(s.ctx, http.MethodGet, nil, opened)) })
	opened.wait("stream", func() bool { return opened.status != 0 })
	require.Equal(s.t, http.StatusOK, opened.status)
	return opened
}

// notify sends a notification.
func (s session) notify(method string, params any) {
	s.t.Helper()
	message := map[string]any{"jsonrpc": "2.0", "method": method}
	if params != nil {
		message["params"] = params
	}
	status, body := s.exchange(http.MethodPost, encode(s.t, message))
	require.Equal(s.t, http.StatusAccepted, status, body)
}

// cancel says that the client no longer wants the answer to a request.
func (s session) cancel(c *sessionCall) {
	s.t.Helper()
	s.notify("notifications/cancelled", map[string]any{"requestId": c.id, "reason": "changed my mind"})
}

// reply answers a request of the server.
func (s session) reply(request wireMessage, result any) {
	s.t.Helper()
	status, body := s.replyLate(request, result)
	require.Equal(s.t, http.StatusAccepted, status, body)
}

// replyLate answers a request of the server that may not know it any more.
func (s session) replyLate(request wireMessage, result any) (status int, body string) {
	s.t.Helper()
	return s.exchange(http.MethodPost, encode(s.t, map[string]any{"jsonrpc": "2.0", "id": request.ID, "result": result}))
}

// exchange is one HTTP request whose response is no message.
func (s session) exchange(method string, body []byte) (status int, text string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := s.do(ctx, method, body)
	require.NoError(s.t, err)
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	return answer.StatusCode, string(raw)
}

func (c *connection) do(ctx context.Context, method string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "text/event-stream")
	if method == http.MethodPost {
		request.Header.Set("Accept", "application/json, text/event-stream")
		request.Header.Set("Content-Type", "application/json")
	}
	if c.id != "" {
		request.Header.Set("Mcp-Session-Id", c.id)
		if c.version >= june2025 { // which introduced it
			request.Header.Set("Mcp-Protocol-Version", c.version)
		}
	}
	return c.http.Do(request)
}

// read passes the messages in one HTTP response to a stream.
func (c *connection) read(ctx context.Context, method string, body []byte, into *stream) error {
	answer, err := c.do(ctx, method, body)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	into.open(answer)
	media, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err == nil && media == "text/event-stream" {
		return c.readEvents(answer.Body, into)
	}
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if media != "application/json" {
		return fmt.Errorf("HTTP %s: %s", answer.Status, raw)
	}
	return c.receive(raw, into)
}

// readEvents reads server-sent events (HTML Living Standard, "Server-sent events") as they come.
func (c *connection) readEvents(body io.Reader, into *stream) error {
	lines := bufio.NewReader(body)
	var data []string
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line = strings.TrimRight(line, "\r\n")
		name, value, _ := strings.Cut(line, ":")
		if name == "data" {
			data = append(data, strings.TrimPrefix(value, " "))
		}
		if line == "" && data != nil {
			if err := c.event(strings.Join(data, "\n"), into); err != nil {
				return err
			}
			data = nil
		}
	}
}

func (c *connection) event(data string, into *stream) error {
	if data != "" {
		return c.receive([]byte(data), into)
	}
	if c.version < november2025 {
		return fmt.Errorf("an event with empty data, which clients of %s take for a broken message", c.version)
	}
	return nil
}

func (c *connection) receive(raw []byte, into *stream) error {
	var message wireMessage
	if err := json.Unmarshal(raw, &message); err != nil {
		return fmt.Errorf("%w: %s", err, raw)
	}
	if message.Method == "" {
		return into.respond(raw)
	}
	into.add(message)
	c.mu.Lock()
	fulfil := c.fulfil
	c.mu.Unlock()
	if fulfil != nil && message.ID != nil {
		c.running.Go(func() { into.fulfilled(c.answer(message, fulfil(message))) })
	}
	return nil
}

// answer answers a request of the server; a nil result leaves it alone.
func (c *connection) answer(request wireMessage, result any) error {
	if result == nil {
		return nil
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": request.ID, "result": result})
	if err != nil {
		return err
	}
	accepted, err := c.do(c.ctx, http.MethodPost, body)
	if err != nil {
		return err
	}
	return accepted.Body.Close()
}

// stream is what has come on one HTTP response, in order.
type stream struct {
	t       testing.TB
	mu      sync.Mutex
	changed chan struct{} // closed at the next change
	status  int
	header  http.Header
	// messages are those before the response; the test has taken the first ones.
	messages []wireMessage
	taken    int
	answered *response
	ended    bool
	err      error
}

func newStream(t testing.TB) *stream { return &stream{t: t, changed: make(chan struct{})} }

func (s *stream) change(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *stream) open(answer *http.Response) {
	s.change(func() { s.status, s.header = answer.StatusCode, answer.Header })
}

func (s *stream) add(message wireMessage) {
	s.change(func() { s.messages = append(s.messages, message) })
}

func (s *stream) respond(raw []byte) error {
	answered := response{Status: s.status, Raw: string(raw)}
	err := json.Unmarshal(raw, &answered)
	s.change(func() {
		if s.answered != nil {
			err = fmt.Errorf("a second response: %s", raw)
			return
		}
		s.answered = &answered
	})
	return err
}

// fulfilled keeps why a request of the server on this stream could not be answered, if it could not.
func (s *stream) fulfilled(err error) {
	if err != nil {
		s.change(func() { s.err = errors.Join(s.err, err) })
	}
}

func (s *stream) finish(err error) {
	s.change(func() { s.ended, s.err = true, errors.Join(s.err, err) })
}

// wait waits until ready is true; it is asked with the stream locked.
func (s *stream) wait(what string, ready func() bool) {
	s.t.Helper()
	timeout := time.After(patience)
	for {
		s.mu.Lock()
		done, ended, changed := ready(), s.ended, s.changed
		s.mu.Unlock()
		if done {
			return
		}
		if ended {
			require.FailNow(s.t, "the stream ended without "+what, s)
		}
		select {
		case <-changed:
		case <-timeout:
			require.FailNow(s.t, "no "+what, s)
		}
	}
}

// find takes messages from the stream until one matches.
func (s *stream) find(what string, match func(wireMessage) bool) wireMessage {
	s.t.Helper()
	var found wireMessage
	s.wait(what, func() bool {
		for s.taken < len(s.messages) {
			found = s.messages[s.taken]
			s.taken++
			if match(found) {
				return true
			}
		}
		return false
	})
	return found
}

// next takes the next message.
func (s *stream) next() wireMessage {
	s.t.Helper()
	return s.find("another message", func(wireMessage) bool { return true })
}

// await takes messages from the stream up to the next one with a method.
func (s *stream) await(method string) wireMessage {
	s.t.Helper()
	return s.find(method, func(m wireMessage) bool { return m.Method == method })
}

// received are all messages so far, taken or not.
func (s *stream) received() []wireMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.messages[:len(s.messages):len(s.messages)]
}

func (s *stream) isAnswered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered != nil
}

// String says what has come, for failed tests.
func (s *stream) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP status %d", s.status)
	for _, m := range s.messages {
		fmt.Fprintf(&b, "\n%s %s %s", m.ID, m.Method, m.Params)
	}
	if s.answered != nil {
		fmt.Fprintf(&b, "\n%s", s.answered.Raw)
	}
	if s.ended || s.err != nil {
		fmt.Fprintf(&b, "\nended %t: %v", s.ended, s.err)
	}
	return b.String()
}

// sessionCall is a request of the client with the stream of its answer.
type sessionCall struct {
	*stream
	id int64
	// abort closes the connection.
	abort context.CancelFunc
}

// response waits for the answer.
func (c *sessionCall) response() response {
	c.t.Helper()
	c.wait("response", func() bool { return c.answered != nil })
	assert.Equal(c.t, strconv.FormatInt(c.id, 10), string(c.answered.ID), "the ID goes back as sent")
	return *c.answered
}

// endsUnanswered asserts that the server closes the stream and sends no response.
func (c *sessionCall) endsUnanswered() {
	c.t.Helper()
	c.wait("end", func() bool { return c.ended })
	assert.False(c.t, c.isAnswered(), "%s", c)
}

func encode(t testing.TB, value any) []byte {
	t.Helper()
	encoded, err := json.Marshal(value)
	require.NoError(t, err)
	return encoded
}

// toolResult is a CallToolResult of a session.
type toolResult struct {
	Content []struct{ Type, Text string }
	IsError bool
}

// text is the text of a successful tool call.
func text(t testing.TB, r response) string {
	t.Helper()
	result := decode[toolResult](t, r)
	assert.False(t, result.IsError, r.Raw)
	require.Len(t, result.Content, 1, r.Raw)
	return result.Content[0].Text
}

// errorText is the text of a tool call that ran and failed.
func errorText(t testing.TB, r response) string {
	t.Helper()
	result := decode[toolResult](t, r)
	assert.True(t, result.IsError, r.Raw)
	require.NotEmpty(t, result.Content, r.Raw)
	return result.Content[0].Text
}

// assertRefused asserts a JSON-RPC error. An empty message stands for any, else it must be the whole.
func assertRefused(t testing.TB, r response, code int, message string) {
	t.Helper()
	if !assert.NotNil(t, r.Error, r.Raw) {
		return
	}
	assert.Equal(t, code, r.Error.Code, r.Raw)
	assert.NotEmpty(t, r.Error.Message, r.Raw)
	if message != "" {
		assert.Equal(t, message, r.Error.Message)
	}
}

// relatedTask is the task ID under a key of the _meta of params or of a result, empty if there is none.
func relatedTask(t testing.TB, in json.RawMessage, key string) string {
	t.Helper()
	var with struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	require.NoError(t, json.Unmarshal(in, &with), "%s", in)
	var related struct{ TaskID string }
	if value, ok := with.Meta[key]; ok {
		require.NoError(t, json.Unmarshal(value, &related), "%s", value)
	}
	return related.TaskID
}

// memberNames are those of a JSON object.
func memberNames(t testing.TB, object json.RawMessage) []string {
	t.Helper()
	var members map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(object, &members), "%s", object)
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	return names
}
