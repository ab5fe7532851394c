package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"
)

// endpoint is an HTTP endpoint and the client that loads it.
type endpoint struct {
	url    string
	client *http.Client
}

func newEndpoint(url string) endpoint {
	return endpoint{url, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}}
}

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

func (e endpoint) post(ctx context.Context, method, name, params string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(fmt.Appendf(nil, envelope, method, params)))
	if err != nil {
		return nil, err
	}
	request.Header = http.Header{
		"Content-Type":         {"application/json"},
		"Accept":               {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"},
		"Mcp-Method":           {method},
		"Mcp-Name":             {name},
	}
	response, err := e.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, name, response.Status, body)
	}
	return body, err
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

// bareHandler decodes the envelope as any JSON-RPC server must and answers a fixed body: what is left of a read when
// there is nothing to read.
func bareHandler(body []byte) http.Handler {
	e := echo.New()
	e.POST("/mcp", func(c echo.Context) error {
		var message struct {
			JSONRPC string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Method  string          `json:"method"`
			Params  struct {
				TaskID string `json:"taskId"`
			} `json:"params"`
		}
		if err := json.NewDecoder(c.Request().Body).Decode(&message); err != nil {
			return echo.NewHTTPError(http.StatusBadRequest)
		}
		return c.JSONBlob(http.StatusOK, body)
	})
	return e
}
