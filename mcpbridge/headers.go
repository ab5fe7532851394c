package mcpbridge

import (
	"encoding/base64"
	stdjson "encoding/json"
	"math/big"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"taskbridge/mcpbridge/internal/rpc"
)

// checkEnvelope checks the metadata that every modern request carries, and over HTTP the headers that mirror it; header
// is nil over other transports (MCP 2026-07-28, Overview, "_meta"; Streamable HTTP, "Request Metadata").
func (d *modern) checkEnvelope(header http.Header, r *request) *rpc.Error {
	meta := r.params.Meta
	if meta == nil {
		return rpc.Errorf(rpc.CodeInvalidParams, "params._meta is missing: every request carries io.modelcontextprotocol/protocolVersion and io.modelcontextprotocol/clientCapabilities in it")
	}
	if meta.ProtocolVersion == "" {
		return rpc.Errorf(rpc.CodeInvalidParams, "params._meta has no io.modelcontextprotocol/protocolVersion")
	}
	if err := mirrors(header, "MCP-Protocol-Version", "params._meta.io.modelcontextprotocol/protocolVersion", meta.ProtocolVersion); err != nil {
		return err
	}
	if meta.ProtocolVersion != modernVersion {
		return &rpc.Error{
			Code:    rpc.CodeUnsupportedProtocolVersion,
			Message: "unsupported protocol version " + meta.ProtocolVersion,
			Data:    map[string]any{"supported": d.versions, "requested": meta.ProtocolVersion},
		}
	}
	if err := mirrors(header, "Mcp-Method", "method", r.method); err != nil {
		return err
	}
	if meta.ClientCapabilities == nil {
		return rpc.Errorf(rpc.CodeInvalidParams, "params._meta has no io.modelcontextprotocol/clientCapabilities: send {} for none")
	}
	if member, value := r.mirroredName(); member != "" {
		if value == "" && r.params.TaskID == nil {
			return rpc.Errorf(rpc.CodeInvalidParams, "%s is missing", member)
		}
		if err := mirrors(header, "Mcp-Name", member, value); err != nil {
			return err
		}
	}
	if header == nil {
		return nil
	}
	return d.checkParamHeaders(header, r)
}

// mirroredName is the member of a request's params that header Mcp-Name repeats, and its value; "" if there is none.
func (r *request) mirroredName() (member, value string) {
	switch r.method {
	case "tools/call", "prompts/get":
		return "params.name", r.params.Name
	case "resources/read":
		return "params.uri", r.params.URI
	case "tasks/get", "tasks/update", "tasks/cancel":
		if r.params.TaskID != nil { // a missing one is an error of its own
			return "params.taskId", *r.params.TaskID
		}
	}
	return "", ""
}

// mirrors checks that a header repeats a member of the body. Only Mcp-Name may be encoded.
func mirrors(header http.Header, name, member, want string) *rpc.Error {
	if header == nil {
		return nil
	}
	sent := header.Values(name)
	if len(sent) == 0 {
		return rpc.Errorf(rpc.CodeHeaderMismatch, "header %s is missing: it must repeat %s, %s", name, member, rpc.Clip(want))
	}
	value := strings.Trim(sent[0], " \t")
	if name == "Mcp-Name" {
		decoded, ok := decodeHeader(value)
		if !ok {
			return rpc.Errorf(rpc.CodeHeaderMismatch, "header %s has a value that is no plain ASCII nor valid =?base64?…?= of UTF-8", name)
		}
		value = decoded
	}
	if len(sent) > 1 || value != want {
		return rpc.Errorf(rpc.CodeHeaderMismatch, "header %s is %s but %s is %s", name, rpc.Clip(strings.Join(sent, ", ")), member, rpc.Clip(want))
	}
	return nil
}

// decodeHeader decodes the form =?base64?…?= for values that no plain header can carry (Streamable HTTP, "Value
// Encoding").
func decodeHeader(value string) (string, bool) {
	if strings.ContainsFunc(value, func(r rune) bool { return r != '\t' && (r < ' ' || r > '~') }) {
		return "", false
	}
	encoded, ok := strings.CutPrefix(value, "=?base64?")
	if !ok {
		return value, true
	}
	if encoded, ok = strings.CutSuffix(encoded, "?="); !ok {
		return value, true
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(encoded)
	return string(decoded), err == nil && utf8.Valid(decoded)
}

// checkParamHeaders checks the headers that a tool's input schema asks for with x-mcp-header (Streamable HTTP, "Custom
// Headers from Tool Parameters").
func (d *modern) checkParamHeaders(header http.Header, r *request) *rpc.Error {
	if r.method != "tools/call" {
		return nil
	}
	tool, ok := d.tools.get(r.params.Name)
	if !ok {
		return nil
	}
	for _, param := range tool.HeaderParams() {
		name, member := "Mcp-Param-"+param.Name, "params.arguments."+strings.Join(param.Path, ".")
		value, present := valueAt(r.params.Arguments, param.Path)
		sent := header.Values(name)
		if !present {
			if len(sent) > 0 {
				return rpc.Errorf(rpc.CodeHeaderMismatch, "header %s is sent but %s is not", name, member)
			}
			continue
		}
		if len(sent) != 1 {
			return rpc.Errorf(rpc.CodeHeaderMismatch, "header %s is missing or repeated: it must repeat %s", name, member)
		}
		decoded, ok := decodeHeader(strings.Trim(sent[0], " \t"))
		if !ok || !sameValue(decoded, value) {
			return rpc.Errorf(rpc.CodeHeaderMismatch, "header %s is %s but %s is %s", name, rpc.Clip(sent[0]), member, rpc.Clip(string(value)))
		}
	}
	return nil
}

// valueAt is the value at a path of members; absent and null are the same.
func valueAt(arguments jsontext.Value, path []string) (jsontext.Value, bool) {
	value := arguments
	for _, name := range path {
		if value.Kind() != '{' {
			return nil, false
		}
		var members map[string]jsontext.Value
		if json.Unmarshal(value, &members) != nil {
			return nil, false
		}
		value = members[name]
	}
	return value, value != nil && value.Kind() != 'n'
}

// sameValue compares a header's text with a JSON value: strings as they are, numbers by value.
func sameValue(text string, value jsontext.Value) bool {
	switch value.Kind() {
	case '"':
		var s string
		return stdjson.Unmarshal(value, &s) == nil && s == text
	case '0':
		const longest = 400 // digits; comparing longer ones by value takes time that a caller could abuse
		if len(text) > longest || len(value) > longest || strings.Contains(text, "/") {
			return text == string(value)
		}
		a, okA := new(big.Rat).SetString(text)
		b, okB := new(big.Rat).SetString(string(value))
		return okA && okB && a.Cmp(b) == 0
	}
	return text == string(value)
}
