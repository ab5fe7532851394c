package mcpbridge_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestImports holds the rule that makes workflows in other languages first-class: the front end knows workflows by the
// contract in signals/ alone.
func TestImports(t *testing.T) {
	for pkg, allowed := range map[string][]string{
		"taskbridge/mcpbridge": {"taskbridge/mcpbridge", "taskbridge/signals"},
		"taskbridge/workflows": {"taskbridge/workflows", "taskbridge/signals", "taskbridge/activities", "taskbridge/internal/procgroup"},
		"taskbridge/signals":   {"taskbridge/signals"},
	} {
		list, err := exec.Command("go", "list", "-deps", pkg+"/...").Output()
		require.NoError(t, err)
		for _, dependency := range strings.Fields(string(list)) {
			if !strings.HasPrefix(dependency, "taskbridge/") {
				continue
			}
			ok := false
			for _, prefix := range allowed {
				ok = ok || dependency == prefix || strings.HasPrefix(dependency, prefix+"/")
			}
			require.True(t, ok, "%s imports %s", pkg, dependency)
		}
	}
}
