package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const templateURI = "test://template/{id}/data"

func addResources(server *mcp.Server) {
	for _, r := range []struct {
		name, description string
		contents          mcp.ResourceContents
	}{
		{"static-text", "A text which never changes.", mcp.ResourceContents{
			MIMEType: "text/plain", Text: "This is the content of the static text resource."}},
		{"static-binary", "An image which never changes.", mcp.ResourceContents{
			MIMEType: "image/png", Blob: []byte(pixelPNG)}},
		{"watched-resource", "A text to subscribe to.", mcp.ResourceContents{
			MIMEType: "text/plain", Text: "This is the content of the watched resource."}},
	} {
		r.contents.URI = "test://" + r.name
		server.AddResource(&mcp.Resource{
			URI: r.contents.URI, Name: r.name, Description: r.description, MIMEType: r.contents.MIMEType,
		}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&r.contents}}, nil
		})
	}
	server.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: templateURI, Name: "template", Description: "A text which names its ID.", MIMEType: "application/json",
	}, readTemplate)
}

func readTemplate(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	prefix, suffix, _ := strings.Cut(templateURI, "{id}")
	id := strings.TrimSuffix(strings.TrimPrefix(req.Params.URI, prefix), suffix)
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{
		URI: req.Params.URI, MIMEType: "application/json",
		Text: fmt.Sprintf(`{"id":%q,"templateTest":true,"data":%q}`, id, "Data for ID: "+id),
	}}}, nil
}
