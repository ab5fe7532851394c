package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"taskbridge/signals"
)

const (
	// perSubscription is how many tasks each of many subscriptions is about.
	perSubscription = 100
	// settling is how long Temporal takes at most to write down what it does after a workflow task, such as for visibility.
	settling = 20 * time.Millisecond
	// longest is how long a notification can take that is not counted as missing.
	longest = 2 * time.Minute
)

// push compares how long it takes until the end of a task is at a client that listens with how long until it is at one that
// polls the history of its workflow.
func (b *bed) push(ctx context.Context, e effort) ([]row, error) {
	var ours, raw []time.Duration
	for range e.calls {
		one, base, err := b.pushOne(ctx)
		if err != nil {
			return nil, err
		}
		ours, raw = append(ours, one), append(raw, base)
	}
	one, base := p50(ours), p50(raw)
	return []row{{"end in Temporal to notifications/tasks, p50, against a history long-poll", one.String(), base.String(), fmt.Sprintf("%+v", one-base), "<= +3ms"}}, nil
}

func (b *bed) pushOne(ctx context.Context) (ours, raw time.Duration, err error) {
	id, err := b.start(ctx, "park")
	if err != nil {
		return 0, 0, err
	}
	listening, err := b.mcp.listen(ctx, id)
	if err != nil {
		return 0, 0, err
	}
	defer listening.close()
	if _, err := listening.next(); err != nil {
		return 0, 0, err
	}
	polled := make(chan error, 1)
	var rawEnd time.Time
	go func() {
		_, err := b.temporal.GetWorkflowHistory(ctx, workflowID(id), "", true, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT).Next()
		rawEnd = time.Now()
		polled <- err
	}()
	time.Sleep(settling) // until both wait
	begin := time.Now()
	if err := b.end(ctx, id); err != nil {
		return 0, 0, err
	}
	if _, err := listening.until(change.ended); err != nil {
		return 0, 0, err
	}
	ours = time.Since(begin)
	err = <-polled
	return ours, rawEnd.Sub(begin), err
}

// update compares the time from an answer to the end that it leads to, as a client that listens sees it, with that from a bare
// signal to the result of the workflow.
func (b *bed) update(ctx context.Context, e effort) ([]row, error) {
	var ours, raw []time.Duration
	for range e.calls {
		one, err := b.updateOne(ctx)
		if err != nil {
			return nil, err
		}
		base, err := b.signalOne(ctx)
		if err != nil {
			return nil, err
		}
		ours, raw = append(ours, one), append(raw, base)
	}
	one, base := p50(ours), p50(raw)
	return []row{{"tasks/update to the pushed end, p50, against signal to result", one.String(), base.String(), times(float64(one) / float64(base)), "<= 1.30"}}, nil
}

func (b *bed) updateOne(ctx context.Context) (time.Duration, error) {
	id, err := b.start(ctx, "ask")
	if err != nil {
		return 0, err
	}
	listening, err := b.mcp.listen(ctx, id)
	if err != nil {
		return 0, err
	}
	defer listening.close()
	asked, err := listening.until(func(c change) bool { return len(c.InputRequests) > 0 })
	if err != nil {
		return 0, err
	}
	time.Sleep(settling)
	updated := make(chan error, 1)
	begin := time.Now()
	go func() { updated <- b.mcp.update(ctx, id, slices.Collect(maps.Keys(asked.InputRequests))[0]) }()
	if _, err := listening.until(change.ended); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	return took, <-updated
}

func (b *bed) signalOne(ctx context.Context) (time.Duration, error) {
	id := uuid.NewString()
	started, err := b.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: taskQueue}, "Ask", struct{}{})
	if err != nil {
		return 0, err
	}
	for { // until it has asked
		described, err := b.temporal.DescribeWorkflow(ctx, id, "")
		if err != nil {
			return 0, err
		}
		if _, asks := described.RawResponse.GetWorkflowExecutionInfo().GetMemo().GetFields()[signals.StateMemo]; asks {
			break
		}
	}
	time.Sleep(settling)
	begin := time.Now()
	answer := signals.Input{Responses: map[string]json.RawMessage{"go-1": json.RawMessage(`{"action":"accept","content":{}}`)}}
	if err := b.temporal.SignalWorkflow(ctx, id, "", signals.InputSignal, answer); err != nil {
		return 0, err
	}
	err = started.Get(ctx, nil)
	return time.Since(begin), err
}

// listened has many tasks listened to at once, then ends them all: what does a task take while it is parked, and is the end
// of each told?
func (b *bed) listened(ctx context.Context, e effort) ([]row, error) {
	ids, err := b.park(ctx, e.parked)
	if err != nil {
		return nil, err
	}
	before, err := b.mcp.usage(ctx)
	if err != nil {
		return nil, err
	}
	var open []*subscription
	for some := range slices.Chunk(ids, perSubscription) {
		listening, err := b.mcp.listen(ctx, some...)
		if err != nil {
			return nil, err
		}
		defer listening.close()
		open = append(open, listening)
		for range some {
			if _, err := listening.next(); err != nil {
				return nil, err
			}
		}
	}
	during, err := b.mcp.usage(ctx)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	told := countEnds(open)
	if err := each(len(ids), func(i int) error { return b.end(ctx, ids[i]) }); err != nil {
		return nil, err
	}
	ended := time.Since(begin)
	missing := int64(len(ids)) - told(int64(len(ids)))
	return []row{
		{fmt.Sprintf("memory of a parked task, %d listened to", len(ids)), fmt.Sprintf("%.1f KiB", float64(int64(during.Memory)-int64(before.Memory))/float64(len(ids))/1024), "", "", "<= 8 KiB"},
		{fmt.Sprintf("ends of %d parked tasks that were not told", len(ids)), fmt.Sprint(missing), fmt.Sprintf("%v to end them", ended.Round(time.Millisecond)), "all told after " + time.Since(begin).Round(time.Millisecond).String(), "0"},
	}, nil
}

// countEnds counts the ends that subscriptions tell. What it returns waits until there are as many as wanted, or for too long.
func countEnds(open []*subscription) func(wanted int64) int64 {
	var told atomic.Int64
	for _, listening := range open {
		go func() {
			for {
				if _, err := listening.until(change.ended); err != nil {
					return
				}
				told.Add(1)
			}
		}()
	}
	return func(wanted int64) int64 {
		for begin := time.Now(); told.Load() < wanted && time.Since(begin) < longest; {
			time.Sleep(time.Millisecond)
		}
		return told.Load()
	}
}

// storm subscribes to tasks in the moment in which they end: is the end of each told?
func (b *bed) storm(ctx context.Context, e effort) ([]row, error) {
	ids, err := b.park(ctx, e.storm)
	if err != nil {
		return nil, err
	}
	var missed atomic.Int64
	err = each(len(ids), func(i int) error {
		ending := make(chan error, 1)
		go func() { ending <- b.end(ctx, ids[i]) }()
		waiting, stop := context.WithTimeout(ctx, longest)
		defer stop()
		listening, err := b.mcp.listen(waiting, ids[i])
		if err != nil {
			return err
		}
		defer listening.close()
		if _, err := listening.until(change.ended); err != nil {
			missed.Add(1)
		}
		return <-ending
	})
	return []row{{fmt.Sprintf("ends missed by who subscribes as tasks end, %d times", len(ids)), fmt.Sprint(missed.Load()), "", "", "0"}}, err
}
