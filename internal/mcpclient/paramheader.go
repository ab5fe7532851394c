package mcpclient

import (
	"context"
	"encoding/json"
	"net/http"
)

// codeHeaderMismatch is the error of a request whose headers do not repeat what its body says.
const codeHeaderMismatch = -32020

// paramHeader is the headers that a tool asks for by x-mcp-header in its input schema (MCP 2026-07-28, Streamable HTTP,
// "Custom Headers from Tool Parameters"). Few tools do, so they are looked up only when a server misses them.
func (c *Client) paramHeader(ctx context.Context, name string, arguments json.RawMessage) (http.Header, error) {
	tools, err := c.Tools(ctx)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	for _, tool := range tools {
		if tool.Name == name {
			mirror(header, tool.InputSchema, arguments)
		}
	}
	return header, nil
}

// mirror adds the headers for the members of value that schema names.
func mirror(header http.Header, schema, value json.RawMessage) {
	var object struct {
		Header     string                     `json:"x-mcp-header"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &object) != nil {
		return
	}
	if object.Header != "" {
		var scalar any
		if json.Unmarshal(value, &scalar) == nil && scalar != nil {
			header.Set("Mcp-Param-"+object.Header, encodeHeader(text(value, scalar)))
		}
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil {
		return
	}
	for name, property := range object.Properties {
		if member, ok := members[name]; ok {
			mirror(header, property, member)
		}
	}
}

// text is a string as it is and anything else as its JSON, which keeps every digit.
func text(raw json.RawMessage, value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	return string(raw)
}
