// Package activities holds the activities of the bundled workflows.
package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"taskbridge/internal/procgroup"
)

// Types of the application errors of RunCommand.
const (
	// InvalidCommandType marks a command that cannot be run as it is given. It is not retried.
	InvalidCommandType = "InvalidCommand"
	// WorkerStoppingType marks a command stopped because its worker stops. Another worker may retry it.
	WorkerStoppingType = "WorkerStopping"
)

// Outcomes of a command.
const (
	Succeeded = "succeeded" // exit code 0
	Failed    = "failed"    // another exit code, or ended by a signal
	TimedOut  = "timed_out" // stopped after its timeout
)

const (
	defaultGrace     = 5 * time.Second
	defaultTailBytes = 16 << 10
	maxTailBytes     = 256 << 10 // escaped in JSON it may be six times as long; a Temporal payload holds 2 MiB
)

// Command is a program to run.
type Command struct {
	// Label names the command in progress messages; the program's name if empty.
	Label string `json:"label,omitempty"`
	// Argv is the program, looked up on the worker's PATH unless it contains a slash, and its arguments. No shell
	// interprets them.
	Argv []string `json:"argv"`
	// Dir is the working directory; the worker's if empty.
	Dir string `json:"dir,omitempty"`
	// Env is added to the worker's environment, which is passed on without its TEMPORAL_ and TASKBRIDGE_ variables.
	Env map[string]string `json:"env,omitempty"`
	// TimeoutMs is how long the command may run, in milliseconds; 0 is as long as the activity may.
	TimeoutMs int64 `json:"timeoutMs,omitempty"`
	// TailBytes is how much of the end of the output is kept, at most 256 KiB; 0 is 16 KiB.
	TailBytes int `json:"tailBytes,omitempty"`
}

// CommandResult tells how a command ended.
type CommandResult struct {
	// ExitCode is -1 if a signal ended the command.
	ExitCode int `json:"exitCode"`
	// Signal that ended the command, such as "killed".
	Signal string `json:"signal,omitempty"`
	// Outcome is Succeeded, Failed or TimedOut.
	Outcome    string `json:"outcome"`
	DurationMs int64  `json:"durationMs"`
	// Output is the end of standard output and standard error together, in valid UTF-8. If it is not all, a first line
	// says how much is omitted.
	Output       string `json:"output"`
	OmittedBytes int64  `json:"omittedBytes"`
}

// Commands runs commands on the worker's machine.
type Commands struct {
	// Grace is how long a command that is to stop may take to do so before it is killed; 0 is five seconds.
	Grace time.Duration
}

// RunCommand runs a command to its end; heartbeats carry its progress. A command that fails or times out is a result,
// not an error. The command and all processes it started are stopped when the activity is cancelled (the error is that
// of ctx) and when the worker stops (WorkerStoppingType, to be retried). A command that cannot be run as it is given is
// an InvalidCommandType error.
func (c *Commands) RunCommand(ctx context.Context, command Command) (CommandResult, error) {
	cmd, err := prepare(command)
	if err != nil {
		return CommandResult{}, err
	}
	tail := procgroup.NewTail(cmp.Or(command.TailBytes, defaultTailBytes))
	cmd.Stdout, cmd.Stderr = tail, tail
	begin := time.Now()
	group, err := procgroup.Start(cmd)
	if err != nil {
		return CommandResult{}, startError(command, err)
	}
	r := &run{
		group:    group,
		grace:    cmp.Or(c.Grace, defaultGrace),
		progress: progress{label: cmp.Or(command.Label, filepath.Base(command.Argv[0])), begin: begin, tail: tail},
	}
	switch r.wait(ctx, time.Duration(command.TimeoutMs)*time.Millisecond) {
	case cancelled:
		return CommandResult{}, ctx.Err()
	case workerStops:
		return CommandResult{}, temporal.NewApplicationError("the worker stops and has stopped the command", WorkerStoppingType)
	case timedOut:
		return result(cmd, tail, begin, TimedOut)
	default:
		return result(cmd, tail, begin, "")
	}
}

// prepare checks the command and makes it ready to start.
func prepare(c Command) (*exec.Cmd, error) {
	if err := check(c); err != nil {
		return nil, temporal.NewNonRetryableApplicationError(err.Error(), InvalidCommandType, nil)
	}
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Dir = c.Dir
	cmd.Env = environment(cmd.Environ(), c.Env)
	return cmd, nil
}

