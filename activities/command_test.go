//go:build unix

package activities_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"taskbridge/activities"
)

func environment(commands *activities.Commands) *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(commands)
	env.SetTestTimeout(time.Minute)
	return env
}

func execute(env *testsuite.TestActivityEnvironment, command activities.Command) (activities.CommandResult, error) {
	var result activities.CommandResult
	value, err := env.ExecuteActivity("RunCommand", command)
	if err != nil {
		return result, err
	}
	return result, value.Get(&result)
}

func runCommand(t *testing.T, command activities.Command) activities.CommandResult {
	t.Helper()
	result, err := execute(environment(&activities.Commands{Grace: time.Second}), command)
	require.NoError(t, err)
	return result
}

func sh(script string, args ...string) []string {
	return append([]string{"/bin/sh", "-c", script, "sh"}, args...)
}

// marked is a command which starts a second process and waits; both have the marker among their arguments.
func marked() (argv []string, marker string) {
	marker = "marker-" + uuid.NewString()
	script := `sh -c 'echo started; while :; do sleep 0.1; done' "$1" & wait`
	return sh(script, marker), marker
}

// running counts the processes with the marker among their arguments.
func running(t *testing.T, marker string) (n int) {
	t.Helper()
	if runtime.GOOS != "linux" {
		out, err := exec.Command("ps", "-A", "-o", "args=").Output()
		require.NoError(t, err)
		return strings.Count(string(out), marker)
	}
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, path := range paths {
		if line, err := os.ReadFile(path); err == nil && strings.Contains(string(line), marker) {
			n++
		}
	}
	return n
}

func requireRunning(t *testing.T, marker string, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return running(t, marker) == n }, 20*time.Second, 20*time.Millisecond)
}

func TestCommandResults(t *testing.T) {
	tests := []struct {
		name    string
		command activities.Command
		want    activities.CommandResult
	}{
		{
			"success",
			activities.Command{Argv: sh("echo out; echo err >&2")},
			activities.CommandResult{Outcome: "succeeded", Output: "out\nerr\n"},
		},
		{
			"failure",
			activities.Command{Argv: sh("echo bad; exit 7")},
			activities.CommandResult{Outcome: "failed", ExitCode: 7, Output: "bad\n"},
		},
		{
			"death by a signal",
			activities.Command{Argv: sh("kill -KILL $$")},
			activities.CommandResult{Outcome: "failed", ExitCode: -1, Signal: "killed"},
		},
		{
			"timeout",
			activities.Command{Argv: sh("echo begun; sleep 300"), TimeoutMs: 1500},
			activities.CommandResult{Outcome: "timed_out", ExitCode: -1, Signal: "terminated", Output: "begun\n"},
		},
		{
			"timeout of a command that ignores TERM",
			activities.Command{Argv: sh("trap '' TERM; echo begun; while :; do sleep 0.1; done"), TimeoutMs: 1500},
			activities.CommandResult{Outcome: "timed_out", ExitCode: -1, Signal: "killed", Output: "begun\n"},
		},
		{
			"arguments reach the program untouched",
			activities.Command{Argv: []string{"printf", "%s|", "a b", "$HOME", "`id`", "*; exit 1"}},
			activities.CommandResult{Outcome: "succeeded", Output: "a b|$HOME|`id`|*; exit 1|"},
		},
		{
			"no input",
			activities.Command{Argv: []string{"cat"}},
			activities.CommandResult{Outcome: "succeeded"},
		},
		{
			"long output",
			activities.Command{Argv: sh("i=0; while [ $i -lt 100 ]; do echo line $i; i=$((i+1)); done"), TailBytes: 26},
			activities.CommandResult{Outcome: "succeeded", Output: "… (766 bytes omitted)\nline 97\nline 98\nline 99\n", OmittedBytes: 766},
		},
		{
			"output that is not UTF-8",
			activities.Command{Argv: []string{"printf", `caf\351 \303\251`}},
			activities.CommandResult{Outcome: "succeeded", Output: "caf� é"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := runCommand(t, test.command)
			assert.GreaterOrEqual(t, got.DurationMs, test.command.TimeoutMs)
			got.DurationMs = 0
			assert.Equal(t, test.want, got)
		})
	}
}

func TestCommandEnvironmentAndDirectory(t *testing.T) {
	t.Setenv("TEMPORAL_API_KEY", "secret")
	t.Setenv("TASKBRIDGE_TOKEN", "secret")
	t.Setenv("KEPT", "of the worker")
	t.Setenv("CHANGED", "of the worker")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)

	result := runCommand(t, activities.Command{
		Argv: sh(`echo "$TEMPORAL_API_KEY|$TASKBRIDGE_TOKEN|$KEPT|$CHANGED"; pwd`),
		Dir:  dir,
		Env:  map[string]string{"CHANGED": "of the command"},
	})
	assert.Equal(t, "||of the worker|of the command\n"+dir+"\n", result.Output)
}

