// Package rpc reads and writes the JSON-RPC 2.0 messages of MCP. Member names are exact and case-sensitive, duplicate
// members are errors, and IDs go back byte for byte as they came.
package rpc

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Error codes of JSON-RPC 2.0 and of MCP 2026-07-28 (Overview, "Error Codes").
const (
	CodeParseError                 = -32700
	CodeInvalidRequest             = -32600
	CodeMethodNotFound             = -32601
	CodeInvalidParams              = -32602
	CodeInternalError              = -32603
	CodeHeaderMismatch             = -32020
	CodeMissingCapability          = -32021
	CodeUnsupportedProtocolVersion = -32022
)

// Error is a JSON-RPC error object.
type Error struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitzero"`
}

func (e *Error) Error() string { return e.Message }

// Errorf makes an error with a formatted message.
func Errorf(code int64, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Message is a JSON-RPC request, notification or response.
type Message struct {
	// ID is the raw JSON of the ID, nil for a notification.
	ID     jsontext.Value
	Method string
	// Params is the raw JSON object, nil if absent.
	Params jsontext.Value
	// Result or Error is the raw JSON in a response.
	Result, Error jsontext.Value
}

// IsNotification reports whether no answer is expected.
func (m Message) IsNotification() bool { return m.ID == nil }

// IsResponse reports whether the message answers a request.
func (m Message) IsResponse() bool { return m.Method == "" }

// Decode reads one request or notification. After an error the message still has the ID if it could be read, so that
// the error can be answered.
func Decode(body []byte) (Message, *Error) {
	message, err := DecodeAny(body)
	if err == nil && message.IsResponse() {
		return message, Errorf(CodeInvalidRequest, "responses are not accepted here: this server sends no requests")
	}
	return message, err
}

// DecodeAny is [Decode] for a peer that may also answer requests.
func DecodeAny(body []byte) (Message, *Error) {
	var raw struct {
		JSONRPC jsontext.Value `json:"jsonrpc"`
		ID      jsontext.Value `json:"id"`
		Method  jsontext.Value `json:"method"`
		Params  jsontext.Value `json:"params"`
		Result  jsontext.Value `json:"result"`
		Error   jsontext.Value `json:"error"`
	}
	if kind := jsontext.Value(bytes.TrimLeft(body, " \t\r\n")).Kind(); kind == '[' {
		return Message{}, Errorf(CodeInvalidRequest, "batches are not part of MCP: send each message as a request of its own")
	}
	if err := json.Unmarshal(body, &raw); err != nil {
		return Message{}, decodeError(err)
	}
	message := Message{Params: raw.Params}
	if raw.ID != nil {
		if !validID(raw.ID) {
			return message, Errorf(CodeInvalidRequest, "id must be a string or an integer, not %s", Clip(string(raw.ID)))
		}
		message.ID = raw.ID
	}
	if string(raw.JSONRPC) != `"2.0"` {
		return message, Errorf(CodeInvalidRequest, `jsonrpc must be "2.0"`)
	}
	if raw.Method == nil && message.ID != nil && (raw.Result != nil) != (raw.Error != nil) {
		message.Result, message.Error = raw.Result, raw.Error
		return message, nil
	}
	if raw.Method.Kind() != '"' {
		return message, Errorf(CodeInvalidRequest, "method must be a string")
	}
	if err := json.Unmarshal(raw.Method, &message.Method); err != nil {
		return message, Errorf(CodeInvalidRequest, "method: %v", err)
	}
	if message.Method == "" {
		return message, Errorf(CodeInvalidRequest, "method is empty")
	}
	if raw.Params != nil && raw.Params.Kind() != '{' {
		return message, Errorf(CodeInvalidRequest, "params must be an object, not %s", Clip(string(raw.Params)))
	}
	return message, nil
}

// DecodeParams reads a message's params, an absent one as an empty object.
func (m Message) DecodeParams(into any) *Error {
	params := m.Params
	if params == nil {
		params = jsontext.Value("{}")
	}
	if err := json.Unmarshal(params, into); err != nil {
		return paramsError(err)
	}
	return nil
}

func decodeError(err error) *Error {
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		return Errorf(CodeInvalidRequest, "a message must be a JSON object")
	}
	return Errorf(CodeParseError, "parse error: %v", reason(err))
}

func paramsError(err error) *Error {
	var semantic *json.SemanticError
	if errors.As(err, &semantic) {
		where := "params" + string(semantic.JSONPointer)
		return Errorf(CodeInvalidParams, "%s has the wrong type: %s", where, semantic.JSONKind)
	}
	return Errorf(CodeInvalidParams, "params: %v", reason(err))
}

// reason is the message of a JSON error without the package name in front.
func reason(err error) string {
	var syntactic *jsontext.SyntacticError
	if errors.As(err, &syntactic) {
		return fmt.Sprintf("%v at byte %d", syntactic.Err, syntactic.ByteOffset)
	}
	return err.Error()
}

// validID reports whether an ID is a string or an integer (MCP 2026-07-28, Overview, "Requests").
func validID(id jsontext.Value) bool {
	switch id.Kind() {
	case '"':
		return true
	case '0':
		return !bytes.ContainsAny(id, ".eE")
	}
	return false
}

// CheckExact refuses an integer ID that a peer which reads numbers as floats, such as the go-sdk, would send back as
// another.
func CheckExact(id jsontext.Value) *Error {
	const exact = 1 << 53
	if id.Kind() != '0' {
		return nil
	}
	if n, err := strconv.ParseInt(string(id), 10, 64); err != nil || n > exact || n < -exact {
		return Errorf(CodeInvalidRequest, "id %s is outside ±2^53, where JSON numbers are exact: send a smaller one or a string", Clip(string(id)))
	}
	return nil
}

// Clip quotes the beginning of what a client sent, for an error message.
func Clip(text string) string {
	const most = 100
	if len(text) > most {
		return strconv.Quote(text[:most]) + "…"
	}
	return strconv.Quote(text)
}

// ResultResponse is the response with an already encoded result.
func ResultResponse(id jsontext.Value, result []byte) []byte {
	return join(id, `"result":`, result)
}

// ErrorResponse is the error response; without an ID if it could not be read.
func ErrorResponse(id jsontext.Value, err *Error) []byte {
	encoded, encodeErr := json.Marshal(err, jsontext.AllowInvalidUTF8(true))
	if encodeErr != nil { // data that does not encode is a mistake of ours; the error itself must still arrive
		return ErrorResponse(id, Errorf(err.Code, "%s", err.Message))
	}
	return join(id, `"error":`, encoded)
}

// join puts the parts together byte by byte: an encoder would respell the ID.
func join(id jsontext.Value, member string, value []byte) []byte {
	message := make([]byte, 0, len(`{"jsonrpc":"2.0","id":,}`)+len(id)+len(member)+len(value))
	message = append(message, `{"jsonrpc":"2.0",`...)
	if id != nil {
		message = append(message, `"id":`...)
		message = append(message, id...)
		message = append(message, ',')
	}
	message = append(message, member...)
	message = append(message, value...)
	return append(message, '}')
}

// Request is a request with already encoded params.
func Request(id jsontext.Value, method string, params []byte) []byte {
	name, _ := jsontext.AppendQuote([]byte(`"method":`), method) // of bytes that are not UTF-8 it makes the best
	return join(id, string(name)+`,"params":`, params)
}

// Notification is a notification with already encoded params.
func Notification(method string, params []byte) []byte { return Request(nil, method, params) }
