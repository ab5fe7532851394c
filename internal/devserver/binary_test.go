package devserver

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
)

// fakeTools makes a tools module whose CLI is a program that says "first"; it builds in a moment.
func fakeTools(t *testing.T) (tools string) {
	t.Helper()
	tools = filepath.Join(t.TempDir(), "tools")
	write(t, filepath.Join(tools, "go.mod"), `module taskbridge/tools
go 1.26
require github.com/temporalio/cli v0.0.0
replace github.com/temporalio/cli => ./cli
`)
	write(t, filepath.Join(tools, "go.sum"), "")
	write(t, filepath.Join(tools, "cli", "go.mod"), "module github.com/temporalio/cli\n")
	writeProgram(t, tools, `package main; func main() { println("first") }`)
	return tools
}

func writeProgram(t *testing.T, tools, source string) {
	t.Helper()
	write(t, filepath.Join(tools, "cli", "cmd", "temporal", "main.go"), source)
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

func output(t *testing.T, program string) string {
	t.Helper()
	out, err := exec.Command(program).CombinedOutput()
	require.NoError(t, err)
	return string(out)
}

// lockedBuffer is written to by several builds.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func TestBuildOfThoseWhoStartTogetherHappensOnce(t *testing.T) {
	t.Parallel()
	tools, cache := fakeTools(t), t.TempDir()
	var log lockedBuffer
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			path, err := build(t.Context(), tools, cache, &log)
			assert.NoError(t, err)
			assert.FileExists(t, path)
		})
	}
	all.Wait()
	assert.Equal(t, 1, bytes.Count(log.buf.Bytes(), []byte("building the Temporal dev server")))
}

func TestBuildFollowsThePinnedVersion(t *testing.T) {
	t.Parallel()
	tools, cache := fakeTools(t), t.TempDir()
	var log bytes.Buffer
	first, err := build(t.Context(), tools, cache, &log)
	require.NoError(t, err)
	assert.Equal(t, "first\n", output(t, first))

	log.Reset()
	again, err := build(t.Context(), tools, cache, &log)
	require.NoError(t, err)
	assert.Equal(t, first, again)
	assert.Empty(t, log.String(), "nothing to do")

	write(t, filepath.Join(tools, "go.sum"), "\n") // as a bump would change it
	writeProgram(t, tools, `package main; func main() { println("second") }`)
	second, err := build(t.Context(), tools, cache, &log)
	require.NoError(t, err)
	assert.Equal(t, "second\n", output(t, second))
}

func TestFailedBuildShowsWhyAndLeavesNothing(t *testing.T) {
	t.Parallel()
	tools, cache := fakeTools(t), t.TempDir()
	writeProgram(t, tools, `package main; func main() { nonsense() }`)
	_, err := build(t.Context(), tools, cache, &bytes.Buffer{})
	require.ErrorContains(t, err, "undefined: nonsense")

	left, err := filepath.Glob(filepath.Join(cache, "*"))
	require.NoError(t, err)
	require.Len(t, left, 1)
	assert.Equal(t, ".lock", filepath.Ext(left[0]))
}

func TestToolsModuleIsFoundFromBelow(t *testing.T) {
	t.Parallel()
	tools := fakeTools(t)
	below := filepath.Join(filepath.Dir(tools), "a", "b")
	write(t, filepath.Join(below, "tools", "go.mod"), "module other/tools\n")

	found, err := findTools(below)
	require.NoError(t, err)
	assert.Equal(t, tools, found)

	_, err = findTools(t.TempDir())
	require.ErrorContains(t, err, "taskbridge/tools is neither in")
}

func TestBinaryOnPATHComesFirst(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, executable("temporal"))
	write(t, path, "")
	require.NoError(t, os.Chmod(path, 0o755))
	t.Setenv("PATH", dir)

	found, err := Binary(t.Context(), &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, path, found)
}

func TestDownloadIsTheLastResort(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", home)
	t.Setenv("PATH", "")
	t.Chdir(t.TempDir())
	cache, err := cacheDir()
	require.NoError(t, err)
	downloaded := filepath.Join(cache, executable("temporal-cli-go-sdk-"+temporal.SDKVersion))
	write(t, downloaded, "")

	found, err := Binary(t.Context(), &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, downloaded, found)
}
