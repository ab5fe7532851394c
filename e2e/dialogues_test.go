package e2e_test

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// event is what a client is told during a call: a question, or progress.
type event struct {
	Question        string
	Progress, Total float64
	Message         string
}

// assertReleaseEvents asserts what is told during a call of the tool release: progress, one question and progress, which
// rises over all of it, although in the modern era the answer is sent with a new call.
func assertReleaseEvents(t testing.TB, events []event) {
	t.Helper()
	questions, asking := 0, false
	last := -1.0
	for _, e := range events {
		if e.Question != "" {
			assert.Equal(t, "Publish where?", e.Question)
			questions++
			continue
		}
		assert.Equal(t, 3.0, e.Total, "steps")
		assert.Greater(t, e.Progress, last, "progress rises")
		assert.LessOrEqual(t, e.Progress, e.Total)
		last = e.Progress
		if strings.Contains(e.Message, "approve (2/3)") {
			asking = true
			assert.GreaterOrEqual(t, e.Progress, 1.0, "one step is done")
			assert.Less(t, e.Progress, 2.0)
		}
	}
	assert.Equal(t, 1, questions)
	assert.True(t, asking, "progress of the step that asks: %+v", events)
}

func assertReleased(t testing.TB, got result) {
	t.Helper()
	assert.Nil(t, got.Error)
	assert.False(t, got.IsError)
	assert.Contains(t, got.text(), "1.2 is published as beta")
}

// overStdin is a transport to a command that the SDK starts and ends. It asserts how the command ends.
func overStdin(t testing.TB, f frontEnd) mcp.Transport {
	t.Helper()
	command := exec.Command(f.target[0], f.target[1:]...)
	command.Env = append(environment(), f.env...)
	stderr := &output{}
	command.Stderr = stderr
	t.Cleanup(func() {
		assert.Zero(t, command.ProcessState.ExitCode())
		assert.Empty(t, stderr.String())
	})
	return &mcp.CommandTransport{Command: command, TerminateDuration: patience}
}

func (f frontEnd) goTransport(t testing.TB) mcp.Transport {
	t.Helper()
	if f.overStdio() {
		return overStdin(t, f)
	}
	return overHTTP(f.target[0])
}

func TestGoSDKFollowsAndAnswersACall(t *testing.T) {
	for kind, front := range frontEnds(t) {
		for _, version := range []string{modernEra, legacyEra} {
			t.Run(kind+" "+version, func(t *testing.T) {
				var mu sync.Mutex
				var events []event
				record := func(e event) {
					mu.Lock()
					defer mu.Unlock()
					events = append(events, e)
				}
				session := goClient(t, front.goTransport(t), version, &mcp.ClientOptions{
					ElicitationHandler: func(_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						record(event{Question: request.Params.Message})
						return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"channel": "beta"}}, nil
					},
					ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
						assert.Equal(t, "release-1", request.Params.ProgressToken)
						record(event{Progress: request.Params.Progress, Total: request.Params.Total, Message: request.Params.Message})
					},
				})

				params := &mcp.CallToolParams{Name: "release", Arguments: map[string]any{"version": "1.2"}}
				params.SetProgressToken("release-1")
				assertReleased(t, callGoWith(t, session, params))

				mu.Lock()
				defer mu.Unlock()
				assertReleaseEvents(t, events)
			})
		}
	}
}

func TestTypeScriptSDKFollowsAndAnswersACall(t *testing.T) {
	for kind, front := range frontEnds(t) {
		for _, sdk := range []string{"v1", "v2"} {
			t.Run(kind+" "+sdk, func(t *testing.T) {
				script := node(t, front.env, "typescript_calls.mjs", append([]string{sdk}, front.target...)...)
				require.Zero(t, script.wait())
				seen := decode[struct {
					Result result
					Events []event
				}](t, script.stdout.String())

				assertReleased(t, seen.Result)
				assertReleaseEvents(t, seen.Events)
			})
		}
	}
}
