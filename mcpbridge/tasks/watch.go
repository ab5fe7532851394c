package tasks

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

const (
	// crowded is for how long the state that one read has found serves further calls, if several wanted it.
	crowded = 50 * time.Millisecond
	// freshFor is for how long a state counts as known that is followed: what leaves no trace in history, such as heartbeats,
	// is that much behind at most.
	freshFor = time.Second
	// readers is how many followed tasks are read at once. The others wait: followers bring that much load and no more.
	readers = 16
)

// watches are the tasks that this process looks at now. There is one watch for each, however many follow and read it.
type watches struct {
	mutex sync.Mutex // guards all watches too: what is done under it is short
	// byWorkflow has them by the ID of their workflow; only attached tasks of several tools share one.
	byWorkflow map[string][]*watch
	reading    chan struct{}
	polls      polls
	next       time.Time // when the next read may begin that only time has made due
}

func newWatches() watches {
	return watches{byWorkflow: map[string][]*watch{}, reading: make(chan struct{}, readers), polls: polls{limit: maxPolls, most: maxPolls}}
}

// watch is what is known of one task as long as somebody looks at it: by a call that reads it, or by following it.
type watch struct {
	service *Service
	at      address
	id      string

	lookers   int
	followers []*follower

	state  *Task     // the newest, nil until the first read and after the end
	source uint64    // the read that it is from
	since  time.Time // when that began
	told   time.Time // when history last told a state
	shared bool      // several calls wanted it
	err    error     // why followers hear no more
	over   bool      // nobody comes to look any more: it has ended, or there is an error
	ended  bool      // in a state that followers find among the closed ones, so that slow ones do not hold it

	reads   uint64 // how many have begun
	needed  uint64 // the first read that knows all that this process has done to the task
	flight  *flight
	keeping bool // a goroutine reads for the followers

	timer *time.Timer // of the next read that time makes due
	feed  feed
}

// flight is a read that is under way.
type flight struct {
	number uint64
	begin  time.Time
	shared bool
	landed chan struct{}
	task   *Task
	err    error
}

// enter begins to look at a task.
func (s *Service) enter(at address, id string) *watch {
	s.watches.mutex.Lock()
	defer s.watches.mutex.Unlock()
	return s.look(at, id)
}

func (s *Service) look(at address, id string) *watch {
	of := s.watches.byWorkflow[at.workflow]
	i := slices.IndexFunc(of, func(w *watch) bool { return w.at == at })
	if i < 0 {
		i, of = len(of), append(of, &watch{service: s, at: at, id: id})
		s.watches.byWorkflow[at.workflow] = of
	}
	of[i].lookers++
	return of[i]
}

// leave ends a look. A state that several calls wanted is kept for the next of them.
func (w *watch) leave() {
	w.lock()
	defer w.unlock()
	if w.lookers--; w.lookers > 0 || w.over {
		return
	}
	if rest := crowded - time.Since(w.since); w.shared && rest > 0 {
		w.lookers++
		time.AfterFunc(rest, w.leave)
		return
	}
	w.forget()
}

func (w *watch) lock()   { w.service.watches.mutex.Lock() }
func (w *watch) unlock() { w.service.watches.mutex.Unlock() }

// forget takes a watch from those that new lookers find.
func (w *watch) forget() {
	w.over = true
	all := w.service.watches.byWorkflow
	others := slices.DeleteFunc(all[w.at.workflow], func(other *watch) bool { return other == w })
	if all[w.at.workflow] = others; len(others) == 0 {
		delete(all, w.at.workflow)
	}
}

