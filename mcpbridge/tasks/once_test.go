package tasks_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/tasks"
)

// TestArgumentsDigest: a confirmation, and a task that calls share, is bound to what the workflow will get, digit by digit.
func TestArgumentsDigest(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":[2]}`, `{ "b": [ 2 ], "a": 1 }`, true},
		{``, `{}`, true},
		{`{"s":"\u00e9"}`, `{"s":"é"}`, true},
		{`{"n":9007199254740992}`, `{"n":9007199254740993}`, false},
		{`{"n":1.0}`, `{"n":1.00000000000000000001}`, false},
		{`{"a":1}`, `{"a":"1"}`, false},
	} {
		a, err := tasks.ArgumentsDigest([]byte(test.a))
		require.NoError(t, err)
		b, err := tasks.ArgumentsDigest([]byte(test.b))
		require.NoError(t, err)
		assert.Equal(t, test.same, string(a) == string(b), "%s and %s", test.a, test.b)
	}
}

// newOnce is the start of a task that repeated calls share.
func newOnce(t *testing.T, by catalog.DedupeMode, arguments string) tasks.Start {
	tool := newTool(t, "Stubborn")
	tool.Dedupe = &catalog.Dedupe{By: by}
	return tasks.Start{Tool: tool, Given: json.RawMessage(arguments)}
}

func TestRepeatedCallsShareATaskWhileItRuns(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal, Stubborn), newOwner()
	first := create(t, service, owner, newOnce(t, catalog.DedupeArguments, `{"a":1,"b":2}`))
	assert.Equal(t, first.ID, create(t, service, owner, newOnce(t, catalog.DedupeArguments, `{"b":2, "a":1}`)).ID)
	assert.True(t, tasks.Shared(first.ID))

	others := map[string]*tasks.Task{
		"other arguments": create(t, service, owner, newOnce(t, catalog.DedupeArguments, `{"a":1,"b":3}`)),
		"another caller":  create(t, service, newOwner(), newOnce(t, catalog.DedupeArguments, `{"a":1,"b":2}`)),
	}
	for name, other := range others {
		assert.NotEqual(t, first.ID, other.ID, name)
	}
	_, err := service.Get(t.Context(), newOwner(), first.ID)
	assert.ErrorIs(t, err, tasks.ErrNotFound)

	digest := strings.Split(first.ID, ":")[1]
	signal(t, temporal, owner, "once:"+digest, "next")
	ended, err := service.Await(t.Context(), owner, first.ID)
	require.NoError(t, err)
	assert.Equal(t, tasks.Completed, ended.Status)

	second := create(t, service, owner, newOnce(t, catalog.DedupeArguments, `{"a":1,"b":2}`))
	assert.NotEqual(t, first.ID, second.ID, "it has ended")
	assert.Equal(t, tasks.Completed, get(t, service, owner, first.ID).Status, "and is still there")
	assert.Equal(t, tasks.Working, get(t, service, owner, second.ID).Status)
}

func TestRepeatedCallsShareACompletedTaskIfTheToolSaysSo(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal, Stubborn), newOwner()
	start := newOnce(t, catalog.DedupeArguments, `{}`)
	start.Tool.Dedupe.AfterCompletion = true
	start.Tool.Cancel = catalog.CancelTerminate

	cancelled := create(t, service, owner, start)
	require.NoError(t, service.Cancel(t.Context(), owner, cancelled.ID))
	first := create(t, service, owner, start)
	assert.NotEqual(t, cancelled.ID, first.ID, "one that did not complete is started again")

	signal(t, temporal, owner, "once:"+strings.Split(first.ID, ":")[1], "next")
	_, err := service.Await(t.Context(), owner, first.ID)
	require.NoError(t, err)
	assert.Equal(t, first.ID, create(t, service, owner, start).ID)

	require.NoError(t, service.Delete(t.Context(), owner, first.ID))
	assert.NotEqual(t, first.ID, create(t, service, owner, start).ID, "it has been deleted")
	assert.Equal(t, tasks.Cancelled, get(t, service, owner, cancelled.ID).Status, "others have not")
}

func TestAnExpiredTaskIsSharedByNobody(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal, Stubborn), newOwner()
	start := newOnce(t, catalog.DedupeArguments, `{}`)
	start.Tool.Dedupe.AfterCompletion = true
	start.KeepAlive = new(time.Duration(0))
	first := create(t, service, owner, start)
	signal(t, temporal, owner, "once:"+strings.Split(first.ID, ":")[1], "next")
	_, err := service.Await(t.Context(), owner, first.ID)
	require.NoError(t, err)
	assert.NotEqual(t, first.ID, create(t, service, owner, start).ID)
}

func TestAnIdempotencyKeyNamesACall(t *testing.T) {
	service, owner := newService(t, testenv.Client(t)), newOwner()
	with := func(key, arguments string) tasks.Start {
		start := newOnce(t, catalog.DedupeKey, arguments)
		start.IdempotencyKey = key
		return start
	}
	first := create(t, service, owner, with("k", `{"a":1}`))
	assert.Equal(t, first.ID, create(t, service, owner, with("k", `{"a":1}`)).ID)
	assert.NotEqual(t, first.ID, create(t, service, owner, with("l", `{"a":1}`)).ID)
	assert.False(t, tasks.Shared(create(t, service, owner, with("", `{"a":1}`)).ID), "calls without one are all different")

	_, err := service.Create(t.Context(), owner, with("k", `{"a":2}`))
	assert.EqualError(t, err, `taskbridge/idempotencyKey "k" has been used with other arguments: use a new key for another call`)
	_, err = service.Create(t.Context(), owner, with(strings.Repeat("k", 256), `{}`))
	assert.EqualError(t, err, `taskbridge/idempotencyKey has 256 bytes: at most 255 are allowed`)
}

func TestSharedTasksAreListed(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal), newOwner()
	start := newOnce(t, catalog.DedupeArguments, `{}`)
	start.Tool.Cancel = catalog.CancelTerminate
	first := create(t, service, owner, start)
	require.NoError(t, service.Cancel(t.Context(), owner, first.ID))
	second := create(t, service, owner, start)
	assert.Equal(t, [][]string{{second.ID, first.ID}}, listAll(t, service, owner, 10))
	require.Eventually(t, func() bool { // and by visibility
		pages := listAll(t, newService(t, temporal), owner, 10)
		return len(pages) == 1 && assert.ObjectsAreEqual([]string{second.ID, first.ID}, pages[0])
	}, soon, 100*time.Millisecond)
}

func TestClientsCannotMakeTheIDsOfSharedTasks(t *testing.T) {
	service := newService(t, testenv.Client(t))
	for _, id := range []string{"once:x", "attached:tool:run:workflow"} {
		_, err := service.Create(t.Context(), newOwner(), tasks.Start{ID: id, New: true, Tool: newTool(t, "Nap")})
		assert.EqualError(t, err, "the task ID must not begin with attached: or once:")
	}
}