func check(c Command) error {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return errors.New("argv is empty: its first element must name the program to run")
	}
	for i, arg := range c.Argv {
		if strings.ContainsRune(arg, 0) {
			return fmt.Errorf("argv[%d] contains a NUL character, which no argument can", i)
		}
	}
	for name, value := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("env has the name %q: a name must not be empty or contain '=' or NUL", name)
		}
		if strings.ContainsRune(value, 0) {
			return fmt.Errorf("env %s contains a NUL character, which no variable can", name)
		}
	}
	if c.TimeoutMs < 0 {
		return fmt.Errorf("timeoutMs is %d: it must be positive, or 0 for none", c.TimeoutMs)
	}
	if c.TailBytes < 0 || c.TailBytes > maxTailBytes {
		return fmt.Errorf("tailBytes is %d: it must be at most %d, or 0 for %d", c.TailBytes, maxTailBytes, defaultTailBytes)
	}
	return checkDir(c.Dir)
}

func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	if strings.ContainsRune(dir, 0) {
		return errors.New("dir contains a NUL character, which no path can")
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("dir cannot be used on this worker: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("dir %s is not a directory", dir)
	}
	return nil
}

// environment is the worker's without what configures Temporal and taskbridge, credentials above all, and with extra.
func environment(own []string, extra map[string]string) []string {
	env := slices.DeleteFunc(own, func(entry string) bool {
		return strings.HasPrefix(entry, "TEMPORAL_") || strings.HasPrefix(entry, "TASKBRIDGE_")
	})
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		env = append(env, name+"="+extra[name])
	}
	return env
}

// startError tells a command that can never start from a worker that is short of processes, files or memory.
func startError(c Command, err error) error {
	for _, cause := range []error{exec.ErrNotFound, exec.ErrDot, fs.ErrNotExist, fs.ErrPermission, syscall.ENOEXEC, syscall.E2BIG} {
		if errors.Is(err, cause) {
			message := fmt.Sprintf("cannot run %q on this worker: %v", c.Argv[0], err)
			return temporal.NewNonRetryableApplicationError(message, InvalidCommandType, nil)
		}
	}
	return fmt.Errorf("start %q: %w", c.Argv[0], err)
}

// result describes an ended command. Without an outcome given it follows from the exit code.
func result(cmd *exec.Cmd, tail *procgroup.Tail, begin time.Time, outcome string) (CommandResult, error) {
	state := cmd.ProcessState
	if state == nil {
		return CommandResult{}, fmt.Errorf("%q was not waited for: its exit code is unknown", cmd.Path)
	}
	r := CommandResult{
		ExitCode:   state.ExitCode(),
		Outcome:    outcome,
		DurationMs: time.Since(begin).Milliseconds(),
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		r.Signal = status.Signal().String()
	}
	if outcome == "" {
		r.Outcome = Failed
		if state.Success() {
			r.Outcome = Succeeded
		}
	}
	r.Output, r.OmittedBytes = tail.Text()
	if r.OmittedBytes > 0 {
		r.Output = fmt.Sprintf("… (%d bytes omitted)\n%s", r.OmittedBytes, r.Output)
	}
	return r, nil
}

// end is why a command ended.
type end int

const (
	byItself end = iota
	timedOut
	cancelled
	workerStops
)

// run is a command under way.
type run struct {
	group    *procgroup.Group
	grace    time.Duration
	progress progress
}

// wait sends heartbeats until the command has ended, and makes it end if it has to. The heartbeats go on while it
// stops: without them Temporal would time the activity out before it can report.
func (r *run) wait(ctx context.Context, timeout time.Duration) end {
	expired := make(<-chan time.Time)
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		expired = timer.C
	}
	ticker := time.NewTicker(heartbeatPause)
	defer ticker.Stop()
	for {
		select {
		case <-r.group.Done():
			return byItself
		case <-ticker.C:
			r.progress.heartbeat(ctx)
		case <-expired:
			return r.stop(ctx, ticker, timedOut)
		case <-activity.GetWorkerStopChannel(ctx):
			return r.stop(ctx, ticker, workerStops)
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), worker.ErrWorkerShutdown) { // a stop without WorkerStopTimeout
				return r.stop(ctx, ticker, workerStops)
			}
			return r.stop(ctx, ticker, cancelled)
		}
	}
}

func (r *run) stop(ctx context.Context, ticker *time.Ticker, why end) end {
	go r.group.Stop(r.grace) // returns when Done is closed
	for {
		select {
		case <-r.group.Done():
			return why
		case <-ticker.C:
			r.progress.heartbeat(ctx)
		}
	}
}
