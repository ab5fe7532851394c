package tasks_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/tasks"
	"taskbridge/signals"
)

// Parcel is what Deliver tells about itself.
type Parcel struct {
	State string `json:"state"`
	Done  int    `json:"done"`
	Total int    `json:"total"`
}

// Deliver knows nothing of MCP. It has a query, waits for one decision a parcel, which is a signal, and takes an update.
func Deliver(ctx workflow.Context, parcels int) ([]string, error) {
	parcel, city := Parcel{State: "packing", Total: parcels}, ""
	if err := workflow.SetQueryHandler(ctx, "progress", func() (Parcel, error) { return parcel, nil }); err != nil {
		return nil, err
	}
	err := workflow.SetUpdateHandlerWithOptions(ctx, "setCity",
		func(_ workflow.Context, to struct{ City string }) error { city = to.City; return nil },
		workflow.UpdateHandlerOptions{Validator: func(to struct{ City string }) error {
			if to.City == "Atlantis" {
				return errors.New("nobody delivers there")
			}
			return nil
		}})
	if err != nil {
		return nil, err
	}
	parcel.State = "addressing"
	if err := workflow.Await(ctx, func() bool { return city != "" }); err != nil {
		return nil, err
	}
	var decisions []string
	for range parcels {
		parcel.State = "waiting"
		var decision string
		workflow.NewSelector(ctx).
			AddReceive(workflow.GetSignalChannel(ctx, "approve"), func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, &decision) }).
			AddReceive(workflow.GetSignalChannel(ctx, "reject"), func(c workflow.ReceiveChannel, _ bool) { c.Receive(ctx, nil); decision = "no" }).
			AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {}).
			Select(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		parcel.State = "packing"
		parcel.Done++
		decisions = append(decisions, decision)
		if err := workflow.Sleep(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return append(decisions, city), nil
}

// deliver is the tool of Deliver.
func deliver(t *testing.T) *catalog.Tool {
	t.Helper()
	tool, err := catalog.NewTool(catalog.Tool{
		Name: "deliver", Workflow: "Deliver", TaskQueue: t.Name(),
		Status: &catalog.Status{Query: "progress", Message: "${query.state}", Done: "query.done", Total: "query.total"},
		Inputs: []catalog.Input{{
			Name: "address", Query: "progress", When: "query.state == 'addressing'", Once: true, Message: "Where to?",
			Schema: json.RawMessage(`{"type":"object","properties":{"City":{"type":"string"}},"required":["City"]}`),
			Accept: catalog.Effect{Update: "setCity"}, Decline: catalog.Effect{Cancel: true},
		}, {
			Name: "parcel", Query: "progress", When: "query.state == 'waiting'", Message: "Send parcel ${query.done + 1} of ${memo.customer}?",
			Schema:  json.RawMessage(`{"type":"object","properties":{"by":{"type":"string","enum":["bike","van"]}}}`),
			Accept:  catalog.Effect{Signal: "approve", Payload: json.RawMessage(`"by ${answer.by}"`)},
			Decline: catalog.Effect{Signal: "reject"},
		}},
	})
	require.NoError(t, err)
	return tool
}

// newViewed is a service whose catalog has one tool, and a worker.
func newViewed(t *testing.T, temporal client.Client, tool *catalog.Tool, runs ...any) *tasks.Service {
	t.Helper()
	t.Cleanup(startWorker(t, temporal, runs...))
	service, err := tasks.New(temporal, tasks.Options{Tool: func(name string) (*catalog.Tool, bool) { return tool, name == tool.Name }})
	require.NoError(t, err)
	require.NoError(t, service.Check(t.Context()))
	return service
}

// startDelivery starts Deliver.
func startDelivery(t *testing.T, service *tasks.Service, owner string, tool *catalog.Tool, parcels int) *tasks.Task {
	t.Helper()
	return create(t, service, owner, tasks.Start{Tool: tool, Call: catalog.Call{
		Arguments: []json.RawMessage{json.RawMessage(fmt.Sprint(parcels))},
		Memo:      map[string]json.RawMessage{"customer": json.RawMessage(`"Ada"`)},
	}})
}

// awaitKey waits until a task asks a question.
func awaitKey(t *testing.T, service *tasks.Service, owner, id, key string) *tasks.Task {
	t.Helper()
	for task, err := range service.Follow(t.Context(), owner, id, 0) {
		require.NoError(t, err)
		if _, open := task.InputRequests[key]; open {
			return task
		}
		require.False(t, task.Status.Terminal(), "%s ended as %s without asking %s", id, task.Status, key)
	}
	return nil
}

func answer(key, response string) map[string]json.RawMessage {
	return map[string]json.RawMessage{key: json.RawMessage(response)}
}

func TestAWorkflowThatKnowsNothingAsksAndTells(t *testing.T) {
	temporal := testenv.Client(t)
	tool := deliver(t)
	service, owner := newViewed(t, temporal, tool, Deliver), newOwner()
	id := startDelivery(t, service, owner, tool, 3).ID

	task := awaitKey(t, service, owner, id, "address-1")
	assert.Equal(t, tasks.InputRequired, task.Status)
	assert.Equal(t, "addressing", task.StatusMessage)
	assert.Equal(t, &signals.Progress{Done: 0, Total: 3}, task.Progress)
	assert.JSONEq(t, `{"mode":"form","message":"Where to?","requestedSchema":{"type":"object","properties":{"City":{"type":"string"}},"required":["City"]}}`,
		string(task.InputRequests["address-1"].Params))

	var invalid *tasks.InvalidInputError
	err := service.Answer(t.Context(), owner, id, answer("address-1", `{"action":"accept","content":{"City":7}}`))
	require.ErrorAs(t, err, &invalid)
	err = service.Answer(t.Context(), owner, id, answer("address-1", `{"action":"accept","content":{"City":"Atlantis"}}`))
	require.ErrorAs(t, err, &invalid, "the workflow rejects the update")
	assert.ErrorContains(t, err, "nobody delivers there")
	assert.Contains(t, get(t, service, owner, id).InputRequests, "address-1", "so that the question is still open")
	require.NoError(t, service.Answer(t.Context(), owner, id, answer("address-1", `{"action":"accept","content":{"City":"Oslo"}}`)))
	assert.NotContains(t, get(t, service, owner, id).InputRequests, "address-1")

	task = awaitKey(t, service, owner, id, "parcel-1")
	assert.Contains(t, string(task.InputRequests["parcel-1"].Params), `"message":"Send parcel 1 of Ada?"`)
	require.NoError(t, service.Answer(t.Context(), owner, id, answer("parcel-1", `{"action":"accept","content":{"by":"bike"}}`)))
	assert.NotContains(t, get(t, service, owner, id).InputRequests, "parcel-1", "the writer reads what it wrote")

	task = awaitKey(t, service, owner, id, "parcel-2")
	assert.Len(t, task.InputRequests, 1, "the same question, with a key of its own")
	assert.Equal(t, &signals.Progress{Done: 1, Total: 3}, task.Progress)
	require.NoError(t, service.Answer(t.Context(), owner, id, answer("parcel-1", `{"action":"decline"}`)), "an answer that comes again")
	require.NoError(t, service.Answer(t.Context(), owner, id, answer("parcel-2", `{"action":"decline"}`)))

	awaitKey(t, service, owner, id, "parcel-3")
	other := newViewed(t, temporal, tool) // another front end, which has seen nothing of it
	assert.Contains(t, get(t, other, owner, id).InputRequests, "parcel-3")
	require.NoError(t, other.Answer(t.Context(), owner, id, answer("parcel-3", `{"action":"accept","content":{}}`)))

	ended, err := service.Await(t.Context(), owner, id)
	require.NoError(t, err)
	assert.Equal(t, tasks.Completed, ended.Status)
	assert.Contains(t, string(ended.Result.Content[0]), `[\"by bike\",\"no\",\"by null\",\"Oslo\"]`)
}

// TestQuestionsOfSeveralRuns also accepts forms that have nothing to fill in as some clients do: without content.
func TestQuestionsOfSeveralRuns(t *testing.T) {
	temporal := testenv.Client(t)
	tool, err := catalog.NewTool(catalog.Tool{Name: "renew", Workflow: "Renew", TaskQueue: t.Name(), Inputs: []catalog.Input{{
		Name: "go", When: "true", Message: "Go on?", Accept: catalog.Effect{Signal: "next"}, Decline: catalog.Effect{Cancel: true},
	}}})
	require.NoError(t, err)
	service, owner := newViewed(t, temporal, tool, Renew), newOwner()
	id := create(t, service, owner, tasks.Start{Tool: tool, Call: catalog.Call{Arguments: []json.RawMessage{json.RawMessage("1")}}}).ID
	require.NoError(t, service.Answer(t.Context(), owner, id, answer("go-1", `{"action":"accept"}`)))
	second := ""
	require.Eventually(t, func() bool {
		for key := range get(t, service, owner, id).InputRequests {
			second = key
		}
		return strings.HasPrefix(second, "go-1-")
	}, soon, 50*time.Millisecond, "a run of its own has keys of its own")
	require.NoError(t, service.Answer(t.Context(), owner, id, answer(second, `{"action":"accept"}`)))
	ended, err := service.Await(t.Context(), owner, id)
	require.NoError(t, err)
	assert.Equal(t, tasks.Completed, ended.Status)
}

func TestADeclineCanCancel(t *testing.T) {
	temporal := testenv.Client(t)
	tool := deliver(t)
	service, owner := newViewed(t, temporal, tool, Deliver), newOwner()
	id := startDelivery(t, service, owner, tool, 1).ID
	awaitKey(t, service, owner, id, "address-1")
	require.NoError(t, service.Answer(t.Context(), owner, id, answer("address-1", `{"action":"decline"}`)))
	ended, err := service.Await(t.Context(), owner, id)
	require.NoError(t, err)
	assert.Equal(t, tasks.Cancelled, ended.Status)
}

func TestWithoutAWorkerNobodyWaitsForAQuery(t *testing.T) {
	temporal := testenv.Client(t)
	tool := deliver(t)
	service, err := tasks.New(temporal, tasks.Options{Tool: func(string) (*catalog.Tool, bool) { return tool, true }})
	require.NoError(t, err)
	owner := newOwner()
	id := startDelivery(t, service, owner, tool, 1).ID
	require.Eventually(t, func() bool {
		task := get(t, service, owner, id)
		return task.Status == tasks.Working && strings.Contains(task.StatusMessage, "waiting for a worker on task queue "+t.Name())
	}, soon, 200*time.Millisecond)

	t.Cleanup(startWorker(t, temporal, Deliver))
	assert.Equal(t, "addressing", awaitKey(t, service, owner, id, "address-1").StatusMessage, "the worker is noticed")
}

func TestAnAnswerToAQueryThatCannotBeReadIsToldOf(t *testing.T) {
	temporal := testenv.Client(t)
	tool := deliver(t)
	t.Cleanup(startWorker(t, temporal, Deliver))
	service, err := tasks.New(temporal, tasks.Options{
		DataConverter: touchy{converter.GetDefaultDataConverter(), "addressing"},
		Tool:          func(string) (*catalog.Tool, bool) { return tool, true },
	})
	require.NoError(t, err)
	owner := newOwner()
	id := startDelivery(t, service, owner, tool, 1).ID
	require.Eventually(t, func() bool {
		task := get(t, service, owner, id)
		return task.Status == tasks.Working && task.StatusMessage == "query progress: the answer cannot be read"
	}, soon, 50*time.Millisecond)
}
