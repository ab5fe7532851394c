package workflows

import (
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"taskbridge/activities"
)

// WorkerOptions are options for workers whose tasks people watch.
func WorkerOptions() worker.Options {
	return worker.Options{
		// A fixed number of pollers can leave the normal queue unpolled while a sticky backlog hint is stale.
		WorkflowTaskPollerBehavior: worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{}),
		ActivityTaskPollerBehavior: worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{}),
		// Heartbeats carry progress for people: at the default of 30 s it would look stuck.
		MaxHeartbeatThrottleInterval: time.Second,
		WorkerStopTimeout:            10 * time.Second,
	}
}

// NewWorker is a worker for the bundled workflows and their activities. It polls nothing until it is started.
func NewWorker(temporal client.Client, taskQueue string) worker.Worker {
	w := worker.New(temporal, taskQueue, WorkerOptions())
	w.RegisterWorkflowWithOptions(Pipeline, workflow.RegisterOptions{Name: PipelineName})
	w.RegisterActivity(&activities.Commands{})
	return w
}