func TestCommandJSON(t *testing.T) {
	var command activities.Command
	decoder := json.NewDecoder(strings.NewReader(`{"label":"test (2/4)", "argv":["go","test"], "dir":"d", "env":{"K":"V"},
		"timeoutMs":5, "tailBytes":6}`))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&command))
	assert.Equal(t, activities.Command{
		Label: "test (2/4)", Argv: []string{"go", "test"}, Dir: "d", Env: map[string]string{"K": "V"}, TimeoutMs: 5, TailBytes: 6,
	}, command)

	result, err := json.Marshal(activities.CommandResult{ExitCode: -1, Signal: "killed", Outcome: activities.Failed, DurationMs: 3})
	require.NoError(t, err)
	assert.JSONEq(t, `{"exitCode":-1, "signal":"killed", "outcome":"failed", "durationMs":3, "output":"", "omittedBytes":0}`, string(result))
}

func TestInvalidCommands(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("no program"), 0o644))
	text := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(text, []byte("\x01 no program either"), 0o755))

	tests := []struct {
		name    string
		command activities.Command
		message string
	}{
		{"no argv", activities.Command{}, "argv is empty"},
		{"no program", activities.Command{Argv: []string{""}}, "argv is empty"},
		{"unknown program", activities.Command{Argv: []string{"no-such-program"}}, `cannot run "no-such-program" on this worker`},
		{"missing program file", activities.Command{Argv: []string{filepath.Join(dir, "missing")}}, "no such file"},
		{"program not executable", activities.Command{Argv: []string{file}}, "permission denied"},
		{"not a program", activities.Command{Argv: []string{text}}, "exec format error"},
		{"NUL in an argument", activities.Command{Argv: []string{"echo", "a\x00b"}}, "argv[1] contains a NUL"},
		{"NUL in a value", activities.Command{Argv: []string{"echo"}, Env: map[string]string{"K": "a\x00b"}}, "env K contains a NUL"},
		{"bad variable name", activities.Command{Argv: []string{"echo"}, Env: map[string]string{"A=B": ""}}, `env has the name "A=B"`},
		{"NUL in the directory", activities.Command{Argv: []string{"echo"}, Dir: "a\x00b"}, "dir contains a NUL"},
		{"missing directory", activities.Command{Argv: []string{"echo"}, Dir: filepath.Join(dir, "missing")}, "dir cannot be used on this worker"},
		{"directory is a file", activities.Command{Argv: []string{"echo"}, Dir: file}, "is not a directory"},
		{"negative timeout", activities.Command{Argv: []string{"echo"}, TimeoutMs: -1}, "timeoutMs is -1"},
		{"negative tail", activities.Command{Argv: []string{"echo"}, TailBytes: -1}, "tailBytes is -1"},
		{"huge tail", activities.Command{Argv: []string{"echo"}, TailBytes: 1 << 30}, "it must be at most 262144"},
		{"too long an argument", activities.Command{Argv: []string{"echo", strings.Repeat("x", 2<<20)}}, "argument list too long"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := execute(environment(&activities.Commands{}), test.command)
			var application *temporal.ApplicationError
			require.ErrorAs(t, err, &application)
			assert.Equal(t, "InvalidCommand", application.Type())
			assert.True(t, application.NonRetryable())
			assert.Contains(t, application.Message(), test.message)
		})
	}
}

func TestCancellationStopsAllProcesses(t *testing.T) {
	argv, marker := marked()
	ctx, cancel := context.WithCancel(t.Context())
	env := environment(&activities.Commands{Grace: time.Second})
	env.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})

	ended := make(chan error, 1)
	go func() {
		_, err := execute(env, activities.Command{Argv: argv})
		ended <- err
	}()
	requireRunning(t, marker, 2)
	cancel()
	require.ErrorContains(t, <-ended, "canceled")
	requireRunning(t, marker, 0)
}

func TestWorkerStopStopsTheCommand(t *testing.T) {
	argv, marker := marked()
	env := environment(&activities.Commands{Grace: time.Second})
	stop := make(chan struct{})
	env.SetWorkerStopChannel(stop)

	ended := make(chan error, 1)
	go func() {
		_, err := execute(env, activities.Command{Argv: argv})
		ended <- err
	}()
	requireRunning(t, marker, 2)
	close(stop)
	var application *temporal.ApplicationError
	require.ErrorAs(t, <-ended, &application)
	assert.Equal(t, "WorkerStopping", application.Type())
	assert.False(t, application.NonRetryable())
	requireRunning(t, marker, 0)
}

func TestBackgroundProcessesEndWithTheCommand(t *testing.T) {
	marker := "marker-" + uuid.NewString()
	result := runCommand(t, activities.Command{Argv: sh(`sh -c 'while :; do sleep 0.1; done' "$1" & echo done`, marker)})
	assert.Equal(t, activities.Succeeded, result.Outcome)
	assert.Equal(t, "done\n", result.Output)
	requireRunning(t, marker, 0)
}
