package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"taskbridge/internal/mcpclient"
	"taskbridge/internal/testenv"
)

// pipelineCatalog is a catalog of one tool, "job", that runs steps on a task queue of its own.
func pipelineCatalog(t *testing.T, steps string) (file, taskQueue string) {
	t.Helper()
	taskQueue = strings.ReplaceAll(t.Name(), "/", "-")
	file = filepath.Join(t.TempDir(), "catalog.yaml")
	catalog := fmt.Sprintf(`
version: 1
tools:
  job:
    description: A job.
    workflow: Pipeline
    taskQueue: %s
    with: {pipeline: {steps: %s}}
`, taskQueue, steps)
	require.NoError(t, os.WriteFile(file, []byte(catalog), 0o600))
	return file, taskQueue
}

func startWorker(t *testing.T, taskQueue string) *process {
	t.Helper()
	worker := start(t, temporalEnv(t), binary(t, "cmd/taskbridge"), "worker", "--task-queue", taskQueue)
	worker.waitFor("polling task queue")
	return worker
}

func startFrontEnd(t *testing.T, catalog string) (*process, *mcpclient.Client) {
	t.Helper()
	front := start(t, temporalEnv(t), binary(t, "cmd/taskbridge"), "serve", "--catalog", catalog, "--listen", "127.0.0.1:0")
	return front, mcpclient.New(front.endpoint(), nil)
}

func create(t *testing.T, c *mcpclient.Client, tool string) string {
	t.Helper()
	outcome, err := c.Call(t.Context(), tool, json.RawMessage(`{}`), nil)
	require.NoError(t, err)
	require.NotNil(t, outcome.Task, "%+v", outcome)
	return outcome.Task.ID
}

func untilTask(t *testing.T, c *mcpclient.Client, id string, wanted func(*mcpclient.Task) bool) *mcpclient.Task {
	t.Helper()
	var last *mcpclient.Task
	require.Eventually(t, func() bool {
		task, err := c.GetTask(t.Context(), id)
		require.NoError(t, err)
		last = task
		return wanted(task)
	}, patience, 50*time.Millisecond, "task is %+v", &last)
	return last
}

func status(wanted string) func(*mcpclient.Task) bool {
	return func(task *mcpclient.Task) bool { return string(task.Status) == wanted }
}

func TestFrontEndIsKilledMidTask(t *testing.T) {
	catalog, taskQueue := pipelineCatalog(t, `[{name: approve, ask: {message: Go on?}}]`)
	startWorker(t, taskQueue)
	front, c := startFrontEnd(t, catalog)
	id := create(t, c, "job")
	asked := untilTask(t, c, id, status("input_required"))
	front.kill9()

	_, c = startFrontEnd(t, catalog)
	again, err := c.GetTask(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, asked.InputRequests, again.InputRequests, "the question is still there")
	require.NoError(t, c.UpdateTask(t.Context(), id, map[string]json.RawMessage{
		"approve-1": json.RawMessage(`{"action":"accept","content":{"approve":true}}`),
	}))
	done := untilTask(t, c, id, status("completed"))
	assert.Contains(t, string(done.Raw), "Pipeline succeeded")
}

func TestWorkerIsKilledMidStep(t *testing.T) {
	begun := filepath.Join(t.TempDir(), "begun")
	catalog, taskQueue := pipelineCatalog(t, fmt.Sprintf(
		`[{name: slow, run: [sh, -c, 'echo $$ >> %s; test $(wc -l < %s) -gt 1 || sleep 300']}]`, begun, begun))
	_, c := startFrontEnd(t, catalog)
	id := create(t, c, "job")
	waiting := untilTask(t, c, id, func(task *mcpclient.Task) bool { return task.StatusMessage != "" })
	assert.Equal(t, "waiting for a worker on task queue "+taskQueue, waiting.StatusMessage)

	worker := startWorker(t, taskQueue)
	untilTask(t, c, id, func(task *mcpclient.Task) bool { return strings.Contains(task.StatusMessage, "slow (1/1) running") })
	worker.kill9()
	pid := strings.TrimSpace(readFile(t, begun))
	require.Eventually(t, func() bool {
		_, err := os.Stat("/proc/" + pid + "/cwd")
		return err != nil
	}, patience, 20*time.Millisecond, "the command of the killed worker lives on")

	startWorker(t, taskQueue)
	done := untilTask(t, c, id, status("completed"))
	assert.Contains(t, string(done.Raw), "Pipeline succeeded")
	assert.Len(t, strings.Fields(readFile(t, begun)), 2, "run again after its heartbeat timeout")
}

