package mcpclient

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// readStream reads server-sent events until the response with an ID. notified gets the methods of notifications before it.
func readStream(stream io.Reader, id string, notified func(method string)) (*message, error) {
	lines := bufio.NewReader(stream)
	for {
		data, err := nextEvent(lines)
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the server closed the stream before it answered")
		}
		if err != nil {
			return nil, err
		}
		m := new(message)
		if err := json.Unmarshal(data, m); err != nil {
			return nil, fmt.Errorf("an event of the stream cannot be read: %w", err)
		}
		if m.answers(id) {
			return m, nil
		}
		notified(m.Method)
	}
}

// nextEvent is the data of the next event that has any. Names and IDs of events mean nothing in MCP.
func nextEvent(lines *bufio.Reader) ([]byte, error) {
	var data []byte
	for {
		line, err := lines.ReadBytes('\n')
		line = bytes.TrimRight(line, "\r\n")
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(append(data, bytes.TrimPrefix(value, []byte(" "))...), '\n')
		}
		if ended := len(line) == 0 || err != nil; ended && len(bytes.TrimSpace(data)) > 0 {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			data = nil
		}
	}
}
