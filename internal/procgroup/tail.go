package procgroup

import (
	"bytes"
	"sync"
	"unicode/utf8"
)

// Tail is an [io.Writer] that keeps the end of what is written to it. It is safe for concurrent use.
type Tail struct {
	limit int // bytes of text

	mu    sync.Mutex
	buf   []byte // the last bytes written: at least keep of them, if there were as many, and at most twice that
	total int64  // bytes written
}

// NewTail makes a Tail whose text has at most limit bytes; limit must be positive.
func NewTail(limit int) *Tail { return &Tail{limit: limit} }

// Write never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += int64(len(p))
	rest := lastBytes(p, t.keep())
	if len(t.buf)+len(rest) > 2*t.keep() {
		t.buf = append(t.buf[:0], lastBytes(t.buf, t.keep())...)
	}
	t.buf = append(t.buf, rest...)
	return len(p), nil
}

// keep is how many bytes are needed: the text's, and the one before it, which tells whether the text begins a line.
func (t *Tail) keep() int { return t.limit + 1 }

func lastBytes(p []byte, n int) []byte { return p[max(0, len(p)-n):] }

// Total is the number of bytes written so far.
func (t *Tail) Total() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}

// Text is the end of what was written, and how many bytes before it are left out. It is valid UTF-8, each invalid
// byte being replaced by U+FFFD, and when bytes are left out it begins at the start of a line if there is one near.
func (t *Tail) Text() (text string, omitted int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	start := t.textStart()
	text = string([]rune(string(t.buf[start:]))) // a rune conversion replaces invalid bytes
	return text, t.total - int64(len(t.buf)-start)
}

// textStart is where the text begins in buf: as early as the limit allows, or else at a line start in the next quarter.
func (t *Tail) textStart() int {
	start, size := len(t.buf), 0
	for start > 0 {
		r, width := utf8.DecodeLastRune(t.buf[:start])
		size += utf8.RuneLen(r) // of U+FFFD, if invalid
		if size > t.limit {
			break
		}
		start -= width
	}
	if start == 0 || t.buf[start-1] == '\n' {
		return start
	}
	quarter := t.buf[start : start+(len(t.buf)-start)/4]
	return start + 1 + bytes.IndexByte(quarter, '\n') // IndexByte is -1 if there is none
}
