package codec_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge/codec"
)

const (
	marker   = "MARKER"
	patience = time.Minute
)

// using is a client of the shared server with a codec; nil is none.
func using(t testing.TB, c converter.PayloadCodec) client.Client {
	t.Helper()
	options := client.Options{HostPort: testenv.Temporal(t).Address(), Logger: testenv.QuietLogger()}
	if c != nil {
		codec.Use(&options, c)
	}
	connected, err := client.Dial(options)
	require.NoError(t, err)
	t.Cleanup(connected.Close)
	return connected
}

// everything has a payload wherever taskbridge has one: arguments, memo, activity, heartbeat, signal, query, result, failure.
func everything(ctx workflow.Context, argument string) (string, error) {
	if err := workflow.UpsertMemo(ctx, map[string]any{"state": marker + "-memo"}); err != nil {
		return "", err
	}
	err := workflow.SetQueryHandler(ctx, "ask", func(fail bool) (string, error) {
		if fail {
			return "", errors.New(marker + "-query-failure")
		}
		return marker + "-answer to a query", nil
	})
	if err != nil {
		return "", err
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: patience,
		HeartbeatTimeout:    patience,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:             marker + "-summary",
	})
	var said string
	if err := workflow.ExecuteActivity(ctx, beating, argument).Get(ctx, &said); err != nil {
		return "", err
	}
	var answer string
	workflow.GetSignalChannel(ctx, "answer").Receive(ctx, &answer)
	if answer == "fail" {
		return "", temporal.NewApplicationError(marker+"-failure", "Refused", marker+"-detail")
	}
	return said + " " + answer, nil
}

func beating(ctx context.Context, argument string) (string, error) {
	return marker + "-said " + argument, nil
}

func startWorker(t testing.TB, c client.Client, queue string) {
	t.Helper()
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflow(everything)
	w.RegisterActivity(beating)
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)
}

func start(t testing.TB, c client.Client, queue string) client.WorkflowRun {
	t.Helper()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: uuid.NewString(), TaskQueue: queue, Memo: map[string]any{"meta": marker + "-meta"}, StaticSummary: marker + "-summary",
	}, everything, marker+"-argument")
	require.NoError(t, err)
	return run
}

// history is what Temporal stores of a workflow, as JSON with its payloads' data in the clear.
func history(t testing.TB, run client.WorkflowRun) string {
	t.Helper()
	var text strings.Builder
	events := using(t, nil).GetWorkflowHistory(t.Context(), run.GetID(), run.GetRunID(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		require.NoError(t, err)
		text.WriteString(protojson.Format(event))
		text.WriteString(event.String())
	}
	return text.String()
}

func TestNothingReachesTemporalInTheClear(t *testing.T) {
	aes := newAES(t, codec.Key{ID: "a", Secret: secret(1, 32)})
	server := httptest.NewServer(converter.NewPayloadCodecHTTPHandler(aes))
	t.Cleanup(server.Close)
	remote, err := codec.NewServer(server.URL, "")
	require.NoError(t, err)

	for name, c := range map[string]converter.PayloadCodec{"in process": aes, "codec server": remote} {
		t.Run(name, func(t *testing.T) {
			queue := uuid.NewString()
			connected := using(t, c)
			startWorker(t, connected, queue)

			t.Run("success", func(t *testing.T) {
				run := start(t, connected, queue)
				value, err := connected.QueryWorkflow(t.Context(), run.GetID(), "", "ask", false)
				require.NoError(t, err)
				var answer string
				require.NoError(t, value.Get(&answer))
				assert.Equal(t, "MARKER-answer to a query", answer)
				_, err = connected.QueryWorkflow(t.Context(), run.GetID(), "", "ask", true)
				assert.ErrorContains(t, err, "MARKER-query-failure")
				require.NoError(t, connected.SignalWorkflow(t.Context(), run.GetID(), "", "answer", "MARKER-go on"))
				var result string
				require.NoError(t, run.Get(t.Context(), &result))
				assert.Equal(t, "MARKER-said MARKER-argument MARKER-go on", result)
				description, err := connected.DescribeWorkflow(t.Context(), run.GetID(), "")
				require.NoError(t, err)
				assert.Contains(t, description.RawResponse.String(), "MARKER-memo")
				assert.Contains(t, description.RawResponse.String(), "MARKER-meta")
				assert.NotContains(t, history(t, run), marker)
			})
			t.Run("failure", func(t *testing.T) {
				run := start(t, connected, queue)
				require.NoError(t, connected.SignalWorkflow(t.Context(), run.GetID(), "", "answer", "fail"))
				err := run.Get(t.Context(), nil)
				var failure *temporal.ApplicationError
				require.ErrorAs(t, err, &failure)
				assert.Equal(t, "MARKER-failure", failure.Message())
				var detail string
				require.NoError(t, failure.Details(&detail))
				assert.Equal(t, "MARKER-detail", detail)
				stored := history(t, run)
				assert.NotContains(t, stored, marker)
				assert.Contains(t, stored, "Refused", "the type stays readable: retry policies name it")
			})
		})
	}
	t.Run("without a codec it does", func(t *testing.T) {
		queue := uuid.NewString()
		connected := using(t, nil)
		startWorker(t, connected, queue)
		run := start(t, connected, queue)
		require.NoError(t, connected.SignalWorkflow(t.Context(), run.GetID(), "", "answer", "fail"))
		require.Error(t, run.Get(t.Context(), nil))
		assert.Contains(t, history(t, run), marker)
	})
}

// A data converter with the same codec, as workers of others have it, understands and is understood.
func TestDataConvertersOfOthersWork(t *testing.T) {
	aes := newAES(t, codec.Key{ID: "a", Secret: secret(1, 32)})
	dc := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), aes)
	others, err := client.Dial(client.Options{
		HostPort: testenv.Temporal(t).Address(), Logger: testenv.QuietLogger(), DataConverter: dc,
		FailureConverter: temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{DataConverter: dc, EncodeCommonAttributes: true}),
	})
	require.NoError(t, err)
	t.Cleanup(others.Close)
	queue := uuid.NewString()
	startWorker(t, others, queue)
	ours := using(t, aes)
	run := start(t, ours, queue)
	require.NoError(t, ours.SignalWorkflow(t.Context(), run.GetID(), "", "answer", "fail"))
	assert.ErrorContains(t, run.Get(t.Context(), nil), "MARKER-failure")
	assert.NotContains(t, history(t, run), marker)
}

