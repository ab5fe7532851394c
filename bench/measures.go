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
	// rounds are the windows of a throughput or CPU measure on either side.
	rounds = 21
	// watchedTasks are read while they are listened to.
	watchedTasks = 64
)

// createLatency compares the latency of a call that starts a task with that of the bare start of its workflow, in turns.
// The two are close, so that it takes more calls than elsewhere to tell them apart.
func (b *bed) createLatency(ctx context.Context, e effort) ([]row, error) {
	var ours, raw []time.Duration
	for range 5 * e.calls {
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

// createRate compares how many tasks and how many bare workflows can be started. There are a few hundred in a second, so
// that a window has to be long for its rate to mean something.
func (b *bed) createRate(ctx context.Context, e effort) ([]row, error) {
	found, err := compare(ctx, 3*e.window,
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
	cost := func(of endpoint) func() (float64, error) {
		return func() (float64, error) { return of.cost(ctx, e.window, read(of)) }
	}
	costs, err := inTurns(cost(b.mcp), cost(b.bare))
	return []row{
		found.row("tasks/get of a closed task, against bare Echo", ">= 0.80"),
		{"CPU of such a read", fmt.Sprintf("%.1fµs", costs.ours), fmt.Sprintf("%.1fµs", costs.base), times(costs.ratio), "<= 1.30"},
	}, err
}

// cost is the CPU time, in microseconds, that the process behind an endpoint takes for each time something is done.
func (e endpoint) cost(ctx context.Context, window time.Duration, do func(context.Context, int) error) (float64, error) {
	before, err := e.usage(ctx)
	if err != nil {
		return 0, err
	}
	done, err := repeat(ctx, window, do)
	if err != nil {
		return 0, err
	}
	after, err := e.usage(ctx)
	return float64((after.CPU - before.CPU).Microseconds()) / float64(done), err
}

// compare finds out how often two things can be done in a second.
func compare(ctx context.Context, window time.Duration, ours, base func(context.Context, int) error) (compared, error) {
	rate := func(do func(context.Context, int) error) func() (float64, error) {
		return func() (float64, error) {
			done, err := repeat(ctx, window, do)
			return float64(done) / window.Seconds(), err
		}
	}
	return inTurns(rate(ours), rate(base))
}

// inTurns measures both sides in turns and returns their medians, and the median of the ratios of windows side by side: what
// else the machine does changes slowly, and hits both of them. The side that begins changes, as what is measured can grow
// slower with what has been done.
func inTurns(ours, base func() (float64, error)) (compared, error) {
	sides := []func() (float64, error){ours, base}
	var found [2][]float64
	var ratios []float64
	for round := range rounds {
		for turn := range sides {
			side := (round + turn) % len(sides)
			value, err := sides[side]()
			if err != nil {
				return compared{}, err
			}
			found[side] = append(found[side], value)
		}
		ratios = append(ratios, found[0][round]/found[1][round])
	}
	return compared{median(found[0]), median(found[1]), median(ratios)}, nil
}

// compared is what has been found of both sides.
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
