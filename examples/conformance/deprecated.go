//nolint:staticcheck // SEP-2577 deprecates roots, sampling and logging, and the suite still wants them: all uses are here.
//lint:file-ignore SA1019 the same for staticcheck alone
package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// logInfo logs the messages, a little apart. The SDK drops them unless the client has asked for that level.
func logInfo(ctx context.Context, req *mcp.CallToolRequest, messages ...string) error {
	for _, message := range messages {
		if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: message}); err != nil {
			return fmt.Errorf("log %q: %w", message, err)
		}
		if err := pause(ctx, stepPause); err != nil {
			return err
		}
	}
	return nil
}

func declares(can *mcp.ClientCapabilities, capability string) bool {
	if can == nil {
		return false
	}
	switch capability {
	case "elicitation":
		return can.Elicitation != nil
	case "sampling":
		return can.Sampling != nil
	case "roots":
		return can.RootsV2 != nil
	}
	return false
}

// completion asks the client's model; the answer is the text of its message.
func completion(prompt string) question {
	return question{
		capability: "sampling",
		request: func() mcp.InputRequest {
			return &mcp.CreateMessageParams{
				MaxTokens: 100,
				Messages:  []*mcp.SamplingMessage{{Role: "user", Content: text(prompt)}},
			}
		},
		read: func(response mcp.InputResponse) (string, bool) {
			result, ok := response.(*mcp.CreateMessageWithToolsResult)
			if !ok {
				return "", false
			}
			return joinTexts(result.Content), true
		},
	}
}

// roots asks for the client's roots; the answer is their URIs.
func roots() question {
	return question{
		capability: "roots",
		request:    func() mcp.InputRequest { return &mcp.ListRootsParams{} },
		read: func(response mcp.InputResponse) (string, bool) {
			result, ok := response.(*mcp.ListRootsResult)
			if !ok {
				return "", false
			}
			uris := make([]string, len(result.Roots))
			for i, root := range result.Roots {
				uris[i] = root.URI
			}
			return strings.Join(uris, ", "), true
		},
	}
}

func joinTexts(contents []mcp.Content) string {
	var texts []string
	for _, content := range contents {
		if t, ok := content.(*mcp.TextContent); ok {
			texts = append(texts, t.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func withLogging() *mcp.ServerCapabilities {
	return &mcp.ServerCapabilities{Logging: &mcp.LoggingCapabilities{}}
}
