package sse_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/mcpbridge/internal/sse"
)

func TestEvents(t *testing.T) {
	for _, test := range []struct {
		name  string
		write func(*sse.Writer) error
		want  string
	}{
		{"a message", func(w *sse.Writer) error { return w.Message("", []byte(`{"a":1}`)) }, "event: message\ndata: {\"a\":1}\n\n"},
		{"with an ID", func(w *sse.Writer) error { return w.Message("x_1", []byte(`{}`)) }, "event: message\nid: x_1\ndata: {}\n\n"},
		{"with line breaks", func(w *sse.Writer) error { return w.Message("", []byte("{\n\"a\": 1\n}")) }, "event: message\ndata: {\ndata: \"a\": 1\ndata: }\n\n"},
		{"an event to resume from", func(w *sse.Writer) error { return w.Prime("x_-1") }, "event: prime\nid: x_-1\ndata: \n\n"},
		{"when to come back", func(w *sse.Writer) error { return w.Retry(1500 * time.Millisecond) }, "event: close\nretry: 1500\ndata: \n\n"},
		{"a comment", func(w *sse.Writer) error { return w.Comment() }, ":\n\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			recorder := httptest.NewRecorder()
			require.NoError(t, test.write(sse.NewWriter(recorder)))
			assert.Equal(t, test.want, recorder.Body.String())
			assert.True(t, recorder.Flushed)
		})
	}
}

func TestStreamStartsWithTheFirstThingWritten(t *testing.T) {
	recorder := httptest.NewRecorder()
	w := sse.NewWriter(recorder)
	assert.False(t, w.Started())
	assert.Empty(t, recorder.Header())
	require.NoError(t, w.Comment())
	assert.True(t, w.Started())
	assert.Equal(t, http.Header{
		"Content-Type":      {"text/event-stream"},
		"Cache-Control":     {"no-cache, no-transform"},
		"X-Accel-Buffering": {"no"},
	}, recorder.Header())
	require.NoError(t, w.Message("1", []byte(`{}`)))
	assert.Equal(t, ":\n\nevent: message\nid: 1\ndata: {}\n\n", recorder.Body.String())
}

// TestEachEventArrivesAtOnce, over a real connection and though the response goes on.
func TestEachEventArrivesAtOnce(t *testing.T) {
	more := make(chan struct{})
	written := make(chan error, 1)
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, _ *http.Request) {
		w := sse.NewWriter(response)
		err := w.Message("1", []byte(`"one"`))
		<-more
		written <- errors.Join(err, w.Message("2", []byte(`"two"`)))
	}))
	defer server.Close()
	answer, err := http.Get(server.URL)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	body := bufio.NewReader(answer.Body)
	first := make([]byte, len("event: message\nid: 1\ndata: \"one\"\n\n"))
	_, err = io.ReadFull(body, first)
	require.NoError(t, err)
	assert.Equal(t, "event: message\nid: 1\ndata: \"one\"\n\n", string(first))
	close(more)
	rest, err := io.ReadAll(body)
	require.NoError(t, err)
	assert.Equal(t, "event: message\nid: 2\ndata: \"two\"\n\n", string(rest))
	require.NoError(t, <-written)
}

// TestDeadlinesEndWithTheStream: the connection serves other requests afterwards, whenever they come.
func TestDeadlinesEndWithTheStream(t *testing.T) {
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	before := time.Now()
	require.NoError(t, sse.NewWriter(w).Comment())
	require.Len(t, w.set, 2)
	assert.True(t, w.set[0].After(before), "a client that does not read does not hold the writer for ever")
	assert.True(t, w.set[1].IsZero())
}

type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

func TestClientThatHasGoneIsTold(t *testing.T) {
	w := sse.NewWriter(gone{httptest.NewRecorder()})
	require.ErrorIs(t, w.Message("", []byte(`{}`)), io.ErrClosedPipe)
}

type gone struct{ *httptest.ResponseRecorder }

func (gone) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
