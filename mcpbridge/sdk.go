package mcpbridge

import (
	"context"
	stdjson "encoding/json"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/session"
)

// newServer is the go-sdk server for the base protocol: discovery, lists, prompts, resources, tools that are no
// workflows, and the sessions of earlier eras.
func (s *shared) newServer(o Options) *mcp.Server {
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
	server.AddReceivingMiddleware(recoverPanics(o.Logger), session.Middleware, declareTasks, s.listTools)
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

// statelessHandler serves modern requests of the base protocol.
func statelessHandler(server *mcp.Server) http.Handler {
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless:                    true,
		MaxRequestBodyBytes:          -1, // read and bounded before
		DisableLocalhostProtection:   true,
		PropagateRequestCancellation: true,
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
	if dedupe := tool.Dedupe; dedupe != nil {
		described.Meta = mcp.Meta{dedupeMeta: string(dedupe.By)}
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

// dedupeMeta tells clients by what a tool knows a repeated call.
const dedupeMeta = "taskbridge/dedupe"

// servedByDialect stands for tools that the dialects serve before the SDK sees a call. It answers those who connect the
// SDK's server to a transport of their own.
func servedByDialect(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return nil, &jsonrpc.Error{Code: rpc.CodeInternalError, Message: "this tool runs as a workflow: connect to Bridge.Serve, Bridge.Handler or Bridge.ServeStdio"}
}

// conversationKey leads from a context of the SDK to the conversation that it belongs to.
type conversationKey struct{}

func conversationOf(ctx context.Context) *conversation {
	c, _ := ctx.Value(conversationKey{}).(*conversation)
	return c
}

// initializeResult is the SDK's with capabilities that it does not know.
type initializeResult struct {
	*mcp.InitializeResult
	tasks map[string]any
}

// MarshalJSON implements [stdjson.Marshaler].
func (r initializeResult) MarshalJSON() ([]byte, error) {
	return withMember(r.InitializeResult, func(members map[string]stdjson.RawMessage) (err error) {
		members["capabilities"], err = withMember(members["capabilities"], func(capabilities map[string]stdjson.RawMessage) (err error) {
			capabilities["tasks"], err = stdjson.Marshal(r.tasks)
			return err
		})
		return err
	})
}

// withMember encodes a value as an object and changes its members.
func withMember(value any, change func(map[string]stdjson.RawMessage) error) ([]byte, error) {
	encoded, err := stdjson.Marshal(value)
	if err != nil {
		return nil, err
	}
	members := map[string]stdjson.RawMessage{}
	if err := stdjson.Unmarshal(encoded, &members); err != nil {
		return nil, err
	}
	if err := change(members); err != nil {
		return nil, err
	}
	return stdjson.Marshal(members)
}

// declareTasks declares to sessions the tasks of 2025-11-25, if they have them, and not those of the extension, which no
// session has. The SDK does not know the former.
func declareTasks(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, request)
		initialized, ok := result.(*mcp.InitializeResult)
		c := conversationOf(ctx)
		if err != nil || !ok || c == nil {
			return result, err
		}
		delete(initialized.Capabilities.Extensions, tasksExtension) // of a copy that the SDK made for this result
		if !c.hasTasks() {
			return result, nil
		}
		capability := map[string]any{"cancel": struct{}{}, "requests": map[string]any{"tools": map[string]any{"call": struct{}{}}}}
		if c.listable {
			capability["list"] = struct{}{}
		}
		return initializeResult{initialized, capability}, nil
	}
}

// listedTools is the SDK's list with members that it does not know.
type listedTools struct {
	*mcp.ListToolsResult
	support map[string]string // of tasks, by tool
}

// MarshalJSON implements [stdjson.Marshaler].
func (r listedTools) MarshalJSON() ([]byte, error) {
	return withMember(r.ListToolsResult, func(members map[string]stdjson.RawMessage) (err error) {
		tools := make([]stdjson.RawMessage, len(r.Tools))
		for i, tool := range r.Tools {
			tools[i], err = withMember(tool, func(members map[string]stdjson.RawMessage) (err error) {
				if support, ok := r.support[tool.Name]; ok {
					members["execution"], err = stdjson.Marshal(map[string]string{"taskSupport": support})
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		members["tools"], err = stdjson.Marshal(tools)
		return err
	})
}

// listTools fits the list of tools to the client: clients with tasks do not see the companions; others do not see the
// output schemas of tools whose calls may be handed over; sessions with tasks see which tools can be tasks (MCP
// 2025-11-25, Tasks, "Tool-Level Negotiation").
func (s *shared) listTools(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, request)
		listed, ok := result.(*mcp.ListToolsResult)
		if err != nil || !ok {
			return result, err
		}
		c := conversationOf(ctx)
		knowsTasks := c != nil && c.knowsTasks.Load() || c == nil && declaresTasks(request)
		fitted := *listed
		fitted.Tools = []*mcp.Tool{}
		if s.tools.isCompanion(catalog.CompanionWait) { // then the list is not the same for all clients
			fitted.CacheScope = "private"
		}
		for _, tool := range listed.Tools {
			if s.tools.isCompanion(tool.Name) && knowsTasks {
				continue
			}
			if ours, ok := s.tools.get(tool.Name); ok && ours.Fallback == catalog.FallbackHandoff && !knowsTasks {
				open := *tool
				open.OutputSchema, tool = nil, &open
			}
			fitted.Tools = append(fitted.Tools, tool)
		}
		if c == nil || !c.hasTasks() {
			return &fitted, nil
		}
		return listedTools{&fitted, s.tools.taskSupport()}, nil
	}
}

func declaresTasks(request mcp.Request) bool {
	list, ok := request.(*mcp.ListToolsRequest)
	if !ok || list.ClientCapabilities() == nil {
		return false
	}
	_, declared := list.ClientCapabilities().Extensions[tasksExtension]
	return declared
}

// decodeName replaces an encoded Mcp-Name, which has been compared with the body by now, by the name itself: the SDK
// compares it too but does not decode it.
func decodeName(header http.Header, r *request) {
	if member, name := r.mirroredName(); member != "" {
		header.Set("Mcp-Name", name)
	}
}
