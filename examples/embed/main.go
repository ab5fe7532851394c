// Command embed is a program of its own: a workflow, its worker, and an MCP server at http://127.0.0.1:8090/mcp.
package main

import (
	"context"
	"errors"
	"log"
	"net"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"taskbridge/mcpbridge"
	"taskbridge/mcpbridge/catalog"
	"taskbridge/workflows"
)

// Restart asks why a service has to be restarted. Then your activities would do it.
func Restart(ctx workflow.Context, in struct{ Service string }) (string, error) {
	task, err := workflows.NewTask(ctx, nil)
	if err != nil {
		return "", err
	}
	task.Status(ctx, "waiting for approval to restart %s", in.Service)
	answer, err := workflows.Elicit[struct{ Reason string }](ctx, task, workflows.Question{Message: "Restart " + in.Service + "?"})
	if err != nil || !answer.Accepted() {
		return in.Service + " was not restarted", err
	}
	return in.Service + " was restarted: " + answer.Content.Reason, nil
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:8090")
	if err == nil {
		err = run(context.Background(), envconfig.MustLoadDefaultClientOptions(), listener)
	}
	log.Fatal(err)
}

func run(ctx context.Context, options client.Options, listener net.Listener) error {
	temporal, err := client.DialContext(ctx, options)
	if err != nil {
		return err
	}
	bridge, err := mcpbridge.New(mcpbridge.Options{Temporal: temporal, Namespace: options.Namespace})
	if err != nil {
		return err
	}
	w := worker.New(temporal, "embed", workflows.WorkerOptions())
	w.RegisterWorkflow(Restart)
	tool := catalog.Tool{Name: "restart", Description: "Restarts a service.", TaskQueue: "embed"}
	if err := errors.Join(mcpbridge.AddTool(bridge, tool, Restart), w.Start()); err != nil {
		return err
	}
	defer w.Stop()
	return bridge.Serve(ctx, listener)
}