// current is the task's state now, as [Service.Get] says.
func (w *watch) current(ctx context.Context) (*Task, error) {
	for {
		w.lock()
		if w.isKnown(time.Now()) {
			defer w.unlock()
			return w.state, nil
		}
		f := w.flight
		if f == nil {
			f = w.takeOff()
			w.unlock()
			w.fly(ctx, f)
			return f.task, f.err
		}
		joins := w.mayJoin(f)
		f.shared = f.shared || joins
		w.unlock()
		select {
		case <-f.landed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if joins || errors.Is(f.err, ErrUnavailable) {
			return f.task, f.err
		}
	}
}

// isKnown reports whether the newest state is as good as a read.
func (w *watch) isKnown(now time.Time) bool {
	switch age := now.Sub(w.since); {
	case w.state == nil || w.err != nil || w.source < w.needed:
		return false
	case w.feed.live:
		return age < freshFor
	default:
		return w.shared && age < crowded
	}
}

// mayJoin reports whether a read that is under way is good enough for one more.
func (w *watch) mayJoin(f *flight) bool {
	return f != nil && f.number >= w.needed && time.Since(f.begin) < crowded
}

// takeOff begins a read. There is one at a time, so that a later one never knows less.
func (w *watch) takeOff() *flight {
	w.reads++
	w.flight = &flight{number: w.reads, begin: time.Now(), landed: make(chan struct{}), err: errCrashed}
	return w.flight
}

var errCrashed = errors.New("the task cannot be read: reading it has failed in an unexpected way")

// fly reads the task. A panic, such as of a data converter, is an error: the goroutine may be nobody's who can bear with it.
func (w *watch) fly(ctx context.Context, f *flight) {
	defer func() {
		logPanic(recover(), w.at)
		w.lock()
		defer w.unlock()
		w.flight = nil
		if f.err == nil {
			f.task = w.publish(f)
		} else {
			w.refresh() // so that nobody is shown an earlier state
		}
		close(f.landed)
	}()
	w.service.reading.Add(1)
	defer w.service.reading.Add(-1)
	f.task, f.err = w.service.read(ctx, w.at, w.id)
}

// logPanic tells of a panic, if there is one.
func logPanic(cause any, at address) {
	if cause != nil {
		slog.Error("reading a task panicked", "workflow", at.workflow, "error", cause, "stack", string(debug.Stack()))
	}
}

// publish takes over what a read has found, unless history has told more meanwhile, and returns the newest state.
func (w *watch) publish(f *flight) *Task {
	if w.ended {
		if known, ok := w.service.closed.GetIfPresent(w.at); ok {
			return known.task
		}
		return f.task
	}
	w.since, w.source, w.shared = f.begin, f.number, f.shared
	newest := f.task
	if w.state != nil && w.told.After(f.begin) && w.state.runID == f.task.runID && w.state.lastEvent > f.task.lastEvent {
		newest = w.state
	}
	w.show(newest)
	return newest
}

// show makes a state the newest and tells the followers, if they see it differ.
func (w *watch) show(task *Task) {
	differs := !task.looksLike(w.state)
	w.state = task
	if task.Status.Terminal() {
		w.service.closed.Set(w.at, closedTask{task, later(w.since, w.told)})
		w.ended, w.state = true, nil
		w.end(nil)
		return
	}
	for _, f := range w.followers {
		if differs || f.from > 0 {
			f.notify()
		}
	}
	w.attend()
	w.schedule()
}

// end tells the followers that nothing comes any more.
func (w *watch) end(err error) {
	w.err = err
	if !w.over {
		w.forget()
	}
	w.attend()
	w.schedule()
	for _, f := range w.followers {
		f.notify()
	}
}

// refresh has a followed task read once more, by a read that begins from now on.
func (w *watch) refresh() {
	w.needed = w.reads + 1
	if !w.keeping && !w.over && len(w.followers) > 0 {
		w.keeping = true
		go w.keep()
	}
}

// keep reads a followed task until what is known is what is needed. It bears with a Temporal that is away for a while.
func (w *watch) keep() {
	reading := w.service.watches.reading
	begin, pause := time.Now(), firstPause
	for {
		reading <- struct{}{}
		_, err := w.current(context.Background())
		<-reading
		if w.kept(err, begin) {
			return
		}
		if err == nil {
			begin, pause = time.Now(), firstPause
			continue
		}
		time.Sleep(pause)
		pause = longer(pause)
	}
}

// kept reports whether keep has done its work, after an attempt that ended with an error or none.
func (w *watch) kept(err error, begin time.Time) bool {
	w.lock()
	defer w.unlock()
	switch {
	case w.over || len(w.followers) == 0:
	case err == nil && w.source < w.needed:
		return false
	case err == nil:
	case errors.Is(err, ErrUnavailable) && time.Since(begin) < w.service.patience:
		w.feed.live = false
		return false
	default:
		w.end(err)
	}
	w.keeping = false
	return true
}

// settle has everybody who looks at a task see that questions have been answered. Where history tells what comes of it, that
// takes no read: what is known changes by nothing else.
func (s *Service) settle(task *Task) {
	s.watches.mutex.Lock()
	defer s.watches.mutex.Unlock()
	for _, w := range s.watches.byWorkflow[task.at.workflow] {
		if w.feed.live && w.flight == nil && !w.over && w.state.runID == task.runID {
			w.show(w.state.asking(s.open(task.runID, w.state.InputRequests)))
		} else {
			w.refresh()
		}
	}
}

// changed has everybody who looks at tasks of a workflow see what this process has just done to it.
func (s *Service) changed(workflow string) {
	s.watches.mutex.Lock()
	defer s.watches.mutex.Unlock()
	for _, w := range s.watches.byWorkflow[workflow] {
		w.refresh()
	}
}
