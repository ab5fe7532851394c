//go:build unix

package workflows_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"taskbridge/internal/testenv"
	"taskbridge/signals"
	"taskbridge/workflows"
)

// How long a real server may take for a step, on a busy machine, and how often a test looks.
const (
	waitFor   = time.Minute
	pollEvery = 20 * time.Millisecond
)

// memo is what the task says, as a front end reads it.
func memo(t *testing.T, c client.Client, run client.WorkflowRun) (state signals.TaskState) {
	description, err := c.DescribeWorkflow(t.Context(), run.GetID(), "")
	if err != nil || description.Memo == nil {
		return state
	}
	payload := description.RawResponse.GetWorkflowExecutionInfo().GetMemo().GetFields()[signals.StateMemo]
	assert.NoError(t, converter.GetDefaultDataConverter().FromPayload(payload, &state))
	return state
}

// heartbeat is the status message of the first pending activity, "" as long as there is none.
func heartbeat(t *testing.T, c client.Client, run client.WorkflowRun) string {
	description, err := c.DescribeWorkflow(t.Context(), run.GetID(), "")
	if err != nil {
		return ""
	}
	for _, activity := range description.RawResponse.GetPendingActivities() {
		var beat signals.Heartbeat
		if converter.GetDefaultDataConverter().FromPayloads(activity.GetHeartbeatDetails(), &beat) == nil {
			return beat.StatusMessage
		}
	}
	return ""
}

// alive reports whether a process runs. One that has ended and waits to be collected does not.
func alive(pid string) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

func TestACancelledPipelineEndsAfterItsProcesses(t *testing.T) {
	c := testenv.Client(t)
	queue := "cancel-" + uuid.NewString()
	w := workflows.NewWorker(c, queue)
	require.NoError(t, w.Start())
	defer w.Stop()

	dir := t.TempDir()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, workflows.PipelineName,
		pipelineInput(workflows.PipelineSpec{Dir: dir, Steps: []workflows.Step{
			shell("compile", "true"),
			shell("linger", `sleep 300 & echo "$$ $!" >pids.new; mv pids.new pids; echo lingering; sleep 300`, "compile"),
			shell("deploy", "touch deployed", "linger"),
		}}, nil))
	require.NoError(t, err)

	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "pids"))
		return err == nil
	}, waitFor, pollEvery)
	text, err := os.ReadFile(filepath.Join(dir, "pids"))
	require.NoError(t, err)
	pids := strings.Fields(string(text))
	require.Len(t, pids, 2)
	for _, pid := range pids {
		require.True(t, alive(pid), "process %s does not run", pid)
	}

	progress := regexp.MustCompile(`^linger \(2/3\) running \d+s: lingering$`)
	require.Eventually(t, func() bool { return progress.MatchString(heartbeat(t, c, run)) }, waitFor, pollEvery)
	assert.Equal(t, "linger (2/3)", memo(t, c, run).StatusMessage)

	require.NoError(t, c.CancelWorkflow(t.Context(), run.GetID(), ""))
	var canceled *temporal.CanceledError
	require.ErrorAs(t, run.Get(t.Context(), nil), &canceled)
	for _, pid := range pids {
		assert.False(t, alive(pid), "process %s outlives the workflow", pid)
	}
	assert.NoFileExists(t, filepath.Join(dir, "deployed"))

	description, err := c.DescribeWorkflow(t.Context(), run.GetID(), "")
	require.NoError(t, err)
	assert.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, description.Status)
}
