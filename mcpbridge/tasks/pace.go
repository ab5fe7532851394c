package tasks

import (
	"context"
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"taskbridge/signals"
)

const (
	// sweepPause is the time between two looks at tasks that wait for a long-poll, sweepSize how many one look is at. So
	// visibility is asked twice a second at most, of the ten times that a Temporal frontend allows by default, and 2,000 tasks
	// are looked at within five seconds.
	sweepPause = 500 * time.Millisecond
	sweepSize  = 200
	// sweepRows has room for some runs of each.
	sweepRows = 5 * sweepSize
	// sweepReads is how often a task is read at least of which visibility says nothing new. Not everything is in visibility,
	// such as that cancellation was requested.
	sweepReads = time.Minute
	// viewInterval is how often a followed task is read of which the catalog has a view of its own.
	viewInterval = time.Second
	// duePause is the time between two reads that only time has made due: 200 a second at most.
	duePause = 5 * time.Millisecond
	// slowest is by how much a task's poll interval grows at most.
	slowest = 5
	// busy is how many reads at once double poll intervals.
	busy = 32
)

// pace looks after the watches that wait for a long-poll, as long as there are any: visibility tells of many tasks at once
// which of them to read. If it fails, they are read one after the other.
func (s *Service) pace() {
	for {
		time.Sleep(sweepPause)
		batch := s.sweep()
		if len(batch) == 0 {
			return
		}
		for _, n := range s.namespaces {
			if err := s.compare(n, batch); err != nil {
				time.Sleep(sweepPause)
			}
		}
	}
}

// sweep chooses the watches to look at next.
func (s *Service) sweep() []*watch {
	s.watches.mutex.Lock()
	defer s.watches.mutex.Unlock()
	polls := &s.watches.polls
	if polls.most < polls.limit && time.Since(polls.refused) > recovery {
		polls.most++
		s.poll()
	}
	waiting := polls.waiting
	size := min(len(waiting), sweepSize)
	batch := append([]*watch(nil), waiting[:size]...)
	polls.waiting = append(waiting[size:len(waiting):len(waiting)], batch...)
	polls.pacing = size > 0
	return batch
}

// compare has those watches of a batch read that are in a namespace and of which visibility shows something else than what
// is known. If it shows nothing, all are read.
func (s *Service) compare(n *namespace, batch []*watch) error {
	ids := s.waitingIn(n, batch)
	if len(ids) == 0 {
		return nil
	}
	query := fmt.Sprintf(`WorkflowId IN (%s) AND ExecutionStatus != "ContinuedAsNew"`, strings.Join(ids, ","))
	answer, err := n.visibility(context.Background(), query, nil, sweepRows)
	newest := map[string]*workflowpb.WorkflowExecutionInfo{}
	for _, run := range answer.GetExecutions() {
		id := run.GetExecution().GetWorkflowId()
		if before := newest[id]; before == nil || run.GetStartTime().AsTime().After(before.GetStartTime().AsTime()) {
			newest[id] = run
		}
	}
	s.watches.mutex.Lock()
	defer s.watches.mutex.Unlock()
	for _, w := range batch {
		if !w.waitsIn(n) {
			continue
		}
		row := uint64(0)
		if run := newest[w.at.workflow]; run != nil {
			row = markOf(run.GetExecution().GetRunId(), run.GetStatus(), run.GetMemo().GetFields()[signals.StateMemo])
		}
		differs := row != w.state.mark && row != w.feed.row
		if err != nil || differs || time.Since(w.since) > sweepReads {
			w.refresh()
		}
		w.feed.row = row
	}
	return err
}

// waitingIn are the workflow IDs of those watches of a batch that are in a namespace, quoted.
func (s *Service) waitingIn(n *namespace, batch []*watch) (ids []string) {
	s.watches.mutex.Lock()
	defer s.watches.mutex.Unlock()
	for _, w := range batch {
		if w.waitsIn(n) {
			ids = append(ids, quote(w.at.workflow))
		}
	}
	return ids
}

// waitsIn reports whether a watch waits for a long-poll in a namespace.
func (w *watch) waitsIn(n *namespace) bool {
	return w.feed.runID != "" && w.feed.stop == nil && w.state.in == n
}

var markSeed = maphash.MakeSeed()

// markOf is the same as long as visibility shows the same of a task: its run, whether that runs, and what the workflow said.
// What visibility shows and what is known compare by it.
func markOf(runID string, status enumspb.WorkflowExecutionStatus, state *commonpb.Payload) uint64 {
	var h maphash.Hash
	h.SetSeed(markSeed)
	_, _ = h.WriteString(runID)
	_ = h.WriteByte(byte(status))
	_, _ = h.Write(state.GetData())
	return h.Sum64()
}

// schedule has the task read when what leaves no trace in history may have changed, as often as the most demanding of its
// followers wants.
func (w *watch) schedule() {
	every := time.Duration(0)
	for _, f := range w.followers {
		every = sooner(every, f.every)
	}
	if len(w.followers) > 0 && w.state != nil && w.state.viewed {
		every = sooner(every, viewInterval)
	}
	switch {
	case every == 0 || w.over || w.state == nil:
		if w.timer != nil {
			w.timer.Stop()
		}
	case w.timer == nil:
		w.timer = time.AfterFunc(every, w.due)
	default:
		w.timer.Reset(max(0, every-time.Since(w.since)))
	}
}

// sooner is the shorter of two times, of which 0 is never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// due has a followed task read because it is time to.
func (w *watch) due() {
	w.lock()
	defer w.unlock()
	now := time.Now()
	next := &w.service.watches.next
	if wait := next.Sub(now); wait > 0 {
		*next = next.Add(duePause)
		time.AfterFunc(wait, w.refreshNow)
		return
	}
	*next = now.Add(duePause)
	w.refresh()
}

func (w *watch) refreshNow() {
	w.lock()
	defer w.unlock()
	w.refresh()
}

// pollInterval is how long a client should wait before it asks for a running task again: what its tool says; longer as the
// task gets older, so that an end is learned of within a twentieth of the time that the task took; and longer as more reads
// of tasks are under way in this process, since each waits for Temporal then; but five times what the tool says at most.
func pollInterval(configured, age time.Duration, reading int64) time.Duration {
	longest := slowest * configured
	interval := min(max(configured, age/20), longest)
	return min(interval+interval*time.Duration(reading-1)/busy, longest).Truncate(time.Millisecond)
}
