package tasks

import (
	"time"

	"taskbridge/signals"
)

const (
	// graceAfterEnd is for how long a task can be read after its end at least, if its client asked for a TTL: it may have
	// worked longer than that.
	graceAfterEnd = time.Minute
	// longestRun bounds a TTL for tools without execution timeout.
	longestRun = 7 * 24 * time.Hour
	// shortestRetention is the least that a namespace can have.
	shortestRetention = 24 * time.Hour
)

// bound records for how long a task is kept: what the client asked for as far as the namespace keeps it, else what the
// tool says.
func (n *namespace) bound(start Start, meta *signals.Meta) error {
	keeps := n.retention()
	retention := start.Tool.Retention
	if start.KeepAlive != nil {
		retention = *start.KeepAlive
	}
	if retention < 0 {
		return invalidInput("the time to keep the task after its end is %s: it has to be 0 or more", retention)
	}
	meta.RetentionMs = atMost(retention, keeps, keeps).Milliseconds()
	if start.TTL == nil {
		return nil
	}
	if *start.TTL < 0 {
		return invalidInput("the TTL is %s: it has to be 0 or more", *start.TTL)
	}
	run := start.Tool.ExecutionTimeout
	if run == 0 {
		run = longestRun
	}
	ttl := atMost(*start.TTL, run+keeps, keeps).Milliseconds()
	meta.TTLMs = &ttl
	return nil
}

// atMost bounds a time, if it is known how long the namespace keeps anything.
func atMost(asked, most, keeps time.Duration) time.Duration {
	if keeps == 0 {
		return asked
	}
	return min(asked, most)
}

// liveTTL is how long a task that has not ended can be read, counted from its creation, if nothing ends it earlier.
func liveTTL(executionTimeout time.Duration, meta signals.Meta) *time.Duration {
	var ttl time.Duration
	switch {
	case meta.TTLMs != nil:
		ttl = milliseconds(*meta.TTLMs)
	case executionTimeout == 0:
		return nil
	default:
		ttl = executionTimeout + milliseconds(meta.RetentionMs)
	}
	return &ttl
}

// closedTTL is how long a task that ended at closed can be read, counted from its creation.
func (n *namespace) closedTTL(closed time.Time, meta signals.Meta) *time.Duration {
	lived := closed.Sub(meta.CreatedAt)
	ttl := lived + milliseconds(meta.RetentionMs)
	if meta.TTLMs != nil {
		keeps := n.retention()
		ttl = atMost(max(milliseconds(*meta.TTLMs), lived+graceAfterEnd), lived+keeps, keeps)
	}
	return &ttl
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }
