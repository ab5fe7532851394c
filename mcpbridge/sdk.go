package mcpbridge

import (
	"context"
	stdjson "encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/tasks"
)

// newServer is the go-sdk server for the base protocol: discovery, lists, prompts, resources, tools that are no
// workflows, and the sessions of earlier eras.
func newServer(o Options) *mcp.Server {
	var options mcp.ServerOptions
	if o.ServerOptions != nil {
		options = *o.ServerOptions
	}
	capabilities := &mcp.ServerCapabilities{}
	if options.Capabilities != nil {
		*capabilities = *options.Capabilities
	}
	capabilities.AddExtension(tasksExtension, nil)
	options.Capabilities = capabilities
	server := mcp.NewServer(o.Implementation, &options)
	server.AddReceivingMiddleware(recoverPanics(o.Logger))
	return server
}

// recoverPanics answers a panicking handler with an error. The SDK has no recover of its own and runs handlers on its
// own goroutines, so a panic would end the process.
func recoverPanics(log *slog.Logger) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, request mcp.Request) (result mcp.Result, err error) {
			defer func() {
				if cause := recover(); cause != nil {
					log.Error("request handler panicked", "method", method, "error", cause, "stack", string(debug.Stack()))
					result, err = nil, &jsonrpc.Error{Code: rpc.CodeInternalError, Message: "internal error"}
				}
			}()
			return next(ctx, method, request)
		}
	}
}

// statelessHandler serves modern requests, sessionHandler those of earlier eras. One handler of the SDK cannot do both.
func statelessHandler(server *mcp.Server) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless:                    true,
		MaxRequestBodyBytes:          -1, // read and bounded before
		DisableLocalhostProtection:   true,
		PropagateRequestCancellation: true,
	})
}

func sessionHandler(server *mcp.Server) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		EventStore:                 mcp.NewMemoryEventStore(nil),
		MaxRequestBodyBytes:        -1,
		SessionTimeout:             sessionTimeout,
		DisableLocalhostProtection: true,
	})
}

// describeTool is a tool as tools/list shows it.
func describeTool(tool *catalog.Tool) *mcp.Tool {
	described := &mcp.Tool{
		Name:        tool.Name,
		Title:       tool.Title,
		Description: tool.Description,
		InputSchema: tool.InputSchema,
	}
	if tool.OutputSchema != nil {
		described.OutputSchema = tool.OutputSchema
	}
	if hints := tool.Annotations; hints != nil {
		described.Annotations = &mcp.ToolAnnotations{
			ReadOnlyHint:    hints.ReadOnlyHint != nil && *hints.ReadOnlyHint,
			DestructiveHint: hints.DestructiveHint,
			IdempotentHint:  hints.IdempotentHint != nil && *hints.IdempotentHint,
			OpenWorldHint:   hints.OpenWorldHint,
		}
	}
	for _, icon := range tool.Icons {
		described.Icons = append(described.Icons, mcp.Icon{
			Source: icon.Src, MIMEType: icon.MIMEType, Sizes: slices.Clone(icon.Sizes), Theme: mcp.IconTheme(icon.Theme),
		})
	}
	return described
}

// synchronous runs a tool to its end for callers that come through the SDK: sessions of earlier eras.
func (d *modern) synchronous(tool *catalog.Tool) mcp.ToolHandler {
	return func(ctx context.Context, call *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r := &request{method: "tools/call", owner: tasks.Anonymous, params: requestParams{
			Name:      tool.Name,
			Arguments: jsontext.Value(call.Params.Arguments),
			Meta:      &requestMeta{ClientCapabilities: &clientCapabilities{}},
		}}
		if tool.Task == catalog.TaskRequired || tool.Confirm != nil {
			return nil, &jsonrpc.Error{Code: rpc.CodeMethodNotFound, Message: fmt.Sprintf("tool %s needs a client that speaks MCP %s with extension %s", tool.Name, modernVersion, tasksExtension)}
		}
		encoded, rpcErr := d.call(ctx, r)
		if rpcErr != nil {
			return nil, sdkError(rpcErr)
		}
		result := new(mcp.CallToolResult)
		if err := stdjson.Unmarshal(encoded, result); err != nil {
			return nil, fmt.Errorf("result of tool %s: %w", tool.Name, err)
		}
		return result, nil
	}
}

// sdkError is an error as the SDK sends it. Of one with code -32601 it replaces the message.
func sdkError(rpcErr *rpc.Error) error {
	sent := &jsonrpc.Error{Code: rpcErr.Code, Message: rpcErr.Message}
	if rpcErr.Data != nil {
		data, err := stdjson.Marshal(rpcErr.Data)
		if err != nil {
			return fmt.Errorf("%s: data: %w", rpcErr.Message, err)
		}
		sent.Data = data
	}
	return sent
}

// checkID refuses an integer ID that the SDK, which reads it as a float, would send back as another.
func checkID(id jsontext.Value) *rpc.Error {
	const exact = 1 << 53
	if id.Kind() != '0' {
		return nil
	}
	if n, err := strconv.ParseInt(string(id), 10, 64); err != nil || n > exact || n < -exact {
		return rpc.Errorf(rpc.CodeInvalidRequest, "id %s is outside ±2^53, where JSON numbers are exact: send a smaller one or a string", rpc.Clip(string(id)))
	}
	return nil
}

// decodeName replaces an encoded Mcp-Name, which has been compared with the body by now, by the name itself: the SDK
// compares it too but does not decode it.
func decodeName(header http.Header, r *request) {
	if member, name := r.mirroredName(); member != "" {
		header.Set("Mcp-Name", name)
	}
}
