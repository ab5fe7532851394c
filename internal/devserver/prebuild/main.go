// Command prebuild makes the Temporal dev server ready, so that no test pays for building it, and prints its path.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"taskbridge/internal/devserver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	path, err := devserver.Binary(ctx, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prebuild:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}
