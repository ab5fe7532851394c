package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// endpoint is an HTTP endpoint and what loads it.
type endpoint struct {
	url   string
	wires chan wire // that are not in use
}

// wire is a connection on which one request follows the other. It takes a fraction of what an http.Client does, which would
// otherwise be much of what is measured.
type wire struct {
	net.Conn
	*bufio.Reader
}

func newEndpoint(url string) endpoint { return endpoint{url, make(chan wire, clients)} }

// answer is what the measures need of a response.
type answer struct {
	Result struct{ TaskID, Status string }
	Error  *struct{ Message string }
	raw    []byte
}

const envelope = `{"jsonrpc":"2.0","id":1,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}},%s}}`

func (e endpoint) call(ctx context.Context, tool string) (answer, error) {
	raw, err := e.rawCall(ctx, tool)
	return decode(raw, err)
}

// rawCall calls a tool without looking at the answer, so that decoding it here does not count.
func (e endpoint) rawCall(ctx context.Context, tool string) ([]byte, error) {
	return e.post(ctx, "tools/call", tool, fmt.Sprintf(`"name":%q,"arguments":{}`, tool))
}

func (e endpoint) get(ctx context.Context, id string) (answer, error) {
	raw, err := e.rawGet(ctx, id)
	return decode(raw, err)
}

// rawGet reads a task without looking at the answer.
func (e endpoint) rawGet(ctx context.Context, id string) ([]byte, error) {
	return e.post(ctx, "tasks/get", id, fmt.Sprintf(`"taskId":%q`, id))
}

// post sends a request and returns the body of the response.
func (e endpoint) post(ctx context.Context, method, name, params string) ([]byte, error) {
	w, err := e.send(ctx, method, name, params)
	if err != nil {
		return nil, err
	}
	body, err := w.body()
	if err != nil {
		_ = w.Close()
		return nil, fmt.Errorf("%s %s: %w", method, name, err)
	}
	select {
	case e.wires <- w:
	default:
		_ = w.Close()
	}
	return body, nil
}

const request = "POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n" +
	"Mcp-Protocol-Version: 2026-07-28\r\nMcp-Method: %s\r\n%sContent-Length: %d\r\n\r\n%s"

// send sends a request on a wire and returns that.
func (e endpoint) send(ctx context.Context, method, name, params string) (wire, error) {
	w, err := e.wire(ctx)
	if err != nil {
		return wire{}, err
	}
	body := fmt.Appendf(nil, envelope, method, params)
	if name != "" {
		name = "Mcp-Name: " + name + "\r\n"
	}
	if _, err = w.Write(fmt.Appendf(nil, request, e.host(), method, name, len(body), body)); err != nil {
		_ = w.Close()
	}
	return w, err
}

// body reads a response that is no stream, and returns its body if it is good.
func (w wire) body() ([]byte, error) {
	status, err := w.ReadString('\n')
	length := 0
	for err == nil {
		var line []byte
		if line, err = w.ReadSlice('\n'); len(line) == len("\r\n") {
			break
		}
		if value, found := bytes.CutPrefix(line, []byte("Content-Length: ")); found && err == nil {
			length, err = strconv.Atoi(string(bytes.TrimSpace(value)))
		}
	}
	if err != nil {
		return nil, err
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(w.Reader, body); err != nil {
		return nil, err
	}
	if status != "HTTP/1.1 200 OK\r\n" || length == 0 {
		return nil, fmt.Errorf("%s: %s", strings.TrimSpace(status), body)
	}
	return body, nil
}

func (e endpoint) host() string {
	return strings.TrimSuffix(strings.TrimPrefix(e.url, "http://"), "/mcp")
}

// wire is one that is not in use, or a new one.
func (e endpoint) wire(ctx context.Context) (wire, error) {
	select {
	case w := <-e.wires:
		return w, nil
	default:
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", e.host())
	return wire{conn, bufio.NewReader(conn)}, err
}

func decode(raw []byte, err error) (answer, error) {
	a := answer{raw: raw}
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return a, err
	}
	if a.Error != nil {
		return a, fmt.Errorf("%s", a.Error.Message)
	}
	return a, nil
}

// usage is what the process behind the endpoint has used.
func (e endpoint) usage(ctx context.Context) (used usage, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(e.url, "/mcp")+"/usage", nil)
	if err != nil {
		return usage{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return usage{}, err
	}
	defer func() { _ = response.Body.Close() }()
	return used, json.NewDecoder(response.Body).Decode(&used)
}

// update answers a question of a task.
func (e endpoint) update(ctx context.Context, id, key string) error {
	_, err := decode(e.post(ctx, "tasks/update", id, fmt.Sprintf(`"taskId":%q,"inputResponses":{%q:{"action":"accept","content":{}}}`, id, key)))
	return err
}

// subscription is an open stream of what becomes of tasks.
type subscription struct {
	wire  io.Closer
	lines *bufio.Scanner
}

// maxEvent is how large an event of a subscription can be.
const maxEvent = 4 << 20

// listen subscribes to tasks.
func (e endpoint) listen(ctx context.Context, ids ...string) (*subscription, error) {
	encoded, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	w, err := e.send(ctx, "subscriptions/listen", "", fmt.Sprintf(`"notifications":{"taskIds":%s}`, encoded))
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = w.Close() })
	response, err := http.ReadResponse(w.Reader, nil)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxEvent)
	return &subscription{w, lines}, nil
}

func (s *subscription) close() { _ = s.wire.Close() }

// change is a state of a task.
type change struct {
	TaskID        string
	Status        string
	InputRequests map[string]json.RawMessage
}

func (c change) ended() bool { return c.Status == "completed" }

// next is the next state of a task.
func (s *subscription) next() (change, error) {
	for s.lines.Scan() {
		data, found := bytes.CutPrefix(s.lines.Bytes(), []byte("data: "))
		if !found {
			continue
		}
		var message struct {
			Method string
			Params change
			Error  *struct{ Message string }
		}
		if err := json.Unmarshal(data, &message); err != nil {
			return change{}, err
		}
		switch {
		case message.Error != nil:
			return change{}, errors.New(message.Error.Message)
		case message.Method == "notifications/tasks":
			return message.Params, nil
		}
	}
	return change{}, cmp.Or(s.lines.Err(), io.EOF)
}

// until is the next state that is wanted.
func (s *subscription) until(wanted func(change) bool) (change, error) {
	for {
		state, err := s.next()
		if err != nil || wanted(state) {
			return state, err
		}
	}
}
