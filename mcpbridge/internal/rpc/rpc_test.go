package rpc

import (
	stdjson "encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDecode(t *testing.T) {
	for _, test := range []struct {
		name, body string
		id, method string
		code       int64
		message    string
	}{
		{name: "request", body: `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{}}`, id: "1", method: "tasks/get"},
		{name: "string id", body: `{"jsonrpc":"2.0","id":"a\u00e9","method":"m"}`, id: `"a\u00e9"`, method: "m"},
		{name: "big id as sent", body: `{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"m"}`, id: "123456789012345678901234567890", method: "m"},
		{name: "notification", body: `{"jsonrpc":"2.0","method":"notifications/x"}`, method: "notifications/x"},
		{name: "unknown members are ignored", body: `{"jsonrpc":"2.0","id":1,"method":"m","more":1}`, id: "1", method: "m"},
		{name: "case matters", body: `{"jsonrpc":"2.0","id":1,"Method":"m"}`, id: "1", code: CodeInvalidRequest, message: "method must be a string"},
		{name: "no JSON", body: `{"jsonrpc":`, code: CodeParseError},
		{name: "trailing data", body: `{"jsonrpc":"2.0","id":1,"method":"m"} x`, code: CodeParseError},
		{name: "empty", body: ``, code: CodeParseError},
		{name: "duplicate member", body: `{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}`, code: CodeParseError},
		{name: "batch", body: ` [{"jsonrpc":"2.0","id":1,"method":"m"}]`, code: CodeInvalidRequest},
		{name: "scalar", body: `"x"`, code: CodeInvalidRequest, message: "a message must be a JSON object"},
		{name: "null id", body: `{"jsonrpc":"2.0","id":null,"method":"m"}`, code: CodeInvalidRequest, message: "id must be a string or an integer, not \"null\""},
		{name: "fractional id", body: `{"jsonrpc":"2.0","id":1.5,"method":"m"}`, code: CodeInvalidRequest},
		{name: "object id", body: `{"jsonrpc":"2.0","id":{},"method":"m"}`, code: CodeInvalidRequest},
		{name: "wrong version", body: `{"jsonrpc":"1.0","id":1,"method":"m"}`, id: "1", code: CodeInvalidRequest, message: `jsonrpc must be "2.0"`},
		{name: "no version", body: `{"id":1,"method":"m"}`, id: "1", code: CodeInvalidRequest},
		{name: "numeric method", body: `{"jsonrpc":"2.0","id":1,"method":5}`, id: "1", code: CodeInvalidRequest},
		{name: "array params", body: `{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}`, id: "1", method: "m", code: CodeInvalidRequest, message: "params must be an object, not \"[1]\""},
		{name: "response", body: `{"jsonrpc":"2.0","id":1,"result":{}}`, id: "1", code: CodeInvalidRequest},
	} {
		t.Run(test.name, func(t *testing.T) {
			message, err := Decode([]byte(test.body))
			assert.Equal(t, test.id, string(message.ID))
			assert.Equal(t, test.method, message.Method)
			if test.code == 0 {
				require.Nil(t, err)
				return
			}
			require.NotNil(t, err)
			assert.Equal(t, test.code, err.Code)
			if test.message != "" {
				assert.Equal(t, test.message, err.Message)
			}
		})
	}
}

// TestDecodeAny: a peer that answers requests may send responses. All else is as for [Decode].
func TestDecodeAny(t *testing.T) {
	for _, test := range []struct {
		name, body                string
		id, method, result, error string
		refused                   string
	}{
		{name: "request", body: `{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}`, id: "1", method: "ping"},
		{name: "notification", body: `{"jsonrpc":"2.0","method":"notifications/x"}`, method: "notifications/x"},
		{name: "result", body: `{"jsonrpc":"2.0","id":"a\u00e9","result":{"a": 1.50}}`, id: `"a\u00e9"`, result: `{"a": 1.50}`},
		{name: "null result", body: `{"jsonrpc":"2.0","id":1,"result":null}`, id: "1", result: "null"},
		{name: "error", body: `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}`, id: "1", error: `{"code":-1,"message":"no"}`},
		{name: "result and error", body: `{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, id: "1", refused: "method must be a string"},
		{name: "neither", body: `{"jsonrpc":"2.0","id":1}`, id: "1", refused: "method must be a string"},
		{name: "result without an id", body: `{"jsonrpc":"2.0","result":{}}`, refused: "method must be a string"},
		{name: "result of another version", body: `{"jsonrpc":"1.0","id":1,"result":{}}`, id: "1", refused: `jsonrpc must be "2.0"`},
		{name: "result with a fractional id", body: `{"jsonrpc":"2.0","id":1.5,"result":{}}`, refused: `id must be a string or an integer, not "1.5"`},
		{name: "request with a result", body: `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, id: "1", method: "ping"},
	} {
		t.Run(test.name, func(t *testing.T) {
			message, err := DecodeAny([]byte(test.body))
			assert.Equal(t, test.id, string(message.ID))
			assert.Equal(t, test.method, message.Method)
			assert.Equal(t, test.result, string(message.Result))
			assert.Equal(t, test.error, string(message.Error))
			if test.refused != "" {
				require.NotNil(t, err)
				assert.EqualValues(t, CodeInvalidRequest, err.Code)
				assert.Equal(t, test.refused, err.Message)
				return
			}
			require.Nil(t, err)
			assert.Equal(t, test.method == "", message.IsResponse())
			assert.Equal(t, test.id == "", message.IsNotification())
		})
	}
}

func TestRequestAndNotification(t *testing.T) {
	assert.Equal(t, `{"jsonrpc":"2.0","id":12345678901234567890,"method":"elicitation/create","params":{"b":1,"a":2}}`,
		string(Request([]byte("12345678901234567890"), "elicitation/create", []byte(`{"b":1,"a":2}`))))
	assert.Equal(t, `{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`,
		string(Notification("notifications/progress", []byte(`{}`))))
}

// TestAnyMethodIsWritten: a workflow in any language may name the method of what it asks.
func TestAnyMethodIsWritten(t *testing.T) {
	for _, method := range []string{"a/b", `quote " and \`, "Grüße ☃", "bell \a", "escape \x1b", "delete \x7f", "line\nbreak", "emoji \U0001F600"} {
		message, err := DecodeAny(Request([]byte("1"), method, []byte("{}")))
		require.Nil(t, err, "%q: %v", method, err)
		assert.Equal(t, method, message.Method)
	}
}

func TestDecodeParamsNamesTheMember(t *testing.T) {
	var params struct {
		TaskID string `json:"taskId"`
	}
	err := Message{Params: []byte(`{"taskId":5}`)}.DecodeParams(&params)
	require.NotNil(t, err)
	assert.EqualValues(t, CodeInvalidParams, err.Code)
	assert.Equal(t, "params/taskId has the wrong type: number", err.Message)
	assert.Nil(t, Message{}.DecodeParams(&params))
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x"}}`))
	f.Add([]byte(`[{}]`))
	f.Add([]byte(`{"id":"\ud800","method":"m","jsonrpc":"2.0"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		message, err := Decode(body)
		response := ResultResponse([]byte("1"), []byte("{}"))
		if err != nil {
			response = ErrorResponse(message.ID, err)
		} else if !message.IsNotification() {
			response = ResultResponse(message.ID, []byte("{}"))
		}
		if !stdjson.Valid(response) {
			t.Fatalf("body %q is answered with invalid JSON %q", body, response)
		}
	})
}
