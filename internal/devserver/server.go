// Package devserver finds or starts a Temporal server for development and tests, with no step by hand.
package devserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"taskbridge/internal/procgroup"
)

const (
	host           = "127.0.0.1"
	answerTimeout  = 5 * time.Second // for a server that is said to be there
	startupTimeout = time.Minute     // for one just started: 1 to 2 s, much more on a loaded machine
	stopGrace      = 10 * time.Second
	outputBytes    = 64 << 10 // the server's stack traces are long, and the reason of a crash comes before them
)

// Options say which server is wanted. The zero value is a new one on free ports which keeps its state in memory.
type Options struct {
	// Address (host:port) of a server to use instead of starting one.
	Address string
	// Client holds what Address needs: TLS, credentials. Its HostPort and Namespace are ignored.
	Client client.Options
	// Namespace is "default" if empty. A server started here gets it; at Address it must exist.
	Namespace string
	// Further namespaces that a server started here gets.
	Further []string
	// Port and UIPort of the server and its web UI; 0 takes a free one.
	Port, UIPort int
	// NoUI leaves the web UI out.
	NoUI bool
	// DBFile keeps the state across restarts; "" keeps it in memory, which is several times as fast.
	DBFile string
	// Log gets a few lines about anything that takes long; nil discards them.
	Log io.Writer
}

// Server is a Temporal server ready for use.
type Server struct {
	address   string
	uiURL     string
	namespace string
	child     *child // nil if the server is not ours
}

// child is the process of a server started here.
type child struct {
	group    *procgroup.Group
	output   *procgroup.Tail
	stopping atomic.Bool
	done     chan struct{}
	err      error // why it ended; valid once done is closed
}

// Start returns a server that answers: the one at the address given, else a new one started with [Binary], which ends
// at the latest with this process, even if this one is killed. ctx bounds the start, not the server's life.
func Start(ctx context.Context, o Options) (*Server, error) {
	o.Namespace = cmp.Or(o.Namespace, "default")
	if o.Log == nil {
		o.Log = io.Discard
	}
	if o.Address != "" {
		return useExisting(ctx, o)
	}
	if o.NoUI {
		o.UIPort = 0
	}
	if err := errors.Join(checkPort(o.Port, "--temporal-port"), checkPort(o.UIPort, "--ui-port")); err != nil {
		return nil, err
	}
	binary, err := Binary(ctx, o.Log)
	if err != nil {
		return nil, err
	}
	return startNew(ctx, binary, o)
}

func useExisting(ctx context.Context, o Options) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	err := ping(ctx, o.Client, o.Address, o.Namespace)
	var unknown *serviceerror.NamespaceNotFound
	if errors.As(err, &unknown) {
		return nil, fmt.Errorf("the Temporal server at %s has no namespace %q; create it or name another: %w", o.Address, o.Namespace, err)
	}
	if err != nil {
		return nil, fmt.Errorf("no Temporal server answers at %s; give the address of one, or none to have one started: %w", o.Address, err)
	}
	return &Server{address: o.Address, namespace: o.Namespace}, nil
}

// ping asks the server for the namespace.
func ping(ctx context.Context, o client.Options, address, namespace string) error {
	o.HostPort, o.Namespace = address, namespace
	if o.Logger == nil {
		o.Logger = silent()
	}
	c, err := client.DialContext(ctx, o)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	return err
}

// startNew starts a server. Between the choice of a free port and its use somebody else may take it: one of ours, or one of
// the many that the server chooses for its own parts. Then all are chosen again.
func startNew(ctx context.Context, binary string, o Options) (*Server, error) {
	const attempts = 5
	for attempt := 1; ; attempt++ {
		s, err := startOnce(ctx, binary, o)
		if err == nil || attempt == attempts || !strings.Contains(err.Error(), "address already in use") {
			return s, err
		}
	}
}

func startOnce(ctx context.Context, binary string, o Options) (*Server, error) {
	port, err := orFreePort(o.Port)
	if err != nil {
		return nil, err
	}
	s := &Server{address: net.JoinHostPort(host, port), namespace: o.Namespace}
	uiPort := ""
	if !o.NoUI {
		if uiPort, err = orFreePort(o.UIPort); err != nil {
			return nil, err
		}
		s.uiURL = "http://" + net.JoinHostPort(host, uiPort)
	}
	if s.child, err = startChild(binary, arguments(o, port, uiPort)); err != nil {
		return nil, fmt.Errorf("start the Temporal dev server: %w", err)
	}
	if err := s.waitReady(ctx); err != nil {
		_ = s.Stop() // err says more
		return nil, err
	}
	return s, nil
}

