package tasks

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"taskbridge/signals"
)

const (
	defaultPatience = time.Minute
	// Between two attempts to reach Temporal.
	firstPause   = 50 * time.Millisecond
	longestPause = 5 * time.Second
)

// Follow yields a task's state now and then whenever a client sees it differ: in status, status message, progress, open
// input requests or in that cancellation was requested. States that follow each other faster than they can be read are
// skipped, but never the last. The terminal state is yielded even if the task is kept for no time after its end, and ends
// the sequence; so does an error. An error of ctx is yielded as it is.
//
// What leaves no trace in the workflow's history, such as a heartbeat or that no worker comes, is noticed when the task is
// read at the latest every so often; an every of 0 is never, and all followed tasks together are read for that 200 times a
// second at most. Temporal may be away for a minute.
//
// However many follow a task, it costs Temporal one history long-poll. Of more than 256 tasks, those beyond are seen to change
// some seconds late.
func (s *Service) Follow(ctx context.Context, owner, id string, every time.Duration) iter.Seq2[*Task, error] {
	return func(yield func(*Task, error) bool) {
		for now := range s.FollowAll(ctx, owner, []string{id}, every) {
			if !yield(now.Task, now.Err) {
				return
			}
		}
	}
}

// Followed is a state of one of several tasks, or why it is not followed any more.
type Followed struct {
	ID   string
	Task *Task
	Err  error
}

// FollowAll follows several tasks as [Service.Follow] does each of them, and ends when none is left to follow. It takes one
// goroutine for all. An error of ctx is yielded once, without an ID.
func (s *Service) FollowAll(ctx context.Context, owner string, ids []string, every time.Duration) iter.Seq[Followed] {
	return func(yield func(Followed) bool) {
		in := &inbox{service: s, followers: map[*follower]struct{}{}, bell: make(chan struct{}, 1)}
		defer in.close()
		for _, id := range ids {
			at, err := s.address(owner, id)
			if err != nil {
				if !yield(Followed{id, nil, err}) {
					return
				}
				continue
			}
			if task := s.knownClosed(at); task != nil {
				if task, err = s.kept(task); !yield(Followed{id, task, err}) {
					return
				}
				continue
			}
			in.follow(at, id, every)
		}
		for len(in.followers) > 0 {
			f, err := in.next(ctx)
			if err != nil {
				yield(Followed{"", nil, err})
				return
			}
			task, ended, err := f.take()
			if ended {
				task, err = s.ending(ctx, f.watch)
				if ctx.Err() != nil {
					continue // which ends all
				}
				if err == nil && !task.Status.Terminal() { // it was reset
					in.leave(f)
					in.follow(f.watch.at, f.watch.id, f.every)
					continue
				}
			}
			if task == nil && err == nil {
				continue
			}
			if err == nil {
				task, err = s.kept(task)
			}
			if !yield(Followed{f.watch.id, task, err}) {
				return
			}
			if err != nil || task.Status.Terminal() {
				in.leave(f)
			}
		}
	}
}

// kept is a task as a follower finds it: one that is over for less than a grace is there, though it may be kept for no time
// at all.
func (s *Service) kept(task *Task) (*Task, error) {
	if task.expired(time.Now().Add(-graceAfterEnd)) || s.isDeleted(task) {
		return nil, ErrNotFound
	}
	return task, nil
}

// Await follows a task until it is terminal or input_required, or ctx ends.
func (s *Service) Await(ctx context.Context, owner, id string) (task *Task, err error) {
	for task, err = range s.Follow(ctx, owner, id, 0) {
		if err != nil || task.Status != Working {
			break
		}
	}
	return task, err
}

// looksLike reports whether a client sees no difference between two states of a task.
func (t *Task) looksLike(other *Task) bool {
	sameKey := func(_, _ signals.InputRequest) bool { return true } // keys are never used twice
	return other != nil && t.Status == other.Status && t.StatusMessage == other.StatusMessage &&
		t.CancelRequested == other.CancelRequested && sameProgress(t.Progress, other.Progress) &&
		maps.EqualFunc(t.InputRequests, other.InputRequests, sameKey)
}

