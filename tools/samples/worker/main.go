// Command worker runs workflows of Temporal's samples just as they were published, where the samples' own workers cannot:
// those know no Temporal server but localhost:7233, and no expense system but localhost:8099. This one finds them by
// TEMPORAL_ADDRESS and EXPENSE_ADDRESS.
package main

import (
	"context"
	"log"
	"net"
	"net/http"
	"os"

	"github.com/temporalio/samples-go/expense"
	"github.com/temporalio/samples-go/recovery"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

func main() {
	if err := run(); err != nil {
		log.Fatalln("worker:", err)
	}
}

func run() error {
	divert("localhost:8099", os.Getenv("EXPENSE_ADDRESS"))
	temporal, err := client.NewClient(client.Options{HostPort: os.Getenv("TEMPORAL_ADDRESS")})
	if err != nil {
		return err
	}
	defer temporal.Close()
	for _, w := range []worker.Worker{expenseWorker(temporal), tripWorker(temporal)} {
		if err := w.Start(); err != nil {
			return err
		}
		defer w.Stop()
	}
	<-worker.InterruptCh()
	return nil
}

// divert has HTTP requests of this process to one address go to another one. The samples' activities use the default
// transport.
func divert(from, to string) {
	dialer := &net.Dialer{}
	transport := http.DefaultTransport.(*http.Transport)
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == from {
			address = to
		}
		return dialer.DialContext(ctx, network, address)
	}
}

func expenseWorker(temporal client.Client) worker.Worker {
	w := worker.New(temporal, "expense", worker.Options{})
	w.RegisterWorkflow(expense.SampleExpenseWorkflow)
	w.RegisterActivity(expense.CreateExpenseActivity)
	w.RegisterActivity(expense.WaitForDecisionActivity)
	w.RegisterActivity(expense.PaymentActivity)
	return w
}

func tripWorker(temporal client.Client) worker.Worker {
	w := worker.New(temporal, "recovery", worker.Options{})
	w.RegisterWorkflow(recovery.TripWorkflow)
	return w
}
