package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"taskbridge/internal/devserver"
	"taskbridge/internal/procgroup"
	"taskbridge/workflows"
)

// The task queues: one with a worker, and one with none, for starts alone.
const (
	taskQueue = "bench"
	nobody    = "nobody"
)

// bed is everything the measures run on.
type bed struct {
	temporal  client.Client
	mcp, bare endpoint
	ids       []string // of live tasks
	done      string   // of a closed task
}

// Park is a workflow that waits for the signal "end".
func Park(ctx workflow.Context, _ struct{}) (string, error) {
	workflow.GetSignalChannel(ctx, "end").Receive(ctx, nil)
	return "ended", nil
}

// Ask is a workflow that asks a question.
func Ask(ctx workflow.Context, _ struct{}) (string, error) {
	task, err := workflows.NewTask(ctx, nil)
	if err != nil {
		return "", err
	}
	answer, err := workflows.Elicit[struct{}](ctx, task, workflows.Question{Name: "go", Message: "Go on?"})
	return string(answer.Action), err
}

// Finish is a workflow that returns at once.
func Finish(workflow.Context, struct{}) (string, error) { return "finished", nil }

// liveTasks are more than can be read twice before a read is old.
const liveTasks = 1024

// newBed starts a Temporal dev server, a worker, a front end and the bare handler, and makes the tasks to read.
func newBed(ctx context.Context) (*bed, func(), error) {
	server, err := devserver.Start(ctx, devserver.Options{NoUI: true, Log: os.Stderr})
	if err != nil {
		return nil, nil, err
	}
	cleanup := []func(){func() { _ = server.Stop() }}
	stop := func() {
		for i := len(cleanup) - 1; i >= 0; i-- {
			cleanup[i]()
		}
	}
	b := &bed{}
	if b.temporal, err = client.DialContext(ctx, client.Options{HostPort: server.Address(), Logger: log.NewStructuredLogger(quiet())}); err != nil {
		return nil, stop, err
	}
	cleanup = append(cleanup, b.temporal.Close)
	w := worker.New(b.temporal, taskQueue, workflows.WorkerOptions())
	w.RegisterWorkflow(Park)
	w.RegisterWorkflow(Ask)
	w.RegisterWorkflow(Finish)
	if err := w.Start(); err != nil {
		return nil, stop, err
	}
	cleanup = append(cleanup, w.Stop)
	front, end, err := begin("front", "-temporal", server.Address())
	if err != nil {
		return nil, stop, err
	}
	b.mcp = front
	cleanup = append(cleanup, end)
	answer, err := b.makeTasks(ctx)
	if err != nil {
		return nil, stop, err
	}
	if b.bare, end, err = begin("bare", "-body", string(answer)); err != nil {
		return nil, stop, err
	}
	cleanup = append(cleanup, end)
	return b, stop, nil
}

func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// begin starts a process of this program in a role, and returns where it serves.
func begin(role string, args ...string) (endpoint, func(), error) {
	program, err := os.Executable()
	if err != nil {
		return endpoint{}, nil, err
	}
	cmd := exec.Command(program, append([]string{"-role", role}, args...)...)
	output, input := io.Pipe()
	cmd.Stdout, cmd.Stderr = input, os.Stderr
	group, err := procgroup.Start(cmd)
	if err != nil {
		return endpoint{}, nil, err
	}
	end := func() { group.Stop(time.Second) }
	go func() {
		<-group.Done()
		_ = input.Close()
	}()
	url, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		end()
		return endpoint{}, nil, fmt.Errorf("%s does not start: %w", role, err)
	}
	return newEndpoint(strings.TrimSpace(url)), end, nil
}

// makeTasks makes live tasks and a closed one, and returns what a read of the closed one answers.
func (b *bed) makeTasks(ctx context.Context) ([]byte, error) {
	var err error
	if b.ids, err = b.park(ctx, liveTasks); err != nil {
		return nil, err
	}
	if b.done, err = b.start(ctx, "finish"); err != nil {
		return nil, err
	}
	for {
		answer, err := b.mcp.get(ctx, b.done)
		if err != nil {
			return nil, err
		}
		if answer.Result.Status == "completed" {
			return answer.raw, nil
		}
	}
}

// park starts tasks that wait.
func (b *bed) park(ctx context.Context, n int) ([]string, error) {
	ids := make([]string, n)
	return ids, each(n, func(i int) error {
		var err error
		ids[i], err = b.start(ctx, "park")
		return err
	})
}

func (b *bed) start(ctx context.Context, tool string) (string, error) {
	answer, err := b.mcp.call(ctx, tool)
	return answer.Result.TaskID, err
}

// end ends the workflow of a task that is parked.
func (b *bed) end(ctx context.Context, id string) error {
	return b.temporal.SignalWorkflow(ctx, workflowID(id), "", "end", nil)
}

func workflowID(id string) string { return "mcp:anonymous:" + id }

// each does something n times, by all clients at once, and returns the first error.
func each(n int, do func(i int) error) error {
	var (
		running sync.WaitGroup
		mutex   sync.Mutex
		next    int
		failed  error
	)
	take := func(err error) (int, bool) {
		mutex.Lock()
		defer mutex.Unlock()
		if failed == nil {
			failed = err
		}
		next++
		return next - 1, failed == nil && next <= n
	}
	for range clients {
		running.Go(func() {
			for i, more := take(nil); more; {
				i, more = take(do(i))
			}
		})
	}
	running.Wait()
	return failed
}
