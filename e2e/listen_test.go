package e2e_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTypeScriptSDKListensToTasks: what is pushed is what the official schemas of the Tasks extension say.
func TestTypeScriptSDKListensToTasks(t *testing.T) {
	for kind, front := range frontEnds(t) {
		t.Run(kind, func(t *testing.T) {
			script := node(t, front.env, "typescript_listen.mjs", front.target...)
			require.Zero(t, script.wait())
			type filter struct {
				TaskIDs          []string
				ToolsListChanged bool
			}
			seen := decode[struct {
				TaskID, Closed string
				Acknowledged   map[string]filter
				Honored        filter
				Pushed         map[string][]json.RawMessage
				Read           json.RawMessage
			}](t, script.stdout.String())

			assert.Equal(t, map[string]filter{
				"listen:0": {TaskIDs: []string{seen.TaskID}},
				"listen:1": {TaskIDs: []string{seen.TaskID}, ToolsListChanged: true},
			}, seen.Acknowledged)
			assert.True(t, seen.Honored.ToolsListChanged)
			assert.Equal(t, "graceful", seen.Closed)
			for id, pushed := range seen.Pushed {
				assert.GreaterOrEqual(t, len(pushed), 2, id)
				assert.JSONEq(t, string(seen.Read), string(pushed[len(pushed)-1]), "the last is what tasks/get says")
			}
			assert.Contains(t, string(seen.Read), "1.2 is published as beta")
		})
	}
}