func TestOneUnreadableTaskDoesNotHideTheOthersInAList(t *testing.T) {
	queue := uuid.NewString()
	a, b := codec.Key{ID: "a", Secret: secret(1, 32)}, codec.Key{ID: "b", Secret: secret(2, 32)}
	lost := start(t, using(t, newAES(t, b)), queue)
	ours := using(t, newAES(t, a))
	start(t, ours, queue)

	var listed *workflowservice.ListWorkflowExecutionsResponse
	require.Eventually(t, func() bool {
		var err error
		listed, err = ours.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("TaskQueue = %q", queue)})
		require.NoError(t, err)
		return len(listed.GetExecutions()) == 2
	}, patience, 50*time.Millisecond)
	assert.Contains(t, listed.String(), "MARKER-meta")

	_, err := ours.DescribeWorkflow(t.Context(), lost.GetID(), "")
	assert.ErrorContains(t, err, `key "b", which is not here`)
}

// Workflows outlive what is done to the codec: they wait, and lose nothing.
func TestWorkersBearWithACodecThatIsAway(t *testing.T) {
	var away atomic.Bool
	handler := converter.NewPayloadCodecHTTPHandler(newAES(t, codec.Key{ID: "a", Secret: secret(1, 32)}))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	remote, err := codec.NewServer(server.URL, "")
	require.NoError(t, err)
	queue := uuid.NewString()
	workers, front := using(t, remote), using(t, newAES(t, codec.Key{ID: "a", Secret: secret(1, 32)}))
	startWorker(t, workers, queue)
	run := start(t, front, queue)
	require.Eventually(t, func() bool {
		description, err := front.DescribeWorkflow(t.Context(), run.GetID(), "")
		require.NoError(t, err)
		return strings.Contains(description.RawResponse.String(), "MARKER-memo") && len(description.RawResponse.GetPendingActivities()) == 0
	}, patience, 20*time.Millisecond)

	away.Store(true)
	require.NoError(t, front.SignalWorkflow(t.Context(), run.GetID(), "", "answer", "late"))
	short, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	require.Error(t, run.Get(short, nil), "it waits")
	_, err = workers.ExecuteWorkflow(short, client.StartWorkflowOptions{TaskQueue: queue}, everything, "x")
	require.Error(t, err, "nothing is sent that cannot be encoded")
	away.Store(false)

	var result string
	require.NoError(t, run.Get(t.Context(), &result))
	assert.Equal(t, "MARKER-said MARKER-argument late", result)
}

func TestWorkersWaitForAMissingKey(t *testing.T) {
	a, b := codec.Key{ID: "a", Secret: secret(1, 32)}, codec.Key{ID: "b", Secret: secret(2, 32)}
	queue := uuid.NewString()
	front := using(t, newAES(t, b, a))
	w := worker.New(using(t, newAES(t, a)), queue, worker.Options{})
	w.RegisterWorkflow(everything)
	w.RegisterActivity(beating)
	require.NoError(t, w.Start())
	run := start(t, front, queue)
	require.Eventually(t, func() bool {
		description, err := front.DescribeWorkflow(t.Context(), run.GetID(), "")
		require.NoError(t, err)
		return description.RawResponse.GetPendingWorkflowTask().GetState() == enumspb.PENDING_WORKFLOW_TASK_STATE_STARTED
	}, patience, 20*time.Millisecond, "the worker took the task, and cannot read it")
	w.Stop()

	startWorker(t, using(t, newAES(t, a, b)), queue)
	require.NoError(t, front.SignalWorkflow(t.Context(), run.GetID(), "", "answer", "now"))
	var result string
	require.NoError(t, run.Get(t.Context(), &result))
	assert.Equal(t, "MARKER-said MARKER-argument now", result)
}
