package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Exit statuses of the client commands.
const (
	exitToolError   = 1
	exitUsage       = 2
	exitFailed      = 3
	exitInput       = 4
	exitTimeout     = 5
	exitCancelled   = 6
	exitInterrupted = 130 // 128 + SIGINT, as shells have it
)

// exitStatuses is the part of a command's help that explains them.
const exitStatuses = `Exit status:
  0    completed
  1    the tool ran and reported an error
  2    the command line is wrong
  3    the task failed, the server refused the request, or no server answered
  4    the task needs input that nobody here can give; it goes on
  5    --timeout is over; the task goes on
  6    the task was cancelled by somebody else
  130  Ctrl-C`

// exitError ends the command with an exit status. A nil err has been told already.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.code)
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

func usageErrorf(format string, args ...any) error {
	return exitError{exitUsage, fmt.Errorf(format, args...)}
}

// failed gives an error its exit status unless it has one.
func failed(err error) error {
	if err == nil || errors.As(err, new(exitError)) {
		return err
	}
	return exitError{exitFailed, err}
}

// between requires from least to most positional arguments; most < 0 is no bound. The error shows the command's usage.
func between(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || most >= 0 && len(args) > most {
			return usageErrorf("usage: %s", cmd.UseLine())
		}
		return nil
	}
}

// streams are a command's input and outputs.
type streams struct {
	In       io.Reader
	Out, Err io.Writer
	// Columns is the width of a terminal, 0 for a stream that is none. Nil asks the operating system.
	Columns func(stream any) int
}

func (s streams) columns(stream any) int {
	if s.Columns != nil {
		return s.Columns(stream)
	}
	file, ok := stream.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0
	}
	const usual = 80 // of a terminal that does not tell
	if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
		return width
	}
	return usual
}

// canAsk reports whether a person can be asked: sees the question and can type.
func (s streams) canAsk() bool { return s.columns(s.In) > 0 && s.columns(s.Err) > 0 }
