// Command plain is a worker as its authors wrote it who have never heard of MCP: nothing but Temporal's SDK, and its
// defaults.
package main

import (
	"errors"
	"log"
	"os"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Offer is what an order would cost.
type Offer struct {
	Product string
	Cents   int
}

// Quote makes an offer.
func Quote(ctx workflow.Context, product string, quantity int, express bool) (Offer, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	offer := Offer{Product: product}
	if err := workflow.ExecuteActivity(ctx, Price, product, quantity).Get(ctx, &offer.Cents); err != nil {
		return Offer{}, err
	}
	if express {
		offer.Cents += 500
	}
	return offer, nil
}

// Price is that of some pieces, in cents.
func Price(product string, quantity int) (int, error) {
	if product == "" {
		return 0, errors.New("nothing to sell")
	}
	return 100 * len(product) * quantity, nil
}

func main() {
	temporal, err := client.Dial(client.Options{HostPort: os.Getenv("TEMPORAL_ADDRESS")})
	if err != nil {
		log.Fatalln("connect:", err)
	}
	defer temporal.Close()
	w := worker.New(temporal, "plain", worker.Options{})
	w.RegisterWorkflow(Quote)
	w.RegisterActivity(Price)
	if err := w.Run(worker.InterruptCh()); err != nil {
		log.Fatalln("work:", err)
	}
}
