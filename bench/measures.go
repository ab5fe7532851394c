package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
)

const (
	clients = 16
	windows = 3
)

// create compares the latency of a call that starts a task with that of the bare start of its workflow, in turns.
func (b *bed) create(ctx context.Context, calls int) (row, error) {
	var ours, raw []time.Duration
	for range calls {
		begin := time.Now()
		if _, err := b.start(ctx, "park"); err != nil {
			return row{}, err
		}
		ours = append(ours, time.Since(begin))
		begin = time.Now()
		_, err := b.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: "mcp:anonymous:" + uuid.NewString(), TaskQueue: taskQueue,
		}, "Park", struct{}{})
		if err != nil {
			return row{}, err
		}
		raw = append(raw, time.Since(begin))
	}
	p50, base := median(ours), median(raw)
	return row{
		name: "tools/call, p50 at 1 client, against StartWorkflow", ours: p50.String(), baseline: base.String(),
		ratio: float64(p50) / float64(base), target: "<= 1.20",
	}, nil
}

func median(durations []time.Duration) time.Duration {
	slices.Sort(durations)
	return durations[len(durations)/2].Round(10 * time.Microsecond)
}

// live compares reads of live tasks with bare describes of their workflows.
func (b *bed) live(ctx context.Context, window time.Duration) (row, error) {
	ours, base, err := compare(ctx, window,
		func(ctx context.Context, n int) error {
			_, err := b.mcp.rawGet(ctx, b.ids[n%len(b.ids)])
			return err
		},
		func(ctx context.Context, n int) error {
			_, err := b.temporal.DescribeWorkflow(ctx, "mcp:anonymous:"+b.ids[n%len(b.ids)], "")
			return err
		})
	return row{
		name: fmt.Sprintf("tasks/get of live tasks, %d clients, against Describe", clients), ours: perSecond(ours), baseline: perSecond(base),
		ratio: ours / base, target: ">= 0.90",
	}, err
}

// closed compares reads of a closed task with a bare Echo handler.
func (b *bed) closed(ctx context.Context, window time.Duration) (row, error) {
	read := func(e endpoint) func(context.Context, int) error {
		return func(ctx context.Context, _ int) error {
			_, err := e.rawGet(ctx, b.done)
			return err
		}
	}
	ours, base, err := compare(ctx, window, read(b.mcp), read(b.bare))
	return row{
		name: fmt.Sprintf("tasks/get of a closed task, %d clients, against bare Echo", clients), ours: perSecond(ours), baseline: perSecond(base),
		ratio: ours / base, target: ">= 0.60",
	}, err
}

func perSecond(rate float64) string { return fmt.Sprintf("%.0f/s", rate) }

// compare measures both sides in turns, so that what else the machine does hits both, and returns their best windows.
func compare(ctx context.Context, window time.Duration, ours, base func(context.Context, int) error) (best, bestBase float64, err error) {
	for range windows {
		rate, err := throughput(ctx, window, ours)
		if err != nil {
			return 0, 0, err
		}
		best = max(best, rate)
		if rate, err = throughput(ctx, window, base); err != nil {
			return 0, 0, err
		}
		bestBase = max(bestBase, rate)
	}
	return best, bestBase, nil
}

// throughput is how often all clients together can do something in a second.
func throughput(ctx context.Context, window time.Duration, do func(context.Context, int) error) (float64, error) {
	var done atomic.Int64
	var failed atomic.Pointer[error]
	var running sync.WaitGroup
	begin := time.Now()
	for range clients {
		running.Go(func() {
			for time.Since(begin) < window && failed.Load() == nil {
				if err := do(ctx, int(done.Add(1))); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	running.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(done.Load()) / time.Since(begin).Seconds(), nil
}
