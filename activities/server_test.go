//go:build unix

package activities_test

import (
	"log/slog"
	"regexp"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"taskbridge/activities"
	"taskbridge/internal/devserver"
	"taskbridge/signals"
)

// runOne is a workflow that runs one command.
func runOne(ctx workflow.Context, command activities.Command) (result activities.CommandResult, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 2 * time.Minute,
		HeartbeatTimeout:    3 * time.Second,
		WaitForCancellation: true,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond},
	})
	err = workflow.ExecuteActivity(ctx, "RunCommand", command).Get(ctx, &result)
	return result, err
}

func startWorker(t *testing.T, c client.Client, o worker.Options) worker.Worker {
	t.Helper()
	w := worker.New(c, "commands", o)
	w.RegisterWorkflow(runOne)
	w.RegisterActivity(&activities.Commands{Grace: time.Second})
	require.NoError(t, w.Start())
	return w
}

// statusMessage is what the running activity's last heartbeat says, "" if there is none.
func statusMessage(t *testing.T, c client.Client, run client.WorkflowRun) string {
	description, err := c.DescribeWorkflow(t.Context(), run.GetID(), "")
	if err != nil || len(description.RawResponse.GetPendingActivities()) == 0 {
		return ""
	}
	var heartbeat signals.Heartbeat
	details := description.RawResponse.GetPendingActivities()[0].GetHeartbeatDetails()
	if err := converter.GetDefaultDataConverter().FromPayloads(details, &heartbeat); err != nil {
		return ""
	}
	return heartbeat.StatusMessage
}

func TestCommandsOnTemporal(t *testing.T) {
	server, err := devserver.Start(t.Context(), devserver.Options{NoUI: true})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	c, err := client.Dial(client.Options{
		HostPort: server.Address(), Namespace: server.Namespace(),
		Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)

	start := func(t *testing.T, command activities.Command) client.WorkflowRun {
		t.Helper()
		options := client.StartWorkflowOptions{ID: uuid.NewString(), TaskQueue: "commands"}
		run, err := c.ExecuteWorkflow(t.Context(), options, runOne, command)
		require.NoError(t, err)
		return run
	}

	t.Run("heartbeats show progress, with and without new output", func(t *testing.T) {
		w := startWorker(t, c, worker.Options{MaxHeartbeatThrottleInterval: 100 * time.Millisecond})
		defer w.Stop()
		script := `printf 'compiling\r50%%\033[K\n\n'; sleep 4; printf '\033[32mok\033[0m\tdone\n'; sleep 2`
		run := start(t, activities.Command{Label: "test (2/4)", Argv: sh(script)})
		seen := map[string]bool{}
		requireMessage := func(pattern string) {
			t.Helper()
			require.Eventually(t, func() bool {
				message := statusMessage(t, c, run)
				fresh := !seen[message] && regexp.MustCompile(pattern).MatchString(message)
				seen[message] = fresh || seen[message]
				return fresh
			}, 20*time.Second, 20*time.Millisecond, pattern)
		}
		requireMessage(`^test \(2/4\) running \d+s: 50%$`)
		requireMessage(`^test \(2/4\) running [1-9]s: 50%$`)
		requireMessage(`^test \(2/4\) running \d+s: ok done$`)
		require.NoError(t, run.Get(t.Context(), nil))
	})

	t.Run("a cancel ends the command and all its processes", func(t *testing.T) {
		w := startWorker(t, c, worker.Options{})
		defer w.Stop()
		argv, marker := marked()
		run := start(t, activities.Command{Argv: argv})
		requireRunning(t, marker, 2)

		require.NoError(t, c.CancelWorkflow(t.Context(), run.GetID(), ""))
		var canceled *temporal.CanceledError
		require.ErrorAs(t, run.Get(t.Context(), nil), &canceled)
		requireRunning(t, marker, 0)
	})

	for name, o := range map[string]worker.Options{
		"a command whose worker stops runs again on another":          {WorkerStopTimeout: 20 * time.Second},
		"also if the worker does not wait for its running activities": {},
	} {
		t.Run(name, func(t *testing.T) {
			first := startWorker(t, c, o)
			argv, marker := marked()
			flag := t.TempDir() + "/flag"
			// The second time the flag is there and the command ends.
			script := `[ -e "$1" ] && echo again && exit; : >"$1"; shift; exec "$@"`
			run := start(t, activities.Command{Argv: sh(script, append([]string{flag}, argv...)...)})
			requireRunning(t, marker, 2)
			first.Stop()
			requireRunning(t, marker, 0)

			second := startWorker(t, c, worker.Options{})
			defer second.Stop()
			var result activities.CommandResult
			require.NoError(t, run.Get(t.Context(), &result))
			assert.Equal(t, "again\n", result.Output)
		})
	}
}
