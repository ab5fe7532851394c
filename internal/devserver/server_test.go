package devserver

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
)

// ownerEnv makes the test binary start a server, print its address and stay.
const ownerEnv = "DEVSERVER_TEST_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerEnv) != "" {
		server, err := Start(context.Background(), Options{NoUI: true})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(server.Address())
		<-server.Done()
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func start(t *testing.T, o Options) *Server {
	t.Helper()
	server, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Stop() })
	return server
}

func dial(t *testing.T, server *Server) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: server.Address(), Namespace: server.Namespace(), Logger: silent()})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// startWorkflow starts a workflow which nobody works on.
func startWorkflow(t *testing.T, server *Server, id string) {
	t.Helper()
	options := client.StartWorkflowOptions{ID: id, TaskQueue: "nobody"}
	_, err := dial(t, server).ExecuteWorkflow(t.Context(), options, "Unknown")
	require.NoError(t, err)
}

func answers(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func TestStartedServers(t *testing.T) {
	t.Parallel()
	first := start(t, Options{Namespace: "builds", Further: []string{"data", "ops"}})
	second := start(t, Options{NoUI: true})

	t.Run("are ready, with the namespace, and apart from each other", func(t *testing.T) {
		assert.Equal(t, "builds", first.Namespace())
		assert.Equal(t, "default", second.Namespace())
		assert.NotEqual(t, first.Address(), second.Address())
		startWorkflow(t, first, "same-id")
		startWorkflow(t, second, "same-id")
		assert.False(t, first.External())
	})
	t.Run("have the further namespaces", func(t *testing.T) {
		for _, namespace := range []string{"data", "ops"} {
			external := start(t, Options{Address: first.Address(), Namespace: namespace})
			assert.Equal(t, namespace, external.Namespace())
		}
	})
	t.Run("have a web UI unless it is left out", func(t *testing.T) {
		response, err := http.Get(first.UIURL())
		require.NoError(t, err)
		_ = response.Body.Close()
		assert.Equal(t, http.StatusOK, response.StatusCode)
		assert.Empty(t, second.UIURL())
	})
	t.Run("can be used by address", func(t *testing.T) {
		external := start(t, Options{Address: first.Address(), Namespace: "builds"})
		assert.True(t, external.External())
		assert.Equal(t, first.Address(), external.Address())
		assert.Empty(t, external.UIURL())
		require.NoError(t, external.Stop())
		assert.True(t, answers(first.Address()), "Stop leaves it alone")
	})
	t.Run("say so if the namespace is unknown", func(t *testing.T) {
		_, err := Start(t.Context(), Options{Address: first.Address(), Namespace: "other"})
		require.ErrorContains(t, err, `has no namespace "other"`)
	})
	t.Run("end with Stop", func(t *testing.T) {
		require.NoError(t, second.Stop())
		assert.False(t, answers(second.Address()))
		<-second.Done()
		require.NoError(t, second.Err())
		require.NoError(t, second.Stop(), "again")
	})
	t.Run("report that they ended by themselves", func(t *testing.T) {
		require.NoError(t, first.Err())
		first.child.group.Stop(0) // behind its back
		select {
		case <-first.Done():
		case <-time.After(20 * time.Second):
			require.Fail(t, "Done was not closed")
		}
		require.ErrorContains(t, first.Err(), "ended by itself (signal: ")
		require.Equal(t, first.Err(), first.Stop())
	})
}

func TestNobodyAtTheAddress(t *testing.T) {
	t.Parallel()
	port, err := orFreePort(0)
	require.NoError(t, err)

	_, err = Start(t.Context(), Options{Address: "127.0.0.1:" + port})
	require.ErrorContains(t, err, "no Temporal server answers at 127.0.0.1:"+port)
}

func TestTakenPorts(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	taken := listener.Addr().(*net.TCPAddr).Port

	_, err = Start(t.Context(), Options{Port: taken})
	require.ErrorContains(t, err, "port "+strconv.Itoa(taken)+" is already in use")
	require.ErrorContains(t, err, "--temporal-port, or 0 for a free one")

	_, err = Start(t.Context(), Options{UIPort: taken})
	require.ErrorContains(t, err, "--ui-port, or 0 for a free one")

	_, err = Start(t.Context(), Options{Port: 70000})
	require.ErrorContains(t, err, "there is no port 70000")
}

func TestDBFileKeepsState(t *testing.T) {
	t.Parallel()
	o := Options{DBFile: filepath.Join(t.TempDir(), "temporal.db"), NoUI: true}
	server := start(t, o)
	startWorkflow(t, server, "durable")
	require.NoError(t, server.Stop())

	server = start(t, o)
	description, err := dial(t, server).DescribeWorkflow(t.Context(), "durable", "")
	require.NoError(t, err)
	assert.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_RUNNING, description.Status)
}

func TestFailedStartShowsTheServersOutput(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{DBFile: filepath.Join(t.TempDir(), "missing", "temporal.db"), NoUI: true})
	require.ErrorContains(t, err, "ended by itself")
	require.ErrorContains(t, err, "missing: no such file or directory")
}

func TestServerDiesWithItsKilledOwner(t *testing.T) {
	t.Parallel()
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerEnv+"=1")
	out, err := owner.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, owner.Start())
	address, err := bufio.NewReader(out).ReadString('\n')
	address = strings.TrimSpace(address)
	require.NoError(t, err)
	require.True(t, answers(address), address)

	require.NoError(t, owner.Process.Kill())
	_ = owner.Wait()
	require.Eventually(t, func() bool { return !answers(address) }, 20*time.Second, 50*time.Millisecond)
}

// TestAPortLostToAnotherProcess: the server chooses ports for its inner parts before it listens on them, so on a busy machine
// another process may be first. It then crashes, with stack traces that are longer than the reason before them. The first
// start is made to end like that, the second is real.
func TestAPortLostToAnotherProcess(t *testing.T) {
	real, err := Binary(t.Context(), os.Stderr)
	require.NoError(t, err)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "temporal"), fmt.Sprintf(`#!/bin/sh
if mkdir %[1]s/lost 2>/dev/null; then
	echo 'level=ERROR msg="Failed to start gRPC listener" error="listen tcp 127.0.0.1:40001: bind: address already in use"' >&2
	echo 'panic: runtime error: invalid memory address' >&2
	echo 'goroutine 1 [running]:' >&2
	i=0; while [ $i -lt 500 ]; do echo "some.function.$i(0x1, 0x2)" >&2; i=$((i+1)); done
	exit 2
fi
exec %[2]s "$@"
`, dir, real))
	require.NoError(t, os.Chmod(filepath.Join(dir, "temporal"), 0o755))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	server := start(t, Options{NoUI: true})
	assert.DirExists(t, filepath.Join(dir, "lost"))
	startWorkflow(t, server, "after-all")
}
