package e2e_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// coreRun is what a client of the tasks of 2025-11-25 saw of one.
type coreRun struct {
	Task                      string
	Types, Statuses, Messages []string
	Progress                  []event
	Result, ResultAgain       result
	Error                     *struct{ Message string }
	Final                     struct {
		TaskID, Status    string
		TTL, PollInterval int64 // milliseconds
	}
}

func TestTypeScriptSDKRunsCoreTasks(t *testing.T) {
	for kind, front := range frontEnds(t) {
		t.Run(kind, func(t *testing.T) {
			script := node(t, front.env, "typescript_core_tasks.mjs", front.target...)
			require.Zero(t, script.wait())
			seen := decode[struct {
				Capability              json.RawMessage
				Support                 map[string]string
				Tasks                   map[string]coreRun
				Synchronous             result
				Unknown, CancelledTwice result
				Questions               []struct{ Message, Task string }
				Listed                  []string
				Pushed                  map[string][]string
			}](t, script.stdout.String())

			assert.JSONEq(t, `{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`, string(seen.Capability))
			assert.Equal(t, "optional", seen.Support["echo"])
			assert.Equal(t, "required", seen.Support["backup"])
			assert.Contains(t, seen.Synchronous.text(), "a b")
			seen.Unknown.assertError(t, codeInvalidParams, "not found")
			seen.CancelledTwice.assertError(t, codeInvalidParams, "cancelled")
			asked := seen.Tasks["asked"]
			assert.Equal(t, []struct{ Message, Task string }{{"Publish where?", asked.Task}}, seen.Questions)

			for name, want := range map[string]struct {
				types   []string
				status  string
				text    string
				isError bool
			}{
				"completed": {[]string{"taskCreated", "taskStatus", "result"}, "completed", "a b", false},
				"asked":     {[]string{"taskCreated", "taskStatus", "result"}, "completed", "1.2 is published as beta", false},
				"failed":    {[]string{"taskCreated", "taskStatus", "error"}, "failed", "exit status 1", true},
				"required":  {[]string{"taskCreated", "taskStatus", "result"}, "completed", "saved", false},
				"cancelled": {[]string{"taskCreated", "taskStatus", "error"}, "cancelled", "cancelled", true},
			} {
				t.Run(name, func(t *testing.T) {
					got := seen.Tasks[name]
					assert.Equal(t, want.types, got.Types)
					assert.Equal(t, want.status, got.Final.Status)
					assert.Equal(t, got.Task, got.Final.TaskID)
					assert.EqualValues(t, 600_000, got.Final.TTL)
					assert.EqualValues(t, 200, got.Final.PollInterval)
					assert.Contains(t, got.ResultAgain.text(), want.text)
					assert.Equal(t, want.isError, got.ResultAgain.IsError)
					if want.isError {
						require.NotNil(t, got.Error)
						assert.Contains(t, got.Error.Message, got.Task)
					} else {
						assert.Equal(t, got.ResultAgain.text(), got.Result.text())
					}
					assert.Contains(t, seen.Listed, got.Task)
					pushed := seen.Pushed[got.Task]
					assert.Equal(t, len(pushed)-1, slices.Index(pushed, want.status), "the end is told once and last: %v", pushed)
				})
			}
			assert.Equal(t, []string{"working", "input_required"}, asked.Statuses)
			assert.Contains(t, asked.Messages, "approve (2/3)")
			assert.Contains(t, seen.Pushed[asked.Task], "input_required")
			assert.True(t, slices.ContainsFunc(asked.Progress, func(e event) bool { return e.Message == "approve (2/3)" && e.Total == 3 }), "%+v", asked.Progress)
		})
	}
}

func TestTypeScriptTasksClientRunsCoreTasks(t *testing.T) {
	for kind, front := range frontEnds(t) {
		t.Run(kind, func(t *testing.T) {
			script := node(t, front.env, "typescript_ext_core_tasks.mjs", front.target...)
			require.Zero(t, script.wait())
			type execution struct {
				Kind, Status, Message string
				Result                result
			}
			seen := decode[map[string]execution](t, script.stdout.String())
			for name, want := range map[string]struct{ status, text, message string }{
				"completed": {status: "completed", text: "a b"},
				"required":  {status: "completed", text: "saved"},
				"failed":    {status: "failed", message: "exit status 1"},
				"cancelled": {status: "cancelled"},
			} {
				t.Run(name, func(t *testing.T) {
					got := seen[name]
					assert.Equal(t, "task", got.Kind)
					assert.Equal(t, want.status, got.Status)
					assert.Contains(t, got.Result.text(), want.text)
					assert.Contains(t, got.Message, want.message)
				})
			}
		})
	}
}
