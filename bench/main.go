// Command bench measures the hot paths of the front end against what they are made of, in one run on one machine: raw
// Temporal calls and a bare Echo handler. Only the ratios mean something; the raw numbers stand beside them.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"text/tabwriter"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"taskbridge/internal/devserver"
	"taskbridge/mcpbridge"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/workflows"
)

const taskQueue = "bench"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	window := flag.Duration("window", 2*time.Second, "how long one window of a throughput measure is; each has three on either side")
	calls := flag.Int("calls", 200, "calls of a latency measure")
	flag.Parse()
	if err := run(ctx, *window, *calls); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, window time.Duration, calls int) error {
	b, stop, err := newBed(ctx)
	if err != nil {
		return err
	}
	defer stop()
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(table, "measure\tours\tbaseline\tratio\ttarget\t")
	for _, measure := range []func(context.Context) (row, error){
		func(ctx context.Context) (row, error) { return b.create(ctx, calls) },
		func(ctx context.Context) (row, error) { return b.live(ctx, window) },
		func(ctx context.Context) (row, error) { return b.closed(ctx, window) },
	} {
		r, err := measure(ctx)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%.2f\t%s\t\n", r.name, r.ours, r.baseline, r.ratio, r.target)
	}
	return table.Flush()
}

// row is one line of the table.
type row struct {
	name, ours, baseline, target string
	ratio                        float64
}

// bed is everything the measures run on.
type bed struct {
	temporal client.Client
	mcp      endpoint
	bare     endpoint
	ids      []string // of live tasks
	done     string   // of a closed task
}

// Park is a workflow that waits to be cancelled.
func Park(ctx workflow.Context, in struct{}) (string, error) {
	return "", workflow.Sleep(ctx, 24*time.Hour)
}

// Finish is a workflow that returns at once.
func Finish(workflow.Context, struct{}) (string, error) { return "finished", nil }

const liveTasks = 64

// newBed starts a Temporal dev server, a worker, a front end and the bare handler, and makes the tasks to read.
func newBed(ctx context.Context) (*bed, func(), error) {
	server, err := devserver.Start(ctx, devserver.Options{NoUI: true, Log: os.Stderr})
	if err != nil {
		return nil, nil, err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	temporal, err := client.DialContext(ctx, client.Options{HostPort: server.Address(), Logger: log.NewStructuredLogger(logger)})
	if err != nil {
		return nil, nil, err
	}
	w := worker.New(temporal, taskQueue, workflows.WorkerOptions())
	w.RegisterWorkflow(Park)
	w.RegisterWorkflow(Finish)
	if err := w.Start(); err != nil {
		return nil, nil, err
	}
	stop := func() {
		w.Stop()
		temporal.Close()
		_ = server.Stop()
	}
	bridge, err := mcpbridge.New(mcpbridge.Options{Temporal: temporal, Logger: logger})
	if err != nil {
		return nil, stop, err
	}
	if err := mcpbridge.AddTool(bridge, catalog.Tool{Name: "park", TaskQueue: taskQueue}, Park); err != nil {
		return nil, stop, err
	}
	if err := mcpbridge.AddTool(bridge, catalog.Tool{Name: "finish", TaskQueue: taskQueue}, Finish); err != nil {
		return nil, stop, err
	}
	b := &bed{temporal: temporal}
	if b.mcp, err = listen(bridge.Handler()); err != nil {
		return nil, stop, err
	}
	return b, stop, b.makeTasks(ctx)
}

// listen serves a handler on a free loopback port for as long as the program runs.
func listen(handler http.Handler) (endpoint, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return endpoint{}, err
	}
	go func() { _ = http.Serve(listener, handler) }()
	return newEndpoint(fmt.Sprintf("http://%s/mcp", listener.Addr())), nil
}

// makeTasks makes live tasks and a closed one, and the bare handler that answers as many bytes as the closed one has.
func (b *bed) makeTasks(ctx context.Context) error {
	for range liveTasks {
		id, err := b.start(ctx, "park")
		if err != nil {
			return err
		}
		b.ids = append(b.ids, id)
	}
	var err error
	if b.done, err = b.start(ctx, "finish"); err != nil {
		return err
	}
	for {
		answer, err := b.mcp.get(ctx, b.done)
		if err != nil {
			return err
		}
		if answer.Result.Status == "completed" {
			b.bare, err = listen(bareHandler(answer.raw))
			return err
		}
	}
}

func (b *bed) start(ctx context.Context, tool string) (string, error) {
	answer, err := b.mcp.call(ctx, tool)
	return answer.Result.TaskID, err
}
