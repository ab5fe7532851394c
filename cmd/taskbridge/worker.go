package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"taskbridge/workflows"
)

func newWorkerCommand(s settings, io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run the bundled workflows, on an existing Temporal server",
		Long: "worker polls a Temporal task queue for the bundled workflow Pipeline and runs its commands on this machine, as this\n" +
			"user, relative to the working directory.",
		Example: "  TEMPORAL_ADDRESS=127.0.0.1:7233 taskbridge worker --task-queue builds",
		Args:    between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runWorker(cmd.Context(), s, io)
		},
	}
	cmd.Flags().StringVar(&s.TaskQueue, "task-queue", s.TaskQueue, "task queue to poll")
	return cmd
}

func runWorker(ctx context.Context, s settings, io streams) error {
	temporal, err := connectAll(ctx, s, io, nil)
	if err != nil {
		return err
	}
	defer temporal.Close()
	w := workflows.NewWorker(temporal.Client, s.TaskQueue)
	if err := w.Start(); err != nil {
		return fmt.Errorf("start worker: %w", err)
	}
	defer w.Stop()
	_, _ = fmt.Fprintf(io.Out, "polling task queue %s for workflow %s\n", s.TaskQueue, workflows.PipelineName)
	<-ctx.Done()
	return nil
}
