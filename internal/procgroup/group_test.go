//go:build unix

package procgroup

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ownerEnv makes the test binary an owner: it runs the script in the variable in a group and waits for it.
const ownerEnv = "PROCGROUP_TEST_OWNER"

func TestMain(m *testing.M) {
	if script := os.Getenv(ownerEnv); script != "" {
		cmd := exec.Command("/bin/sh", "-c", script)
		cmd.Stdout = os.Stdout
		g, err := Start(cmd)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_ = g.Wait()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// shell prepares a script and the file where it may leave process IDs.
func shell(t *testing.T, script string) (cmd *exec.Cmd, pidFile string) {
	t.Helper()
	pidFile = filepath.Join(t.TempDir(), "pids")
	cmd = exec.Command("/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), "PIDS="+pidFile)
	return cmd, pidFile
}

// readPIDs waits until the script has written n process IDs.
func readPIDs(t *testing.T, file string, n int) []int {
	t.Helper()
	var pids []int
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(file)
		pids = parsePIDs(string(text))
		return len(pids) == n && bytes.HasSuffix(text, []byte("\n"))
	}, 20*time.Second, 5*time.Millisecond)
	return pids
}

func parsePIDs(text string) (pids []int) {
	for _, field := range strings.Fields(text) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// alive tells whether a process runs. A zombie does not: whoever inherited it may be slow to collect it.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		return !bytes.Contains(stat, []byte(") Z "))
	}
	return runtime.GOOS != "linux" && syscall.Kill(pid, 0) == nil
}

func requireGone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		require.Eventually(t, func() bool { return !alive(pid) }, 10*time.Second, 10*time.Millisecond, "process %d still runs", pid)
	}
}

func TestWaitReturnsTheChildsError(t *testing.T) {
	var out bytes.Buffer
	cmd, _ := shell(t, "echo hello; exit 3")
	cmd.Stdout = &out
	g, err := Start(cmd)
	require.NoError(t, err)

	var exit *exec.ExitError
	require.ErrorAs(t, g.Wait(), &exit)
	assert.Equal(t, 3, exit.ExitCode())
	assert.Equal(t, "hello\n", out.String())
	assert.Equal(t, g.Wait(), g.Wait(), "a second Wait says the same")
}

func TestStartReportsAnUnknownProgram(t *testing.T) {
	_, err := Start(exec.Command("/nonexistent/program"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestWaitKillsWhatTheChildLeftBehind(t *testing.T) {
	cmd, pidFile := shell(t, `sleep 300 & echo $! >"$PIDS"; echo out`)
	var out bytes.Buffer
	cmd.Stdout = &out // held open by the sleep
	g, err := Start(cmd)
	require.NoError(t, err)

	require.NoError(t, g.Wait(), "the child itself succeeded")
	assert.Equal(t, "out\n", out.String())
	requireGone(t, readPIDs(t, pidFile, 1)...)
}

func TestStopEndsChildAndGrandchildren(t *testing.T) {
	cmd, pidFile := shell(t, `sleep 300 & echo $$ $! >"$PIDS"; sleep 300`)
	g, err := Start(cmd)
	require.NoError(t, err)
	pids := readPIDs(t, pidFile, 2)

	begin := time.Now()
	g.Stop(time.Minute)
	assert.Less(t, time.Since(begin), 30*time.Second, "nobody ignored TERM")
	requireGone(t, pids...)
	require.ErrorContains(t, g.Wait(), "signal: terminated")
}

func TestStopKillsAfterTheGrace(t *testing.T) {
	cmd, pidFile := shell(t, `trap '' TERM; sleep 300 & echo $$ $! >"$PIDS"; while :; do sleep 1; done`)
	g, err := Start(cmd)
	require.NoError(t, err)
	pids := readPIDs(t, pidFile, 2)

	begin := time.Now()
	g.Stop(300 * time.Millisecond)
	assert.GreaterOrEqual(t, time.Since(begin), 300*time.Millisecond)
	requireGone(t, pids...)
	require.ErrorContains(t, g.Wait(), "signal: killed")
}

func TestStopIsSafeRepeatedlyAndConcurrently(t *testing.T) {
	cmd, pidFile := shell(t, `trap '' TERM; echo $$ >"$PIDS"; while :; do sleep 0.1; done`)
	g, err := Start(cmd)
	require.NoError(t, err)
	pids := readPIDs(t, pidFile, 1)

	var all sync.WaitGroup
	all.Go(func() { g.Stop(time.Minute) })
	for range 4 {
		all.Go(func() { g.Stop(50 * time.Millisecond) })
		all.Go(func() { _ = g.Wait() })
	}
	all.Wait()
	requireGone(t, pids...)
	g.Stop(0)
}

func TestNothingOutlivesAKilledOwner(t *testing.T) {
	scripts := map[string]string{
		"obedient processes":      `sleep 300 & echo $$ $!; sleep 300`,
		"processes ignoring TERM": `trap '' TERM; sleep 300 & echo $$ $!; while :; do sleep 1; done`,
	}
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner := exec.Command(os.Args[0])
			owner.Env = append(os.Environ(), ownerEnv+"="+script)
			out, err := owner.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, owner.Start())
			line, err := bufio.NewReader(out).ReadString('\n')
			require.NoError(t, err)
			pids := parsePIDs(line)
			require.Len(t, pids, 2)

			require.NoError(t, owner.Process.Kill())
			_ = owner.Wait()
			requireGone(t, pids...)
		})
	}
}

func TestGroupsLeaveNoFileOrGoroutineBehind(t *testing.T) {
	openFiles := func() int {
		files, _ := filepath.Glob("/dev/fd/*")
		return len(files)
	}
	run := func() {
		g, err := Start(exec.Command("/bin/sh", "-c", "true"))
		require.NoError(t, err)
		require.NoError(t, g.Wait())
		_, err = Start(exec.Command("/nonexistent/program"))
		require.Error(t, err)
	}
	run()
	files, goroutines := openFiles(), runtime.NumGoroutine()
	for range 20 {
		run()
	}
	// Eventually, as it runs its condition in a goroutine and a ticker of its own, is of no use for counting.
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines && time.Now().Before(end); {
		runtime.Gosched()
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
	assert.LessOrEqual(t, openFiles(), files)
}