// arguments of the Temporal CLI. The default transfer rate makes every hand-over wait for a 50 ms slot, and the default
// four partitions of a task queue make one worker wait seconds for some tasks.
func arguments(o Options, port, uiPort string) []string {
	args := []string{
		"server", "start-dev", "--ip", host, "--port", port, "--namespace", o.Namespace, "--log-level", "error",
		"--dynamic-config-value", "history.transferProcessorMaxPollRPS=1000",
		"--dynamic-config-value", "matching.numTaskqueueReadPartitions=1",
		"--dynamic-config-value", "matching.numTaskqueueWritePartitions=1",
		// A deletion waits for the next of these, by default half a minute.
		"--dynamic-config-value", `history.transferProcessorUpdateAckInterval="1s"`,
		"--dynamic-config-value", `history.visibilityProcessorUpdateAckInterval="1s"`,
		"--dynamic-config-value", "frontend.namespaceRPS.visibility=200", // lists; 10 a second by default
		"--dynamic-config-value", "frontend.enableServerVersionCheck=false", // calls home
	}
	for _, namespace := range o.Further {
		if namespace != o.Namespace {
			args = append(args, "--namespace", namespace)
		}
	}
	if o.NoUI {
		args = append(args, "--headless")
	} else {
		args = append(args, "--ui-port", uiPort)
	}
	if o.DBFile != "" {
		args = append(args, "--db-filename", o.DBFile)
	}
	return args
}

func startChild(binary string, args []string) (*child, error) {
	c := &child{output: procgroup.NewTail(outputBytes), done: make(chan struct{})}
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = c.output, c.output
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool {
		return strings.HasPrefix(entry, "TEMPORAL_") // configures clients, and a bad one would stop the server
	})
	var err error
	if c.group, err = procgroup.Start(cmd); err != nil {
		return nil, err
	}
	go c.watch()
	return c, nil
}

func (c *child) watch() {
	defer close(c.done)
	err := c.group.Wait()
	if !c.stopping.Load() {
		c.err = fmt.Errorf("the Temporal dev server ended by itself (%w); its last output:\n%s", cmp.Or(err, errors.New("exit status 0")), c.lastOutput())
	}
}

// lastOutput is the end of what the server wrote; of a crash, what comes before the stack traces.
func (c *child) lastOutput() string {
	output, _ := c.output.Text()
	output, _, _ = strings.Cut(output, "\ngoroutine ")
	return output
}

// waitReady waits until the server answers for its namespace and the web UI accepts connections.
func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startupTimeout)
	defer cancel()
	for {
		err := s.checkReady(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-s.child.done:
			return s.child.err
		case <-ctx.Done():
			return fmt.Errorf("the Temporal dev server did not get ready: %w; last attempt: %w; its last output:\n%s", ctx.Err(), err, s.child.lastOutput())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (s *Server) checkReady(ctx context.Context) error {
	addresses := []string{s.address}
	if s.uiURL != "" {
		addresses = append(addresses, strings.TrimPrefix(s.uiURL, "http://"))
	}
	for _, address := range addresses { // a refused gRPC connection would back off for a second
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return err
		}
		_ = conn.Close()
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return ping(ctx, client.Options{}, s.address, s.namespace)
}

// Address of the server, host:port.
func (s *Server) Address() string { return s.address }

// UIURL is the address of the web UI, "" if it was left out or the server is not ours.
func (s *Server) UIURL() string { return s.uiURL }

// Namespace to use; it exists.
func (s *Server) Namespace() string { return s.namespace }

// External tells whether the server was there before, and stays after Stop.
func (s *Server) External() bool { return s.child == nil }

// Done is closed when a server started here has ended. It never is for an external one.
func (s *Server) Done() <-chan struct{} {
	if s.child == nil {
		return nil
	}
	return s.child.done
}

// Err says, once Done is closed, why the server ended by itself; nil if it was stopped.
func (s *Server) Err() error {
	select {
	case <-s.Done():
		return s.child.err
	default:
		return nil
	}
}

// Stop ends a server started here, forcibly after ten seconds. It may be called again. It returns an error if the
// server had ended by itself before.
func (s *Server) Stop() error { return s.stop(stopGrace) }

// Kill ends a server started here without letting it finish anything, as a crash does. Otherwise it is [Server.Stop].
func (s *Server) Kill() error { return s.stop(0) }

func (s *Server) stop(grace time.Duration) error {
	if s.child == nil {
		return nil
	}
	s.child.stopping.Store(true)
	s.child.group.Stop(grace)
	<-s.child.done
	return s.child.err
}

// checkPort reports a port that is not free; flag is how the user chooses another.
func checkPort(port int, flag string) error {
	if port == 0 {
		return nil
	}
	if port < 0 || port > 65535 {
		return fmt.Errorf("there is no port %d: choose one up to 65535 with %s, or 0 for a free one", port, flag)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("port %d is already in use or not allowed: choose another with %s, or 0 for a free one: %w", port, flag, err)
	}
	return listener.Close()
}

func orFreePort(port int) (string, error) {
	if port != 0 {
		return strconv.Itoa(port), nil
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	_, free, err := net.SplitHostPort(listener.Addr().String())
	return free, errors.Join(err, listener.Close())
}
