package tasks_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/internal/testenv"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/tasks"
)

// kept is how long the dev server keeps closed workflows.
const kept = 24 * time.Hour

func TestLifetimes(t *testing.T) {
	const (
		retention = time.Hour
		week      = 7 * 24 * time.Hour
	)
	for name, test := range map[string]struct {
		timeout        time.Duration
		ttl, keepAlive *time.Duration
		// What a task reports while it is live, and for how long after its end it can be read.
		live    *time.Duration
		alive   time.Duration
		atLeast time.Duration
	}{
		"nothing asked":                     {0, nil, nil, nil, retention, retention},
		"nothing asked, with a timeout":     {time.Minute, nil, nil, new(time.Minute + retention), retention, retention},
		"to keep for a while":               {time.Minute, nil, new(time.Second), new(time.Minute + time.Second), time.Second, time.Second},
		"to keep for no time":               {time.Minute, nil, new(time.Duration(0)), new(time.Minute), 0, 0},
		"to keep for longer than possible":  {time.Minute, nil, new(10 * kept), new(time.Minute + kept), kept, kept},
		"a lifetime":                        {0, new(2 * time.Hour), nil, new(2 * time.Hour), retention, 2*time.Hour - time.Minute},
		"no lifetime at all":                {0, new(time.Duration(0)), nil, new(time.Duration(0)), retention, time.Minute},
		"a lifetime beyond the timeout":     {time.Minute, new(10 * kept), nil, new(time.Minute + kept), retention, kept},
		"a lifetime beyond a week":          {0, new(1000 * kept), nil, new(week + kept), retention, kept},
		"a lifetime and to keep for longer": {0, new(time.Hour), new(2 * time.Hour), new(time.Hour), 2 * time.Hour, time.Hour - time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			temporal := testenv.Client(t)
			service, owner := newService(t, temporal), newOwner()
			tool := newTool(t, "Nap")
			tool.Retention, tool.ExecutionTimeout, tool.Cancel = retention, test.timeout, catalog.CancelTerminate
			created := create(t, service, owner, tasks.Start{Tool: tool, TTL: test.ttl, KeepAlive: test.keepAlive})
			for when, task := range map[string]*tasks.Task{"created": created, "live": get(t, service, owner, created.ID)} {
				assert.Equal(t, test.live, task.TTL, when)
				assert.Equal(t, test.alive, task.KeepAlive, when)
			}
			require.NoError(t, service.Cancel(t.Context(), owner, created.ID))
			if test.atLeast == 0 {
				_, err := service.Get(t.Context(), owner, created.ID)
				assert.ErrorIs(t, err, tasks.ErrNotFound)
				return
			}
			closed := get(t, service, owner, created.ID)
			readable := created.CreatedAt.Add(*closed.TTL).Sub(closed.UpdatedAt)
			assert.InDelta(t, test.atLeast, readable, float64(time.Minute))
			assert.GreaterOrEqual(t, readable, test.atLeast)
		})
	}
}

func TestNegativeLifetimesAreRefused(t *testing.T) {
	service, owner := newService(t, testenv.Client(t)), newOwner()
	for says, start := range map[string]tasks.Start{
		"the TTL is -1ns: it has to be 0 or more":                                {TTL: new(time.Duration(-1))},
		"the time to keep the task after its end is -1s: it has to be 0 or more": {KeepAlive: new(-time.Second)},
	} {
		start.Tool = newTool(t, "Nap")
		_, err := service.Create(t.Context(), owner, start)
		var invalid *tasks.InvalidInputError
		require.ErrorAs(t, err, &invalid)
		assert.EqualError(t, err, says)
	}
}

func TestALiveTaskOutlivesItsLifetime(t *testing.T) {
	temporal := testenv.Client(t)
	service, owner := newService(t, temporal), newOwner()
	task := create(t, service, owner, tasks.Start{Tool: newTool(t, "Stubborn"), TTL: new(time.Millisecond), KeepAlive: new(time.Duration(0))})
	require.Eventually(t, func() bool { return time.Since(task.CreatedAt) > time.Second }, soon, 10*time.Millisecond)
	assert.Equal(t, tasks.Working, get(t, service, owner, task.ID).Status)
	defer startWorker(t, temporal, Stubborn)()
	signal(t, temporal, owner, task.ID, "next")
	ended, err := service.Await(t.Context(), owner, task.ID)
	require.NoError(t, err)
	lived := ended.UpdatedAt.Sub(ended.CreatedAt)
	assert.Equal(t, lived+time.Minute, *ended.TTL, "its end can be read for a minute")
}
