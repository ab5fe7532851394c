package tasks

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"taskbridge/signals"
)

// TestAskingKeepsTheRest: a field that is added to Task is one that asking has to keep.
func TestAskingKeepsTheRest(t *testing.T) {
	kept := reflect.TypeFor[Task]().NumField() - len([]string{"Result", "Error", "Undetermined", "encodings"}) // not of running tasks
	assert.Equal(t, 23, kept)
	ttl := time.Minute
	task := &Task{
		ID: "id", Tool: "tool", Dialect: "dialect", Status: InputRequired, StatusMessage: "message", Progress: &signals.Progress{Done: 1},
		TTL: &ttl, KeepAlive: 1, PollInterval: 2, InputRequests: map[string]signals.InputRequest{"a": {}, "b": {}}, Queued: true,
		CancelRequested: true, runID: "run", firstRun: true, lastEvent: 7, viewed: true, mark: 9,
	}
	left := task.asking(map[string]signals.InputRequest{"b": {}})
	assert.Len(t, left.InputRequests, 1)
	left.InputRequests = task.InputRequests
	assert.Equal(t, task, left)
	assert.Equal(t, Working, task.asking(nil).Status)
}
