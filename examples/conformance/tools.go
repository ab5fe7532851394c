package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stepPause keeps the notifications of one call apart, so that the suite sees them arrive one by one.
const stepPause = 50 * time.Millisecond

// addStreamTools adds the tools whose calls send more than a result.
func addStreamTools(server *mcp.Server) {
	mcp.AddTool(server, &mcp.Tool{Name: "test_tool_with_progress", Description: "Reports progress 0, 50 and 100 of 100."},
		func(ctx context.Context, req *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
			return textResult("Done."), nil, reportProgress(ctx, req, 0, 50, 100)
		})
	mcp.AddTool(server, &mcp.Tool{Name: "test_tool_with_logging", Description: "Logs three messages at level info."},
		func(ctx context.Context, req *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
			return textResult("Done."), nil, logInfo(ctx, req,
				"Tool execution started", "Tool processing data", "Tool execution completed")
		})
	mcp.AddTool(server, &mcp.Tool{Name: "test_logging_tool", Description: "Logs one message, if the request asks for a log level."},
		func(ctx context.Context, req *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
			return textResult("Done."), nil, logInfo(ctx, req, "Tool executed")
		})
	mcp.AddTool(server, &mcp.Tool{Name: "test_reconnection", Description: "Closes the response stream and answers on the next one."},
		reconnect)
}

func reportProgress(ctx context.Context, req *mcp.CallToolRequest, steps ...float64) error {
	token := req.Params.GetProgressToken()
	for _, step := range steps {
		if token != nil {
			err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: step, Total: 100,
			})
			if err != nil {
				return fmt.Errorf("report progress %v: %w", step, err)
			}
		}
		if err := pause(ctx, stepPause); err != nil {
			return err
		}
	}
	return nil
}

// reconnect gives the client (SEP-1699) time to come back with Last-Event-ID, so that the result finds the new stream.
// Protocol 2026-07-28 has no such reconnection and the SDK leaves the stream open there.
func reconnect(ctx context.Context, req *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
	if req.Extra != nil && req.Extra.CloseSSEStream != nil {
		req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: stepPause})
	}
	return textResult("You came back."), nil, pause(ctx, 4*stepPause)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// addSchemaTools adds the tools whose input schema is what matters: the suite looks for its keywords in tools/list.
func addSchemaTools(server *mcp.Server) {
	for _, tool := range []struct{ name, description, schema string }{
		{"json_schema_2020_12_tool", "Has an input schema with JSON Schema 2020-12 keywords (SEP-1613, SEP-2106).", `{
			"$schema": "https://json-schema.org/draft/2020-12/schema",
			"type": "object",
			"$defs": {
				"address": {"$anchor": "address", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}
			},
			"properties": {
				"name": {"type": "string"},
				"address": {"$ref": "#/$defs/address"},
				"reachBy": {"enum": ["phone", "email"]},
				"phone": {"type": "string"},
				"email": {"type": "string"}
			},
			"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
			"if": {"required": ["reachBy"], "properties": {"reachBy": {"const": "phone"}}},
			"then": {"required": ["phone"]},
			"else": {"required": ["email"]},
			"additionalProperties": false
		}`},
		{"test_custom_header", "Takes an argument which clients repeat in the header Mcp-Param-Region (SEP-2243).", `{
			"type": "object",
			"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}
		}`},
	} {
		mcp.AddTool(server, &mcp.Tool{Name: tool.name, Description: tool.description, InputSchema: json.RawMessage(tool.schema)},
			func(_ context.Context, req *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
				return textResult("Arguments: " + string(req.Params.Arguments)), nil, nil
			})
	}
}

// addChangeTools adds the tools which change a list, so that subscribers hear of it. Each adds an entry and takes it away
// again: the SDK announces both with one notification, and the next reader finds the list as it was.
func addChangeTools(server *mcp.Server) {
	const fleeting = "test_fleeting"
	mcp.AddTool(server, &mcp.Tool{Name: "test_trigger_tool_change", Description: "Changes the list of tools."},
		func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
			server.AddTool(&mcp.Tool{Name: fleeting, InputSchema: json.RawMessage(`{"type": "object"}`)},
				func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return textResult(""), nil })
			server.RemoveTools(fleeting)
			return textResult("The list of tools has changed."), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "test_trigger_prompt_change", Description: "Changes the list of prompts."},
		func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
			server.AddPrompt(&mcp.Prompt{Name: fleeting}, prompt())
			server.RemovePrompts(fleeting)
			return textResult("The list of prompts has changed."), nil, nil
		})
}
