package session

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"taskbridge/mcpbridge/internal/sse"
)

// unreadGrace is how long a client may take to come back for the rest of a stream.
const unreadGrace = 10 * time.Second

const (
	maxKept      = 256     // messages
	maxKeptBytes = 1 << 20 // beyond either, a stream forgets its oldest messages
)

// stream carries messages to a client over whichever HTTP connection the client has for them at the time. It keeps them,
// so that a client which lost its connection can have the rest over another one (MCP 2025-11-25, Streamable HTTP,
// "Resumability and Redelivery").
type stream struct {
	name string

	mu      sync.Mutex
	kept    [][]byte
	size    int // of kept, in bytes
	first   int // index of kept[0]
	sent    int // index after the last message that a connection got
	open    int // calls that are not answered yet
	answers int // among the messages
	lasting bool
	changed chan struct{}
	// reader counts the connections so far: the newest has the stream, as long as it reads. retry is set to end it.
	reader int
	reads  bool
	retry  *time.Duration
	unread []func()
	timer  *time.Timer
	// onEnd is told when nothing more will come.
	onEnd func(*stream)
}

func newStream(name string) *stream { return &stream{name: name, changed: make(chan struct{})} }

// Send implements [Outlet].
func (s *stream) Send(message []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(message)
	s.wake()
}

// keep appends a message. The caller holds mu.
func (s *stream) keep(message []byte) {
	s.kept = append(s.kept, message)
	s.size += len(message)
	for len(s.kept) > maxKept || s.size > maxKeptBytes && len(s.kept) > 1 {
		s.size -= len(s.kept[0])
		s.kept[0] = nil
		s.kept = s.kept[1:]
		s.first++
	}
}

// Answer implements [Outlet].
func (s *stream) Answer(message []byte) {
	s.mu.Lock()
	if message != nil {
		s.keep(message)
		s.answers++
	}
	s.open--
	ended, onEnd := s.endedLocked(), s.onEnd
	s.wake()
	s.mu.Unlock()
	if ended && onEnd != nil {
		onEnd(s)
	}
}

// whenEnded calls back when nothing more will come.
func (s *stream) whenEnded(call func(*stream)) {
	s.mu.Lock()
	ended := s.endedLocked()
	if !ended {
		s.onEnd = call
	}
	s.mu.Unlock()
	if ended {
		call(s)
	}
}

// wake tells whoever waits that something changed. The caller holds mu.
func (s *stream) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// hangUp ends the client's connection, which it should open again after a while. The stream goes on.
func (s *stream) hangUp(retry time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retry = &retry
	s.wake()
}

// onUnread calls back once no connection has had the stream for a while.
func (s *stream) onUnread(call func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unread = append(s.unread, call)
	s.watchReader()
}

// watchReader starts to wait for a reader if there is none and that matters. The caller holds mu.
func (s *stream) watchReader() {
	if s.reads || len(s.unread) == 0 || s.endedLocked() {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(unreadGrace, s.goneUnread)
}

func (s *stream) goneUnread() {
	s.mu.Lock()
	calls := s.unread
	if s.reads {
		calls = nil
	}
	s.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

// endedLocked reports whether nothing more will come. The caller holds mu.
func (s *stream) endedLocked() bool { return s.open <= 0 && !s.lasting }

// answer waits until it is known how to answer a POST: with one message, if that is all and comes soon, else with nil for
// a stream.
func (s *stream) answer(ctx context.Context, patience time.Duration) []byte {
	soon := time.NewTimer(patience)
	defer soon.Stop()
	for {
		s.mu.Lock()
		ended, answers, kept, changed := s.endedLocked(), s.answers, s.kept, s.changed
		s.mu.Unlock()
		if ended && answers == 1 && len(kept) == 1 {
			return kept[0]
		}
		if ended || len(kept) > 1 {
			return nil
		}
		select {
		case <-changed:
		case <-soon.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// fromUnsent stands for the index of the first message that no connection got.
const fromUnsent = -1

// serve writes messages from an index on to a connection until the stream ends, another connection takes it, or ctx ends.
func (s *stream) serve(ctx context.Context, w *sse.Writer, from int) {
	me, from := s.take(from)
	defer s.leave(me)
	if !w.Started() && w.Comment() != nil { // so that the client has the headers
		return
	}
	alive := time.NewTicker(sse.KeepAlive)
	defer alive.Stop()
	for {
		next, changed := s.next(me, from)
		var err error
		switch {
		case next.message != nil:
			from = next.index + 1
			if err = w.Message(s.eventID(next.index), next.message); err != nil {
				s.lost(me, next.index)
			}
		case next.retry != nil:
			_ = w.Retry(*next.retry)
			return
		case next.over:
			return
		default:
			select {
			case <-changed:
			case <-alive.C:
				err = w.Comment()
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// take makes a connection the stream's.
func (s *stream) take(from int) (me, begin int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reader++
	s.reads = true
	if s.timer != nil {
		s.timer.Stop()
	}
	s.wake()
	if from == fromUnsent {
		from = s.sent
	}
	return s.reader, from
}

func (s *stream) leave(me int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader != me {
		return
	}
	s.reads = false
	s.watchReader()
}

// isRead reports whether a connection has the stream.
func (s *stream) isRead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// next is what a connection has to write now: a message, a wait before the next connection, or nothing more.
type next struct {
	message []byte
	index   int
	retry   *time.Duration
	over    bool
}

func (s *stream) next(me, from int) (next, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from = max(from, s.first)
	switch {
	case s.reader != me:
		return next{over: true}, s.changed
	case from < s.first+len(s.kept):
		s.sent = max(s.sent, from+1) // at once: whoever takes the stream now must not send it too
		return next{message: s.kept[from-s.first], index: from}, s.changed
	case s.endedLocked():
		return next{over: true}, s.changed
	}
	retry := s.retry
	s.retry = nil
	return next{retry: retry}, s.changed
}

// lost takes back that a connection got a message.
func (s *stream) lost(me, index int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reader == me {
		s.sent = min(s.sent, index)
	}
}

// had reports whether the stream has had a message; one before the first every stream has had.
func (s *stream) had(index int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return index < s.first+len(s.kept)
}

// eventID names a message of a stream, so that a client can tell where it lost the connection.
func (s *stream) eventID(index int) string { return fmt.Sprintf("%s_%d", s.name, index) }

// parseEventID reverses eventID.
func parseEventID(id string) (name string, index int, ok bool) {
	name, number, ok := strings.Cut(id, "_")
	if !ok {
		return "", 0, false
	}
	index, err := strconv.Atoi(number)
	return name, index, err == nil && index >= -1
}
