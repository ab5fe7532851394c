package main

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

func TestDialogueAsksRoundByRound(t *testing.T) {
	session := connect(t, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			answers := map[string]string{
				"Step 1: What is your name?":           "name",
				"Step 2: What is your favorite color?": "color",
			}
			field := answers[req.Params.Message]
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{field: "my " + field}}, nil
		},
	})
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "test_input_required_result_multi_round"})
	require.NoError(t, err)
	require.Equal(t, []mcp.Content{text("my name likes my color.")}, result.Content)
}

func TestDialogueNamesTheMissingCapability(t *testing.T) {
	session := connect(t, nil)
	_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "test_missing_capability"})
	var rpcErr *jsonrpc.Error
	require.ErrorAs(t, err, &rpcErr)
	require.EqualValues(t, mcp.CodeMissingRequiredClientCapabilities, rpcErr.Code)
	require.JSONEq(t, `{"requiredCapabilities": {"sampling": {}}}`, string(rpcErr.Data))
}

func TestStateOpensOnlyWhereItBelongs(t *testing.T) {
	seal := newSealer()
	answers := map[string]string{"step1": "Alice"}
	state := seal.close("greeting", answers)

	opened, err := seal.open("greeting", state)
	require.NoError(t, err)
	require.Equal(t, answers, opened)

	for name, open := range map[string]func() (map[string]string, error){
		"changed":            func() (map[string]string, error) { return seal.open("greeting", state+"-TAMPERED") },
		"of another process": func() (map[string]string, error) { return newSealer().open("greeting", state) },
		"of another tool":    func() (map[string]string, error) { return seal.open("payment", state) },
		"made up":            func() (map[string]string, error) { return seal.open("greeting", "e30") },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open()
			require.ErrorContains(t, err, "issued")
		})
	}
}

func connect(t *testing.T, opts *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "fixtures", Version: "0"}, serverOptions())
	addBaseFixtures(server)
	serverSide, clientSide := mcp.NewInMemoryTransports()
	_, err := server.Connect(t.Context(), serverSide, nil)
	require.NoError(t, err)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "0"}, opts).Connect(t.Context(), clientSide, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, session.Close()) })
	return session
}