func TestMalformedLegacyCallDoesNotEndTheProcess(t *testing.T) {
	catalog, _ := pipelineCatalog(t, `[{name: one, run: ['true']}]`)
	front, c := startFrontEnd(t, catalog)
	for _, method := range []string{"tools/call", "tasks/get", "tasks/update", "tasks/cancel", "tools/list", "resources/read", "prompts/get", "initialize", "ping", "no/such"} {
		for _, params := range []string{``, `,"params":{}`, `,"params":null`, `,"params":{"_meta":{}}`} {
			legacyPost(t, front.endpoint(), fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q%s}`, method, params))
		}
	}
	_, err := c.Tools(t.Context())
	require.NoError(t, err)
	assert.False(t, front.ended())
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(content)
}

// startDev runs `taskbridge dev` on the checkout, on free ports.
func startDev(t *testing.T, args ...string) *process {
	t.Helper()
	args = append([]string{"dev", "--listen", "127.0.0.1:0", "--temporal-port", "0", "--no-ui"}, args...)
	dev := startIn(t, "..", nil, binary(t, "cmd/taskbridge"), args...)
	dev.endpoint()
	return dev
}

func (p *process) temporalAddress() string {
	p.t.Helper()
	return p.waitFor(`Temporal\s+(\S+), namespace`)[1]
}

func TestDevRunsTheDemoOnItsOwnCheckout(t *testing.T) {
	dev := startDev(t)
	taskbridge := func(args ...string) *process {
		return run(t, []string{"TASKBRIDGE_URL=" + dev.endpoint()}, binary(t, "cmd/taskbridge"), args...)
	}
	t.Run("approved", func(t *testing.T) {
		require.NoError(t, os.RemoveAll("../dist"))
		call := taskbridge("call", "ci_pipeline", "{}", "--answer", `approve={"approve":true}`)
		assert.Zero(t, call.wait(), call.stderr.String())
		assert.Contains(t, call.stdout.String(), "Pipeline succeeded")
		assert.Contains(t, call.stderr.String(), "test (2/5)", "progress")
		assert.FileExists(t, "../dist/taskbridge.tar.gz")
	})
	t.Run("declined", func(t *testing.T) {
		call := taskbridge("call", "ci_pipeline", "{}", "--answer", "approve=decline")
		assert.Equal(t, 1, call.wait())
		assert.Contains(t, call.stderr.String(), "approve was declined (decline)")
		assert.Contains(t, call.stderr.String(), "build: skipped")
	})
	t.Run("Ctrl-C during the tests", func(t *testing.T) {
		// Tests that take seconds and start no processes in groups of their own, which end a moment later.
		const marker = "./internal/../mcpbridge/internal/expression"
		call := start(t, []string{"TASKBRIDGE_URL=" + dev.endpoint()}, binary(t, "cmd/taskbridge"), "call", "ci_pipeline", `{"package":"`+marker+`"}`)
		id := call.waitFor(`task (\S+)`)[1]
		call.waitFor(`test \(2/5\) running`)
		require.NotEmpty(t, processesWith("ARG_PACKAGE="+marker))
		call.signal(os.Interrupt)
		assert.Equal(t, 130, call.wait(), call.stderr.String())
		assert.Empty(t, processesWith("ARG_PACKAGE="+marker), "the workflow ended only once its processes were gone")
		temporal, err := client.Dial(client.Options{HostPort: dev.temporalAddress(), Logger: testenv.QuietLogger()})
		require.NoError(t, err)
		defer temporal.Close()
		workflow, err := temporal.DescribeWorkflow(t.Context(), "mcp:anonymous:"+id, "")
		require.NoError(t, err)
		assert.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, workflow.Status)
	})
	t.Run("ends with everything it started", func(t *testing.T) {
		address := dev.temporalAddress()
		dev.signal(syscall.SIGTERM)
		assert.Zero(t, dev.wait(), dev.stderr.String())
		assert.False(t, answers(address), "the Temporal server is gone")
	})
}

func TestDevIsKilled(t *testing.T) {
	dev := startDev(t)
	address := dev.temporalAddress()
	require.True(t, answers(address))
	dev.kill9()
	require.Eventually(t, func() bool { return !answers(address) }, patience, 50*time.Millisecond, "the Temporal server lives on")
}

func TestDevKeepsItsStateInAFile(t *testing.T) {
	db := filepath.Join(t.TempDir(), "state.db")
	dev := startDev(t, "--db", db)
	c := mcpclient.New(dev.endpoint(), nil)
	outcome, err := c.Call(t.Context(), "word_count", json.RawMessage(`{"text":"to be or not to be"}`), nil)
	require.NoError(t, err)
	before := untilTask(t, c, outcome.Task.ID, status("completed"))
	dev.signal(syscall.SIGTERM)
	require.Zero(t, dev.wait())

	dev = startDev(t, "--db", db)
	after, err := mcpclient.New(dev.endpoint(), nil).GetTask(t.Context(), outcome.Task.ID)
	require.NoError(t, err)
	assert.JSONEq(t, string(before.Raw), string(after.Raw))
}

func TestTakenPortsAreTold(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	require.NoError(t, err)
	for _, test := range []struct{ flags, message string }{
		{"--listen 127.0.0.1:" + port, "address 127.0.0.1:" + port + " is already in use: choose another with --listen"},
		{"--listen 127.0.0.1:0 --no-ui --temporal-port " + port, "--temporal-port"},
		{"--listen 127.0.0.1:0 --temporal-port 0 --ui-port " + port, "--ui-port"},
	} {
		dev := run(t, nil, binary(t, "cmd/taskbridge"), append([]string{"dev"}, strings.Fields(test.flags)...)...)
		assert.Equal(t, 1, dev.wait(), test.flags)
		assert.Contains(t, dev.stderr.String(), test.message)
		assert.Contains(t, dev.stderr.String(), "in use")
	}
}

func TestServeWithoutTemporal(t *testing.T) {
	catalog, _ := pipelineCatalog(t, `[{name: one, run: ['true']}]`)
	serve := run(t, []string{"TEMPORAL_ADDRESS=127.0.0.1:1"}, binary(t, "cmd/taskbridge"), "serve", "--catalog", catalog, "--listen", "127.0.0.1:0")
	assert.Equal(t, 1, serve.wait())
	assert.Contains(t, serve.stderr.String(), "no Temporal server answers at 127.0.0.1:1")
}

func answers(address string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err == nil {
		_ = connection.Close()
	}
	return err == nil
}

// processesWith are the processes that have a variable in their environment.
func processesWith(variable string) []string {
	var found []string
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range environments {
		content, err := os.ReadFile(file) // a process may have ended meanwhile, or be another user's
		if err == nil && strings.Contains("\x00"+string(content), "\x00"+variable+"\x00") {
			found = append(found, filepath.Dir(file))
		}
	}
	return found
}

// legacyPost sends a message as a client before 2026-07-28 would, with or without the session it needs.
func legacyPost(t *testing.T, endpoint, body string) {
	t.Helper()
	for _, version := range []string{"", "2025-11-25", "2026-07-28"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader(body))
		require.NoError(t, err)
		request.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		if version != "" {
			request.Header.Set("Mcp-Protocol-Version", version)
		}
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
}

func TestAnOpenStreamDoesNotHoldUpTheEnd(t *testing.T) {
	catalog, _ := pipelineCatalog(t, `[{name: one, run: ['true']}]`)
	front, _ := startFrontEnd(t, catalog)
	const listen = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.endpoint(), strings.NewReader(listen))
	require.NoError(t, err)
	request.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"subscriptions/listen"},
	}
	stream, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = stream.Body.Close() }()
	require.Equal(t, http.StatusOK, stream.StatusCode)
	begin := time.Now()
	front.signal(os.Interrupt)
	assert.Zero(t, front.wait())
	assert.Less(t, time.Since(begin), 8*time.Second, "less than the grace for requests in flight")
}
