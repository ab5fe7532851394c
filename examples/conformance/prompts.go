package main

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func addPrompts(server *mcp.Server) {
	server.AddPrompt(&mcp.Prompt{Name: "test_simple_prompt", Description: "A prompt without arguments."},
		prompt(text("This is a simple prompt for testing.")))
	server.AddPrompt(&mcp.Prompt{Name: "test_prompt_with_image", Description: "A prompt with an image."},
		prompt(image(), text("Please analyze the image above.")))
	server.AddPrompt(&mcp.Prompt{
		Name:        "test_prompt_with_arguments",
		Description: "A prompt which repeats its arguments.",
		Arguments:   required("arg1", "arg2"),
	}, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		args := req.Params.Arguments
		return prompt(text(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", args["arg1"], args["arg2"])))(ctx, req)
	})
	server.AddPrompt(&mcp.Prompt{
		Name:        "test_prompt_with_embedded_resource",
		Description: "A prompt which embeds the resource of that URI.",
		Arguments:   required("resourceUri"),
	}, func(ctx context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		uri := req.Params.Arguments["resourceUri"]
		return prompt(
			embedded(uri, "text/plain", "Embedded resource content for testing."),
			text("Please process the embedded resource above."),
		)(ctx, req)
	})
}

// prompt returns a handler whose prompt says each content as the user.
func prompt(contents ...mcp.Content) mcp.PromptHandler {
	return func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		messages := make([]*mcp.PromptMessage, len(contents))
		for i, content := range contents {
			messages[i] = &mcp.PromptMessage{Role: "user", Content: content}
		}
		return &mcp.GetPromptResult{Messages: messages}, nil
	}
}

func required(names ...string) []*mcp.PromptArgument {
	args := make([]*mcp.PromptArgument, len(names))
	for i, name := range names {
		args[i] = &mcp.PromptArgument{Name: name, Required: true}
	}
	return args
}
