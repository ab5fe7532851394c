// Package e2e_test tests taskbridge from outside: its programs run as processes against a real Temporal server, and
// clients which we did not write drive them.
package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"taskbridge/internal/procgroup"
	"taskbridge/internal/testenv"
)

const (
	// patience is how long a program may take to do what a test waits for, on a loaded machine.
	patience = 5 * time.Minute
	// stopGrace is how long a program may take to end when its test does.
	stopGrace = 15 * time.Second
)

var (
	scratch  = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "tb-e2e-") })
	programs = sync.OnceValues(buildPrograms)
	modules  = sync.OnceValues(installModules)
)

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := scratch(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// scratchDir is a new directory with a short path, as sockets need: theirs are limited to about 100 bytes.
func scratchDir(t testing.TB) string {
	t.Helper()
	parent, err := scratch()
	require.NoError(t, err)
	dir, err := os.MkdirTemp(parent, "")
	require.NoError(t, err)
	return dir
}

// binary is the path of a program of this module, such as "cmd/taskbridge". All are built once, with the race detector.
func binary(t testing.TB, pkg string) string {
	t.Helper()
	dir, err := programs()
	require.NoError(t, err)
	program := filepath.Join(dir, path.Base(pkg))
	require.FileExists(t, program, "buildPrograms does not build it")
	return program
}

func buildPrograms() (string, error) {
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	if err := watchSources(".."); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-race", "-o", dir+string(filepath.Separator),
		"taskbridge/cmd/taskbridge", "taskbridge/examples/conformance", "taskbridge/examples/codecserver")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", build, err, output)
	}
	return dir, nil
}

// watchSources opens the directories of the module: go test notes what a test opens, and without this it would show an
// old result from its cache after a change of the programs, which this package does not import.
func watchSources(root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		hidden := entry != nil && strings.HasPrefix(entry.Name(), ".") && path != root
		if err == nil && entry.IsDir() && (hidden || entry.Name() == "node_modules") {
			return fs.SkipDir
		}
		return err
	})
}

// temporalEnv lets a program use the Temporal server that all tests of this package share.
func temporalEnv(t testing.TB) []string {
	t.Helper()
	return []string{"TEMPORAL_ADDRESS=" + testenv.Temporal(t).Address()}
}

// process is a running program.
type process struct {
	t              testing.TB
	cmd            *exec.Cmd
	group          *procgroup.Group
	stdout, stderr output
}

// start starts a program, which ends with the test at the latest. env is added to this process's environment.
func start(t testing.TB, env []string, program string, args ...string) *process {
	t.Helper()
	return startIn(t, "", env, program, args...)
}

// startIn is start in a working directory.
func startIn(t testing.TB, dir string, env []string, program string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(program, args...)}
	p.cmd.Dir = dir
	p.cmd.Env = append(environment(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	var err error
	p.group, err = procgroup.Start(p.cmd)
	require.NoError(t, err)
	t.Cleanup(p.finish)
	return p
}

// run runs a program to its end.
func run(t testing.TB, env []string, program string, args ...string) *process {
	t.Helper()
	p := start(t, env, program, args...)
	p.wait()
	return p
}

// environment is this process's own, without a developer's settings of Temporal and taskbridge.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "TEMPORAL_") || strings.HasPrefix(variable, "TASKBRIDGE_")
	})
}

func (p *process) finish() {
	p.group.Stop(stopGrace)
	if strings.Contains(p.stderr.String(), "WARNING: DATA RACE") {
		p.t.Errorf("%s has a data race", filepath.Base(p.cmd.Path))
	}
	if p.t.Failed() {
		p.t.Logf("%s\n--- stdout\n%s\n--- stderr\n%s", p.cmd, p.stdout.String(), p.stderr.String())
	}
}

// waitFor waits until a line of the output matches, and returns the match and its groups.
func (p *process) waitFor(pattern string) []string {
	p.t.Helper()
	wanted := regexp.MustCompile(pattern)
	deadline := time.Now().Add(patience)
	for {
		ended := p.ended() // before the look at the output: nothing is written after it
		for _, text := range []string{p.stdout.lines(), p.stderr.lines()} {
			if match := wanted.FindStringSubmatch(text); match != nil {
				return match
			}
		}
		if ended || time.Now().After(deadline) {
			require.FailNow(p.t, "the output has no such line", "%s (ended: %t): %s", p.cmd, ended, pattern)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// endpoint waits until an MCP server is ready, and returns its URL.
func (p *process) endpoint() string {
	p.t.Helper()
	return p.waitFor(`MCP endpoint:?\s+(http://\S+)`)[1]
}

func (p *process) ended() bool {
	select {
	case <-p.group.Done():
		return true
	default:
		return false
	}
}

// wait waits for the end and returns the exit status, -1 if a signal ended the process.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.group.Done():
	case <-time.After(patience):
		require.FailNow(p.t, "the program does not end", p.cmd.String())
	}
	return p.cmd.ProcessState.ExitCode()
}

// signal sends a signal to the process alone, not to its children.
func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(sig))
}

// kill9 ends the process as a crash would.
func (p *process) kill9() {
	p.t.Helper()
	p.signal(os.Kill)
	p.wait()
}

// output is what a process wrote to a stream so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// lines are the lines that are complete.
func (o *output) lines() string {
	text := o.String()
	return text[:strings.LastIndexByte(text, '\n')+1]
}

// node runs a script with the pinned Node.js: a file of this folder, or the path of a [tool].
func node(t testing.TB, env []string, script string, args ...string) *process {
	t.Helper()
	return run(t, env, tool(t, "node"), append([]string{script}, args...)...)
}

// tool is the path of a command of the npm packages that package.json pins.
func tool(t testing.TB, name string) string {
	t.Helper()
	return filepath.Join(nodeModules(t), ".bin", name)
}

// nodeModules is the directory of the npm packages that package.json pins. They are installed once for a lock file.
func nodeModules(t testing.TB) string {
	t.Helper()
	dir, err := modules()
	require.NoError(t, err)
	return dir
}

func installModules() (string, error) {
	dir, err := filepath.Abs("node_modules")
	if err != nil {
		return "", err
	}
	wanted, err := digest("package.json", "package-lock.json")
	if err != nil {
		return "", err
	}
	stamp := filepath.Join(dir, ".installed")
	if installed, err := os.ReadFile(stamp); err == nil && string(installed) == wanted {
		return dir, nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("the end-to-end tests run the official MCP conformance suite and clients from npm: install Node.js 20 or later, which brings npm: %w", err)
	}
	// No package needs its install scripts, and what they would fetch is in no lock file.
	install := exec.Command(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	if output, err := install.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", install, err, output)
	}
	if _, err := os.Stat(filepath.Join(dir, ".bin", "node")); err != nil {
		return "", fmt.Errorf("package.json pins no Node.js 22 for %s/%s: %w", runtime.GOOS, runtime.GOARCH, err)
	}
	return dir, os.WriteFile(stamp, []byte(wanted), 0o600)
}

func digest(files ...string) (string, error) {
	sum := sha256.New()
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		sum.Write(content)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
