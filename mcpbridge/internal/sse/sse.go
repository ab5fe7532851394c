// Package sse writes server-sent events (HTML Living Standard, "Server-sent events"), the streams of MCP's Streamable
// HTTP transport.
package sse

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

const (
	// KeepAlive is how often a quiet stream should carry a comment, so that nothing on the way takes it for dead.
	KeepAlive = 15 * time.Second
	// writeTimeout ends the connection of a client that does not read.
	writeTimeout = 30 * time.Second
)

// Writer is one stream. It starts with the first thing written. Its methods must not be called at the same time.
type Writer struct {
	w          http.ResponseWriter
	controller *http.ResponseController
	started    bool
}

// NewWriter makes the response of a request a stream.
func NewWriter(w http.ResponseWriter) *Writer {
	return &Writer{w: w, controller: http.NewResponseController(w)}
}

// Started reports whether the response has begun.
func (w *Writer) Started() bool { return w.started }

// Message writes an event that carries a message, with an ID unless that is empty.
func (w *Writer) Message(id string, message []byte) error {
	var event bytes.Buffer
	event.Grow(len(message) + len(id) + len("event: message\nid: \ndata: \n\n"))
	event.WriteString("event: message\n")
	writeID(&event, id)
	for line := range bytes.SplitSeq(message, []byte("\n")) { // JSON may have line breaks between its tokens
		event.WriteString("data: ")
		event.Write(line)
		event.WriteByte('\n')
	}
	event.WriteByte('\n')
	return w.write(event.Bytes())
}

// Prime writes an event without data, which gives the client an ID to resume from (MCP 2025-11-25, Streamable HTTP).
func (w *Writer) Prime(id string) error {
	var event bytes.Buffer
	event.WriteString("event: prime\n")
	writeID(&event, id)
	event.WriteString("data: \n\n")
	return w.write(event.Bytes())
}

// Retry tells the client how long to wait before it connects again.
func (w *Writer) Retry(after time.Duration) error {
	return w.write([]byte("event: close\nretry: " + strconv.FormatInt(after.Milliseconds(), 10) + "\ndata: \n\n"))
}

// Comment writes a line that clients ignore.
func (w *Writer) Comment() error { return w.write([]byte(":\n\n")) }

func writeID(event *bytes.Buffer, id string) {
	if id != "" {
		event.WriteString("id: ")
		event.WriteString(id)
		event.WriteByte('\n')
	}
}

func (w *Writer) write(event []byte) error {
	if !w.started {
		w.started = true
		header := w.w.Header()
		header.Set("Content-Type", "text/event-stream")
		header.Set("Cache-Control", "no-cache, no-transform")
		header.Set("X-Accel-Buffering", "no")
	}
	_ = w.controller.SetWriteDeadline(time.Now().Add(writeTimeout))   // not all connections have deadlines
	defer func() { _ = w.controller.SetWriteDeadline(time.Time{}) }() // the connection may serve other requests later
	if _, err := w.w.Write(event); err != nil {
		return err
	}
	return w.controller.Flush()
}
