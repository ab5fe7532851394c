package main

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// One red pixel.
	pixelPNG = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\b\x02\x00\x00\x00\x90wS\xde" +
		"\x00\x00\x00\x10IDATx\x9cb\xfa\xcf\xc0\x00\b\x00\x00\xff\xff\x03\t\x01\x02X\xb6\xd5P\x00\x00\x00\x00IEND\xaeB`\x82"
	// One sample of silence: 8 kHz, mono, 16 bit.
	silenceWAV = "RIFF\x26\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00" +
		"data\x02\x00\x00\x00\x00\x00"
)

func addContentTools(server *mcp.Server) {
	for _, tool := range []struct {
		name, description string
		content           []mcp.Content
	}{
		{"test_simple_text", "Returns one text.", []mcp.Content{
			text("This is a simple text response for testing."),
		}},
		{"test_image_content", "Returns one image.", []mcp.Content{image()}},
		{"test_audio_content", "Returns one sound.", []mcp.Content{
			&mcp.AudioContent{Data: []byte(silenceWAV), MIMEType: "audio/wav"},
		}},
		{"test_embedded_resource", "Returns one embedded resource.", []mcp.Content{
			embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),
		}},
		{"test_multiple_content_types", "Returns a text, an image and a resource.", []mcp.Content{
			text("Multiple content types test:"),
			image(),
			embedded("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`),
		}},
	} {
		mcp.AddTool(server, &mcp.Tool{Name: tool.name, Description: tool.description},
			func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{Content: tool.content}, nil, nil
			})
	}
	mcp.AddTool(server, &mcp.Tool{Name: "test_error_handling", Description: "Fails every time."},
		func(context.Context, *mcp.CallToolRequest, any) (*mcp.CallToolResult, any, error) {
			return nil, nil, errors.New("this tool fails on purpose")
		})
}

func text(s string) *mcp.TextContent { return &mcp.TextContent{Text: s} }

func image() *mcp.ImageContent {
	return &mcp.ImageContent{Data: []byte(pixelPNG), MIMEType: "image/png"}
}

func embedded(uri, mimeType, body string) *mcp.EmbeddedResource {
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: uri, MIMEType: mimeType, Text: body}}
}

func textResult(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{text(s)}}
}
