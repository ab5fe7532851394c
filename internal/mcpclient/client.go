// Package mcpclient is a client of MCP 2026-07-28 over Streamable HTTP that knows the Tasks extension (SEP-2663).
package mcpclient

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

const protocolVersion = "2026-07-28"

// Client calls the tools of one MCP server and follows their tasks. It is safe for concurrent use.
type Client struct {
	endpoint string
	http     *http.Client
	lastID   atomic.Int64
}

// New is a client of the MCP endpoint at an http or https URL. It connects with the first request.
func New(endpoint string, httpClient *http.Client) *Client {
	if httpClient == nil {
		httpClient = http.DefaultClient
	}
	return &Client{endpoint: endpoint, http: httpClient}
}

// requestMeta is the _meta of every request (MCP 2026-07-28, Overview, "_meta"), to which further members may be added.
func requestMeta(further map[string]any) map[string]any {
	meta := map[string]any{
		"io.modelcontextprotocol/protocolVersion": protocolVersion,
		"io.modelcontextprotocol/clientInfo":      map[string]any{"name": "taskbridge-cli", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": map[string]any{
			"elicitation": map[string]any{"form": struct{}{}, "url": struct{}{}},
			"extensions":  map[string]any{"io.modelcontextprotocol/tasks": struct{}{}},
		},
	}
	maps.Copy(meta, further)
	return meta
}

// Endpoint is the URL of the server.
func (c *Client) Endpoint() string { return c.endpoint }

// request sends one JSON-RPC request and returns its result. name is the value of header Mcp-Name, "" for none; header
// holds what else the request needs, and a map under _meta in params what else belongs there. A JSON-RPC error is returned as [*Error].
func (c *Client) request(ctx context.Context, method, name string, params map[string]any, header http.Header) (json.RawMessage, error) {
	response, id, err := c.send(ctx, method, name, params, header)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	message, err := c.read(response, id)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	if message.Error != nil {
		return nil, message.Error
	}
	return message.Result, nil
}

// send sends one JSON-RPC request and returns its ID and the response, which is not read yet.
func (c *Client) send(ctx context.Context, method, name string, params map[string]any, header http.Header) (*http.Response, string, error) {
	id := strconv.FormatInt(c.lastID.Add(1), 10)
	further, _ := params["_meta"].(map[string]any)
	params["_meta"] = requestMeta(further)
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": params})
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", method, err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	maps.Copy(request.Header, header)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("MCP-Protocol-Version", protocolVersion)
	request.Header.Set("Mcp-Method", method)
	if name != "" {
		request.Header.Set("Mcp-Name", encodeHeader(name))
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, "", c.sendError(ctx, err)
	}
	return response, id, nil
}

func (c *Client) sendError(ctx context.Context, err error) error {
	var dial *net.OpError
	if ctx.Err() == nil && errors.As(err, &dial) && dial.Op == "dial" {
		reason := ""
		if !errors.Is(err, syscall.ECONNREFUSED) {
			reason = fmt.Sprintf(" (%v)", dial.Err)
		}
		return fmt.Errorf("no MCP server answers at %s%s: start one with \"taskbridge dev\", or name another with --url", c.endpoint, reason)
	}
	return err
}

// encodeHeader is a header value as it is, or in base64 if no plain header can carry it (Streamable HTTP, "Value
// Encoding").
func encodeHeader(value string) string {
	plain := strings.Trim(value, " \t") == value && !strings.HasPrefix(value, "=?base64?")
	for _, b := range []byte(value) {
		plain = plain && (b >= ' ' && b <= '~')
	}
	if plain {
		return value
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(value)) + "?="
}

// message is what a server may send: the response to a request, or a notification.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`
}

// answers reports whether a message is the response to a request. A request that could not be read is answered with an
// error without an ID.
func (m *message) answers(id string) bool {
	noID := len(m.ID) == 0 || string(m.ID) == "null"
	return m.Method == "" && (string(m.ID) == id || noID && m.Error != nil)
}

// read takes the response with an ID from a body of either form.
func (c *Client) read(response *http.Response, id string) (*message, error) {
	kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch kind {
	case "text/event-stream":
		return readStream(response.Body, id, func(string) {})
	case "application/json":
		m := new(message)
		if err := json.NewDecoder(response.Body).Decode(m); err != nil {
			return nil, fmt.Errorf("the response (%s) cannot be read: %w", response.Status, err)
		}
		if m.answers(id) && (m.Error != nil || m.Result != nil) {
			return m, nil
		}
	}
	return nil, c.notMCP(response)
}

// notMCP is the error for a response from something that is no MCP endpoint.
func (c *Client) notMCP(response *http.Response) error {
	const enough = 200 // bytes, to recognize who answered
	start, _ := io.ReadAll(io.LimitReader(response.Body, enough))
	text := fmt.Sprintf("%s answers, but not as an MCP server: %s", c.endpoint, response.Status)
	if line := strings.Join(strings.Fields(string(start)), " "); line != "" {
		text += fmt.Sprintf(": %q", line)
	}
	if response.StatusCode == http.StatusNotFound || response.StatusCode == http.StatusMethodNotAllowed {
		text += "; the path of an MCP endpoint is usually /mcp"
	}
	return errors.New(text)
}
