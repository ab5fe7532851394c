package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/labstack/echo/v4"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/workflow"

	"taskbridge/mcpbridge"
	"taskbridge/mcpbridge/catalog"
)

// part is what a process that serves needs to know.
type part struct {
	temporal, body string
}

// serve serves until ctx ends, and prints where.
func (p part) serve(ctx context.Context, role string) error {
	var (
		handler http.Handler
		err     error
	)
	switch role {
	case "front":
		handler, err = newFront(ctx, p.temporal)
	case "bare":
		debug.SetGCPercent(400) // as in the other
		handler = bareHandler([]byte(p.body))
	default:
		err = fmt.Errorf("there is no role %q", role)
	}
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	mux.HandleFunc("/usage", serveUsage)
	server := &http.Server{Handler: mux}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Printf("http://%s/mcp\n", listener.Addr())
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}

// newFront is a front end as serve makes it.
func newFront(ctx context.Context, address string) (http.Handler, error) {
	debug.SetGCPercent(400)
	temporal, err := client.DialContext(ctx, client.Options{
		HostPort: address, Logger: log.NewStructuredLogger(quiet()),
		ConnectionOptions: client.ConnectionOptions{GrpcCompression: &client.GrpcCompressionNone{}},
	})
	if err != nil {
		return nil, err
	}
	bridge, err := mcpbridge.New(mcpbridge.Options{Temporal: temporal, Logger: quiet()})
	if err != nil {
		return nil, err
	}
	for _, tool := range []struct {
		name, queue string
		run         func(workflow.Context, struct{}) (string, error)
	}{
		{"park", taskQueue, Park}, {"ask", taskQueue, Ask}, {"finish", taskQueue, Finish}, {"idle", nobody, Park},
	} {
		if err := mcpbridge.AddTool(bridge, catalog.Tool{Name: tool.name, TaskQueue: tool.queue}, tool.run); err != nil {
			return nil, err
		}
	}
	return bridge.Handler(), nil
}

// bareHandler decodes the envelope as any JSON-RPC server must and answers a fixed body: what is left of a read when
// there is nothing to read.
func bareHandler(body []byte) http.Handler {
	e := echo.New()
	e.POST("/mcp", func(c echo.Context) error {
		var message struct {
			JSONRPC string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Method  string          `json:"method"`
			Params  struct {
				TaskID string `json:"taskId"`
			} `json:"params"`
		}
		if err := json.NewDecoder(c.Request().Body).Decode(&message); err != nil {
			return echo.NewHTTPError(http.StatusBadRequest)
		}
		return c.JSONBlob(http.StatusOK, body)
	})
	return e
}

// usage is what a process has used.
type usage struct {
	CPU    time.Duration // in all
	Memory uint64        // bytes in use now by heap and stacks
}

// serveUsage tells the usage of this process, after a garbage collection.
func serveUsage(w http.ResponseWriter, _ *http.Request) {
	var (
		used   syscall.Rusage
		memory runtime.MemStats
	)
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	runtime.GC()
	runtime.ReadMemStats(&memory)
	_ = json.NewEncoder(w).Encode(usage{
		CPU:    time.Duration(used.Utime.Nano() + used.Stime.Nano()),
		Memory: memory.HeapInuse + memory.StackInuse,
	})
}
