package main

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addBaseFixtures registers the tools, prompts and resources which the base scenarios of the official conformance suite
// ask for by name. The fixtures of its tasks scenarios are workflows and not among them.
func addBaseFixtures(server *mcp.Server) {
	addContentTools(server)
	addStreamTools(server)
	addSchemaTools(server)
	addChangeTools(server)
	addDialogues(server)
	addResources(server)
	addPrompts(server)
}

// serverOptions returns what the base fixtures need of their server: completion and, for sessions of protocol 2025-11-25,
// resource subscriptions, and logging.
func serverOptions() *mcp.ServerOptions {
	return &mcp.ServerOptions{
		Capabilities:      withLogging(),
		CompletionHandler: complete,
		// The SDK keeps the list of subscribers itself; the handlers only make it advertise the capability.
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	}
}

func complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	values := []string{}
	for _, city := range []string{"paris", "potsdam", "tallinn", "tartu"} {
		if strings.HasPrefix(city, req.Params.Argument.Value) {
			values = append(values, city)
		}
	}
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values, Total: len(values)}}, nil
}