func sameProgress(a, b *signals.Progress) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// inbox is one call of FollowAll: the tasks that it follows, and those of which there is news.
type inbox struct {
	service   *Service
	followers map[*follower]struct{}
	ready     []*follower
	bell      chan struct{}
}

// follower follows one task. It holds no states, so that it may be as slow as it wants: it is told that there is a newer one,
// and takes the newest.
type follower struct {
	watch *watch
	every time.Duration
	inbox *inbox
	ready bool  // it is among those
	seen  *Task // the state that was last taken
	// The first state is one of the read with this number or a later one; 0 when it has been taken.
	from uint64
}

// follow begins to follow a task.
func (in *inbox) follow(at address, id string, every time.Duration) {
	in.lock()
	defer in.unlock()
	w := in.service.look(at, id)
	f := &follower{watch: w, every: every, inbox: in}
	in.followers[f] = struct{}{}
	w.followers = append(w.followers, f)
	switch {
	case w.isKnown(time.Now()):
		f.notify()
	case w.mayJoin(w.flight):
		f.from = w.flight.number
	default:
		w.refresh()
		f.from = w.needed
	}
	w.attend()
	w.schedule()
}

// leave ends to follow a task.
func (in *inbox) leave(f *follower) {
	w := f.watch
	in.lock()
	delete(in.followers, f)
	w.followers = slices.DeleteFunc(w.followers, func(other *follower) bool { return other == f })
	w.attend()
	w.schedule()
	in.unlock()
	w.leave()
}

func (in *inbox) close() {
	for f := range in.followers {
		in.leave(f)
	}
}

func (in *inbox) lock()   { in.service.watches.mutex.Lock() }
func (in *inbox) unlock() { in.service.watches.mutex.Unlock() }

// notify tells that there is something to take.
func (f *follower) notify() {
	in := f.inbox
	if f.ready {
		return // it has not even looked after the last one
	}
	f.ready = true
	in.ready = append(in.ready, f)
	select {
	case in.bell <- struct{}{}:
	default:
	}
}

// next waits for a follower with something to take.
func (in *inbox) next(ctx context.Context) (*follower, error) {
	for ctx.Err() == nil {
		if f := in.first(); f != nil {
			return f, nil
		}
		select {
		case <-in.bell:
		case <-ctx.Done():
		}
	}
	return nil, ctx.Err()
}

// first is the follower that has waited longest to be looked after; nil if none does.
func (in *inbox) first() *follower {
	in.lock()
	defer in.unlock()
	if len(in.ready) == 0 {
		return nil
	}
	f := in.ready[0]
	in.ready, f.ready = in.ready[1:], false
	return f
}

// ending is the state in which a task that was followed has ended. It bears with a Temporal that is away for a while.
func (s *Service) ending(ctx context.Context, w *watch) (*Task, error) {
	if known, ok := s.closed.GetIfPresent(w.at); ok {
		return known.task, nil
	}
	begin := time.Now()
	for pause := firstPause; ; pause = longer(pause) {
		again := s.enter(w.at, w.id)
		task, err := again.current(ctx)
		again.leave()
		if !errors.Is(err, ErrUnavailable) || time.Since(begin) > s.patience || !sleep(ctx, pause) {
			return task, err
		}
	}
}

// take is the state of the task if the client sees it differ from the one before, that it has ended, or the error that ends
// them; or nothing of that.
func (f *follower) take() (task *Task, ended bool, err error) {
	w := f.watch
	w.lock()
	defer w.unlock()
	switch waits := w.source < f.from; {
	case w.ended:
		return nil, true, nil
	case waits && !w.over:
		return nil, false, nil
	case waits && w.err != nil, w.state == nil, w.state.looksLike(f.seen):
		return nil, false, w.err
	}
	if w.err != nil {
		f.notify() // once more
	}
	f.from, f.seen = 0, w.state
	return w.state, false, nil
}

func longer(pause time.Duration) time.Duration { return min(2*pause, longestPause) }

// sleep reports whether a pause went by before ctx ended.
func sleep(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}
