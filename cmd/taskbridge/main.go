// Command taskbridge runs MCP tasks on Temporal: an MCP front end, a worker, a local development setup of both, and a
// client to try them.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// run executes one command line and returns its exit status.
func run(ctx context.Context, args []string, io streams) int {
	root, err := newRootCommand(io)
	if err != nil {
		_, _ = fmt.Fprintln(io.Err, "taskbridge:", err)
		return exitUsage
	}
	root.SetArgs(args)
	err = root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var exit exitError
	if !errors.As(err, &exit) {
		exit = exitError{code: 1, err: err}
	}
	if exit.err != nil {
		_, _ = fmt.Fprintln(io.Err, "taskbridge:", exit.err)
	}
	return exit.code
}
