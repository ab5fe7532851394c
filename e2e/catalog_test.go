package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"taskbridge/internal/testenv"
)

// startTools is a catalog that says everything it can of how workflows start. No worker has to run them.
const startTools = `version: 1
defaults: { taskQueue: nobody, executionTimeout: 1h }
tools:
  deploy:
    workflow: Deploy
    input:
      type: object
      properties: { service: { type: string }, ticket: { type: integer }, note: { type: string } }
      required: [service]
    idSuffix: "${args.service}"
    memo: { change: { service: "${args.service}", ticket: "${args.ticket}", note: "${args.note}" } }
    searchAttributes: { ATTRIBUTE: "${args.service}" }
    versioning: autoUpgrade
  invoice:
    workflow: Invoice
    dedupe: key
  follow:
    attach: { workflowId: "PREFIX-${args.date}-*" }
    input: { type: object, properties: { date: { type: string } }, required: [date] }
`

func TestWhatACatalogSaysOfAStart(t *testing.T) {
	temporal := testenv.Client(t)
	unique := "E" + strings.ReplaceAll(uuid.NewString(), "-", "")
	catalog := filepath.Join(t.TempDir(), "tools.yaml")
	text := strings.NewReplacer("ATTRIBUTE", unique, "PREFIX", unique).Replace(startTools)
	require.NoError(t, os.WriteFile(catalog, []byte(text), 0o600))

	refused := start(t, temporalEnv(t), binary(t, "cmd/taskbridge"), "serve", "--catalog", catalog, "--listen", "127.0.0.1:0")
	assert.Equal(t, 1, refused.wait())
	assert.Contains(t, refused.stderr.String(), "temporal operator search-attribute create --namespace default --name "+unique+" --type Keyword")
	_, err := temporal.OperatorService().AddSearchAttributes(t.Context(), &operatorservice.AddSearchAttributesRequest{
		Namespace:        client.DefaultNamespace,
		SearchAttributes: map[string]enumspb.IndexedValueType{unique: enumspb.INDEXED_VALUE_TYPE_KEYWORD},
	})
	require.NoError(t, err)
	_, c := startFrontEnd(t, catalog)

	id := createWith(t, c, "deploy", `{"service":"shop","ticket":9007199254740993}`)
	assert.True(t, strings.HasSuffix(id, "-shop"), id)
	described, err := temporal.DescribeWorkflow(t.Context(), "mcp:anonymous:"+id, "")
	require.NoError(t, err)
	info := described.RawResponse.GetWorkflowExecutionInfo()
	var memo json.RawMessage
	require.NoError(t, converter.GetDefaultDataConverter().FromPayload(info.GetMemo().GetFields()["change"], &memo))
	assert.Equal(t, `{"service":"shop","ticket":9007199254740993,"note":null}`, string(memo))
	var attribute string
	require.NoError(t, converter.GetDefaultDataConverter().FromPayload(info.GetSearchAttributes().GetIndexedFields()[unique], &attribute))
	assert.Equal(t, "shop", attribute)
	assert.NotNil(t, info.GetVersioningInfo().GetVersioningOverride())

	call := func(key string) string {
		outcome, err := c.CallOnce(t.Context(), "invoice", key, json.RawMessage(`{}`), nil)
		require.NoError(t, err)
		require.NotNil(t, outcome.Task)
		return outcome.Task.ID
	}
	first := call("a")
	assert.Equal(t, first, call("a"))
	assert.NotEqual(t, first, call("b"))
	assert.NotEqual(t, call(""), call(""))

	for _, name := range []string{"-2026-11-30-1", "-2026-11-30-2", "-2026-12-01-1"} {
		_, err := temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: unique + name, TaskQueue: "nobody"}, "Backfill")
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		outcome, err := c.Call(t.Context(), "follow", json.RawMessage(`{"date":"2026-11-30"}`), nil)
		return err == nil && outcome.Task != nil && strings.HasSuffix(outcome.Task.ID, ":"+unique+"-2026-11-30-2")
	}, patience, 100*time.Millisecond, "the newest of that day, once visibility has it")
	outcome, err := c.Call(t.Context(), "follow", json.RawMessage(`{"date":"x:y"}`), nil)
	require.NoError(t, err)
	require.NotNil(t, outcome.Result)
	assert.True(t, outcome.Result.IsError)
	assert.Contains(t, string(outcome.Result.Raw), `attach.workflowId: ${args.date} is \"x:y\", and this part of a workflow ID is one or more letters`)
}
