package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/internal/mcpclient"
)

func TestRenderResult(t *testing.T) {
	for name, test := range map[string]struct{ result, want string }{
		"text":                  {`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b\n"}]}`, "a\nb\n"},
		"structured only":       {`{"content":[],"structuredContent":{"n":12345678901234567890}}`, "{\n  \"n\": 12345678901234567890\n}\n"},
		"structured and text":   {`{"content":[{"type":"text","text":"a"}],"structuredContent":{"n":1}}`, "a\n"},
		"image":                 {`{"content":[{"type":"image","mimeType":"image/png","data":"AAAAAA=="}]}`, "[image image/png, 4 bytes]\n"},
		"link":                  {`{"content":[{"type":"resource_link","name":"log","uri":"file:///log"}]}`, "[resource log: file:///log]\n"},
		"resource":              {`{"content":[{"type":"resource","resource":{"uri":"file:///log"}}]}`, "[resource file:///log]\n"},
		"resource with text":    {`{"content":[{"type":"resource","resource":{"uri":"file:///log","text":"all"}}]}`, "all\n"},
		"content of the future": {`{"content":[{"type":"hologram"}]}`, "[content of type \"hologram\"]\n"},
		"nothing":               {`{"content":[]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			result := new(mcpclient.Result)
			require.NoError(t, json.Unmarshal([]byte(test.result), result))
			assert.Equal(t, test.want, renderResult(result))
		})
	}
}

func TestRenderTask(t *testing.T) {
	task := new(mcpclient.Task)
	require.NoError(t, json.Unmarshal([]byte(`{"taskId":"id","status":"input_required","statusMessage":"waiting",
		"createdAt":"2026-01-02T03:04:05.000Z","lastUpdatedAt":"2026-01-02T03:05:05.000Z","ttlMs":null,
		"inputRequests":{"go-1":{"method":"elicitation/create","params":{"message":"Go?"}},"say-2":{"method":"sampling/createMessage"}}}`), task))
	text := renderTask(task, task.CreatedAt.Add(90*time.Second))
	for _, line := range []string{"task        id", "status      input_required: waiting", "asks go-1   Go?", "asks say-2  sampling/createMessage", "(1m30s ago)", "(30s ago)"} {
		assert.Contains(t, text, line)
	}
	assert.NotContains(t, text, "kept until")
}

func TestRenderTools(t *testing.T) {
	tools := make([]mcpclient.Tool, 2)
	for i, raw := range []string{
		`{"name":"greet","description":"Greets.\nIn any language.","inputSchema":{"properties":{"name":{"type":"string"}},"required":["name"]}}`,
		`{"name":"drop","title":"Drop it","annotations":{"destructiveHint":true},"execution":{"taskSupport":"required"},"inputSchema":{"type":"object"}}`,
	} {
		tools[i].Raw = json.RawMessage(raw)
		require.NoError(t, json.Unmarshal(tools[i].Raw, &tools[i]))
	}
	command := func(words ...string) string { return "taskbridge " + strings.Join(words, " ") }
	show := func(asJSON bool, names ...string) string {
		text, err := renderTools(tools, names, asJSON, command)
		require.NoError(t, err)
		return text
	}
	assert.Equal(t, "NAME   DESCRIPTION\ngreet  Greets.\ndrop   Drop it (task required, destructive)\n", show(false))
	assert.Equal(t, "["+string(tools[0].Raw)+","+string(tools[1].Raw)+"]\n", show(true))
	assert.Equal(t, string(tools[1].Raw)+"\n", show(true, "drop"))
	assert.Contains(t, show(false, "greet"), "In any language.")
	assert.Contains(t, show(false, "greet"), `taskbridge call greet '{"name":"…"}'`)

	_, err := renderTools(tools, []string{"nope"}, false, command)
	require.EqualError(t, err, `the server has no tool "nope"; list its tools with: taskbridge tools`)
	assertUsage(t, err)
}
