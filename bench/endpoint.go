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
	raw, err := e.post(ctx, "tools/call", tool, fmt.Sprintf(`"name":%q,"arguments":{}`, tool))
	return decode(raw, err)
}

func (e endpoint) get(ctx context.Context, id string) (answer, error) {
	raw, err := e.rawGet(ctx, id)
	return decode(raw, err)
}

// rawGet reads a task without looking at the answer, so that decoding it here does not count.
func (e endpoint) rawGet(ctx context.Context, id string) ([]byte, error) {
	return e.post(ctx, "tasks/get", id, fmt.Sprintf(`"taskId":%q`, id))
}

// post sends a request and returns the body of the response.
func (e endpoint) post(ctx context.Context, method, name, params string) ([]byte, error) {
	response, w, err := e.send(ctx, method, name, params)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		_ = w.Close()
		return nil, err
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

// send sends a request and returns the response, if that is good, and the wire on which it comes.
func (e endpoint) send(ctx context.Context, method, name, params string) (*http.Response, wire, error) {
	w, err := e.wire(ctx)
	if err != nil {
		return nil, wire{}, err
	}
	body := fmt.Appendf(nil, envelope, method, params)
	if name != "" {
		name = "Mcp-Name: " + name + "\r\n"
	}
	if _, err = w.Write(fmt.Appendf(nil, request, e.host(), method, name, len(body), body)); err == nil {
		var response *http.Response
		if response, err = http.ReadResponse(w.Reader, nil); err == nil && response.StatusCode == http.StatusOK {
			return response, w, nil
		} else if err == nil {
			said, _ := io.ReadAll(response.Body)
			err = fmt.Errorf("%s %s: %s: %s", method, name, response.Status, said)
		}
	}
	_ = w.Close()
	return nil, wire{}, err
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
	response, w, err := e.send(ctx, "subscriptions/listen", "", fmt.Sprintf(`"notifications":{"taskIds":%s}`, encoded))
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = w.Close() })
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
