// Command bench measures the hot paths of the front end against what they are made of, in one run on one machine: raw
// Temporal calls and a bare Echo handler. Only the ratios mean something; the raw numbers stand beside them.
//
// The front end and the bare handler are processes of their own, so that what they use can be told from what the load takes.
// The worker runs in this one.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// effort says how long the measures take.
type effort struct {
	window time.Duration // of a throughput or CPU measure, which has 21 on either side; creates take three times as long
	calls  int           // of a latency measure; creating takes five times as many
	parked int           // tasks that are listened to at once
	storm  int           // tasks that end while somebody subscribes
	only   string        // the measures to take, with commas between; "" for all
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var (
		e    effort
		role = flag.String("role", "", "what this process is for another of its kind: front or bare")
		args part
	)
	flag.DurationVar(&e.window, "window", 500*time.Millisecond, "how long one window of a throughput or CPU measure is; each has 21 on either side, and those of creates are three times as long")
	flag.IntVar(&e.calls, "calls", 200, "calls of a latency measure; creating takes five times as many")
	flag.IntVar(&e.parked, "parked", 2000, "tasks that are listened to at once")
	flag.IntVar(&e.storm, "storm", 1000, "tasks that end while somebody subscribes")
	flag.StringVar(&e.only, "only", "", "take only these: create, creates, live, one, watched, closed, push, update, listened, storm; with commas between")
	flag.StringVar(&args.temporal, "temporal", "", "of a front end: address of the Temporal server")
	flag.StringVar(&args.body, "body", "", "of a bare handler: what it answers")
	flag.Parse()
	run := func(ctx context.Context) error { return measure(ctx, e) }
	if *role != "" {
		run = func(ctx context.Context) error { return args.serve(ctx, *role) }
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measure prints the table, a row as soon as it is there on standard error, and all of them aligned at the end.
func measure(ctx context.Context, e effort) error {
	b, stop, err := newBed(ctx)
	if err != nil {
		return err
	}
	defer stop()
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "measure\tours\tbaseline\tratio\ttarget\t")
	for _, m := range []struct {
		name string
		take func(context.Context, effort) ([]row, error)
	}{
		{"create", b.createLatency}, {"creates", b.createRate},
		{"live", b.live}, {"one", b.one}, {"watched", b.watched}, {"closed", b.closed},
		{"push", b.push}, {"update", b.update}, {"listened", b.listened}, {"storm", b.storm},
	} {
		if e.only != "" && !slices.Contains(strings.Split(e.only, ","), m.name) {
			continue
		}
		rows, err := m.take(ctx, e)
		if err != nil {
			return err
		}
		for _, r := range rows {
			fmt.Fprintf(os.Stderr, "%s: %s, %s\n", r.name, r.ours, r.ratio)
			_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t\n", r.name, r.ours, r.baseline, r.ratio, r.target)
		}
	}
	return table.Flush()
}

// row is one line of the table.
type row struct {
	name, ours, baseline, ratio, target string
}

func times(ratio float64) string { return fmt.Sprintf("%.2f", ratio) }
