package session

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"sync"
)

// Lines writes messages as lines (MCP, "stdio").
type Lines struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

// NewLines makes an outlet that writes to w.
func NewLines(w io.Writer) *Lines { return &Lines{w: w} }

// Send implements [Outlet].
func (l *Lines) Send(message []byte) {
	line := bytes.NewBuffer(make([]byte, 0, len(message)+1))
	if bytes.IndexByte(message, '\n') < 0 {
		line.Write(message)
	} else if json.Compact(line, message) != nil {
		return // messages are JSON
	}
	line.WriteByte('\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil { // after an error the client has gone, and the next read will say so
		_, l.err = l.w.Write(line.Bytes())
	}
}

// Answer implements [Outlet].
func (l *Lines) Answer(message []byte) {
	if message != nil {
		l.Send(message)
	}
}

// ErrLongLine says that a line was longer than allowed. The lines after it can still be read.
var ErrLongLine = errors.New("line too long")

// ReadLines yields the lines of a reader that are not empty until its end, each with at most max bytes.
func ReadLines(r io.Reader, max int64) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		reader := bufio.NewReaderSize(r, 64<<10)
		for {
			line, err := readLine(reader, max)
			if errors.Is(err, io.EOF) && len(line) == 0 {
				return
			}
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, ErrLongLine) {
				yield(nil, err)
				return
			}
			if errors.Is(err, io.EOF) {
				err = nil // a last line without a line break
			}
			if len(line) == 0 && err == nil {
				continue
			}
			if !yield(line, err) {
				return
			}
		}
	}
}

func readLine(reader *bufio.Reader, max int64) ([]byte, error) {
	var line []byte
	tooLong := false
	for {
		part, err := reader.ReadSlice('\n')
		if int64(len(line)+len(part)) > max {
			tooLong, line = true, nil
		}
		if !tooLong {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if tooLong && (err == nil || errors.Is(err, io.EOF)) {
			err = ErrLongLine
		}
		return bytes.TrimSpace(line), err
	}
}
