package draft

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestToolName(t *testing.T) {
	for workflow, wanted := range map[string]string{
		"OrderWorkflow":          "order_workflow",
		"nightlyLoad":            "nightly_load",
		"HTTPServerCheck2":       "http_server_check2",
		"com.acme.Orders$Place":  "com_acme_orders_place",
		"already_snake":          "already_snake",
		"kebab-case":             "kebab_case",
		"TaskWait":               "task_wait_tool",
		"Überprüfung":            "berpr_fung",
		"受注":                     "tool",
		strings.Repeat("a", 300): strings.Repeat("a", 128),
	} {
		assert.Equal(t, wanted, toolName(workflow))
	}
}
