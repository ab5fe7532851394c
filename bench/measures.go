package main

import (
	"cmp"
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
	// rounds are the windows of a throughput measure on either side.
	rounds = 21
	// watchedTasks are read while they are listened to.
	watchedTasks = 64
)

// createLatency compares the latency of a call that starts a task with that of the bare start of its workflow, in turns.
func (b *bed) createLatency(ctx context.Context, e effort) ([]row, error) {
	var ours, raw []time.Duration
	for range e.calls {
		begin := time.Now()
		if _, err := b.mcp.rawCall(ctx, "idle"); err != nil {
			return nil, err
		}
		ours = append(ours, time.Since(begin))
		begin = time.Now()
		if err := b.startRaw(ctx); err != nil {
			return nil, err
		}
		raw = append(raw, time.Since(begin))
	}
	one, base := p50(ours), p50(raw)
	return []row{{"tools/call, 1 client, p50, against StartWorkflow", one.String(), base.String(), times(float64(one) / float64(base)), "<= 1.10"}}, nil
}

func (b *bed) startRaw(ctx context.Context) error {
	_, err := b.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: workflowID(uuid.NewString()), TaskQueue: nobody}, "Park", struct{}{})
	return err
}

func median[T cmp.Ordered](values []T) T {
	slices.Sort(values)
	return values[len(values)/2]
}

// p50 is the median of durations, as it is printed.
func p50(durations []time.Duration) time.Duration {
	return median(durations).Round(10 * time.Microsecond)
}

// createRate compares how many tasks and how many bare workflows can be started.
func (b *bed) createRate(ctx context.Context, e effort) ([]row, error) {
	found, err := compare(ctx, e.window,
		func(ctx context.Context, _ int) error {
			_, err := b.mcp.rawCall(ctx, "idle")
			return err
		},
		func(ctx context.Context, _ int) error { return b.startRaw(ctx) })
	return []row{found.row("tools/call, 16 clients, against StartWorkflow", ">= 0.95")}, err
}

// live compares reads of distinct live tasks with bare describes of their workflows.
func (b *bed) live(ctx context.Context, e effort) ([]row, error) {
	found, err := b.compareReads(ctx, e, b.ids)
	return []row{found.row("tasks/get of distinct live tasks, against Describe", ">= 0.95")}, err
}

// one compares reads of one live task by all clients.
func (b *bed) one(ctx context.Context, e effort) ([]row, error) {
	found, err := b.compareReads(ctx, e, b.ids[:1])
	return []row{found.row("tasks/get of one live task, against Describe", ">= 12")}, err
}

// watched compares reads of tasks that somebody listens to.
func (b *bed) watched(ctx context.Context, e effort) ([]row, error) {
	ids := b.ids[:watchedTasks]
	listening, err := b.mcp.listen(ctx, ids...)
	if err != nil {
		return nil, err
	}
	defer listening.close()
	for range ids {
		if _, err := listening.next(); err != nil {
			return nil, err
		}
	}
	found, err := b.compareReads(ctx, e, ids)
	return []row{found.row(fmt.Sprintf("tasks/get of %d watched tasks, against Describe", watchedTasks), ">= 12")}, err
}

func (b *bed) compareReads(ctx context.Context, e effort, ids []string) (compared, error) {
	return compare(ctx, e.window,
		func(ctx context.Context, n int) error {
			_, err := b.mcp.rawGet(ctx, ids[n%len(ids)])
			return err
		},
		func(ctx context.Context, n int) error {
			_, err := b.temporal.DescribeWorkflow(ctx, workflowID(ids[n%len(ids)]), "")
			return err
		})
}

// closed compares reads of a closed task with a bare Echo handler: how many there can be, and what each costs.
func (b *bed) closed(ctx context.Context, e effort) ([]row, error) {
	read := func(at endpoint) func(context.Context, int) error {
		return func(ctx context.Context, _ int) error {
			_, err := at.rawGet(ctx, b.done)
			return err
		}
	}
	found, err := compare(ctx, e.window, read(b.mcp), read(b.bare))
	if err != nil {
		return nil, err
	}
	cost, err := b.mcp.cost(ctx, 4*e.window, read(b.mcp))
	if err != nil {
		return nil, err
	}
	bareCost, err := b.bare.cost(ctx, 4*e.window, read(b.bare))
	return []row{
		found.row("tasks/get of a closed task, against bare Echo", ">= 0.80"),
		{"CPU of such a read", cost.String(), bareCost.String(), times(float64(cost) / float64(bareCost)), "<= 1.30"},
	}, err
}

// cost is the CPU time that the process behind an endpoint takes for each time something is done.
func (e endpoint) cost(ctx context.Context, window time.Duration, do func(context.Context, int) error) (time.Duration, error) {
	before, err := e.usage(ctx)
	if err != nil {
		return 0, err
	}
	done, err := repeat(ctx, window, do)
	if err != nil {
		return 0, err
	}
	after, err := e.usage(ctx)
	return ((after.CPU - before.CPU) / time.Duration(done)).Round(100 * time.Nanosecond), err
}

// compare measures both sides in turns and returns their median rates, and the median of the ratios of windows side by side:
// what else the machine does changes slowly, and hits both of them. The side that begins changes, as what is measured can
// grow slower with what has been done.
func compare(ctx context.Context, window time.Duration, ours, base func(context.Context, int) error) (compared, error) {
	sides := []func(context.Context, int) error{ours, base}
	var rates [2][]float64
	var ratios []float64
	for round := range rounds {
		for turn := range sides {
			side := (round + turn) % len(sides)
			done, err := repeat(ctx, window, sides[side])
			if err != nil {
				return compared{}, err
			}
			rates[side] = append(rates[side], float64(done)/window.Seconds())
		}
		ratios = append(ratios, rates[0][round]/rates[1][round])
	}
	return compared{median(rates[0]), median(rates[1]), median(ratios)}, nil
}

// compared is what a throughput measure has found: how often both sides do something in a second.
type compared struct{ ours, base, ratio float64 }

func (c compared) row(name, target string) row {
	return row{name, fmt.Sprintf("%.0f/s", c.ours), fmt.Sprintf("%.0f/s", c.base), times(c.ratio), target}
}

// repeat is how often all clients together can do something in a window.
func repeat(ctx context.Context, window time.Duration, do func(context.Context, int) error) (int64, error) {
	var (
		begun, done atomic.Int64
		failed      atomic.Pointer[error]
		running     sync.WaitGroup
	)
	begin := time.Now()
	for range clients {
		running.Go(func() {
			for time.Since(begin) < window && failed.Load() == nil {
				if err := do(ctx, int(begun.Add(1))); err != nil {
					failed.Store(&err)
				} else if time.Since(begin) < window {
					done.Add(1)
				}
			}
		})
	}
	running.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return done.Load(), nil
}
