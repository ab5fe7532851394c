package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"taskbridge/mcpbridge/codec"
)

func TestTheWebUIMayAsk(t *testing.T) {
	encryption, err := codec.NewAES(codec.Key{ID: "a", Secret: make([]byte, 32)})
	require.NoError(t, err)
	const origin = "http://localhost:8233"
	server := httptest.NewServer(forBrowsers(origin, converter.NewPayloadCodecHTTPHandler(encryption)))
	t.Cleanup(server.Close)

	preflight, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, server.URL+"/decode", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(preflight)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	assert.Equal(t, http.StatusNoContent, response.StatusCode)
	assert.Equal(t, origin, response.Header.Get("Access-Control-Allow-Origin"))
	assert.Contains(t, response.Header.Get("Access-Control-Allow-Headers"), "X-Namespace")

	remote, err := codec.NewServer(server.URL, "")
	require.NoError(t, err)
	assert.NoError(t, codec.Check(remote, "default"))
}

func TestKeysAreNeeded(t *testing.T) {
	t.Setenv("TASKBRIDGE_PAYLOAD_KEYS", "")
	assert.ErrorContains(t, serve("127.0.0.1:0", ""), "TASKBRIDGE_PAYLOAD_KEYS: key 1 has no ID: write ID:BASE64")
}
