package codec_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"

	"taskbridge/mcpbridge/codec"
)

func TestCodecServersAreToldTheNamespaceAndWhoAsks(t *testing.T) {
	handler := converter.NewPayloadCodecHTTPHandler(newAES(t, codec.Key{ID: "a", Secret: secret(1, 32)}))
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.URL.Path+" "+r.Header.Get("X-Namespace")+" "+r.Header.Get("Authorization"))
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c, err := codec.NewServer(server.URL+"/{namespace}/", "Bearer s3cret")
	require.NoError(t, err)
	require.NoError(t, codec.Check(c, "builds"))
	assert.Equal(t, []string{"/builds/encode builds Bearer s3cret", "/builds/decode builds Bearer s3cret"}, seen)

	using(t, c)
	seen = nil
	_, err = using(t, c).DescribeWorkflow(t.Context(), uuid.NewString(), "")
	require.Error(t, err)
	assert.Empty(t, seen, "nobody is asked about a message without payloads")
	start(t, using(t, c), uuid.NewString())
	assert.Equal(t, []string{"/default/encode default Bearer s3cret"}, seen, "all payloads of a message at once")
}

func TestCodecServersMustBeURLs(t *testing.T) {
	for _, endpoint := range []string{"", "localhost:8081", "ftp://x", "http://", "::", "ftp://user:s3cret@x", "http://{namespace}/"} {
		_, err := codec.NewServer(endpoint, "")
		assert.ErrorContains(t, err, "write a URL such as https://codec.example.com/{namespace}", endpoint)
		assert.NotContains(t, err.Error(), "s3cret")
	}
	c, err := codec.NewServer("https://user:s3cret@codec.example.com/{namespace}/v1", "Bearer s3cret")
	require.NoError(t, err)
	assert.Equal(t, "https://user:xxxxx@codec.example.com/my%20builds/v1", c.URL("my builds"))
}

func TestWhatACodecServerDoesWrongIsTold(t *testing.T) {
	right := converter.NewPayloadCodecHTTPHandler(newAES(t, codec.Key{ID: "a", Secret: secret(1, 32)}))
	other := converter.NewPayloadCodecHTTPHandler(newAES(t, codec.Key{ID: "b", Secret: secret(1, 32)}))
	zlib := converter.NewPayloadCodecHTTPHandler(converter.NewZlibCodec(converter.ZlibCodecOptions{}))
	for message, handler := range map[string]http.HandlerFunc{
		"":                                  right.ServeHTTP,
		"503 Service Unavailable":           func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"encode a payload: Not Found":       http.NotFound,
		"encode a payload: Unauthorized":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"encode a payload: unable to unmar": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>Welcome</html>")) },
		"left a payload as it was":          converter.NewPayloadCodecHTTPHandler().ServeHTTP,
		"expected 1":                        func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) },
		"decode a payload: Bad Request": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/decode" {
				other.ServeHTTP(w, r)
				return
			}
			right.ServeHTTP(w, r)
		},
		"gives something else": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/decode" {
				zlib.ServeHTTP(w, r) // leaves what is not its own
				return
			}
			right.ServeHTTP(w, r)
		},
	} {
		server := httptest.NewServer(handler)
		c, err := codec.NewServer(server.URL, "")
		require.NoError(t, err)
		err = codec.Check(c, "default")
		if message == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, message)
		}
		server.Close()
	}
	assert.NoError(t, codec.Check(converter.NewZlibCodec(converter.ZlibCodecOptions{}), "default"), "one that only compresses")
}
