package devserver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"taskbridge/internal/procgroup"
)

// cliPackage is the Temporal CLI, which holds the dev server. The tools module pins its version.
const cliPackage = "github.com/temporalio/cli/cmd/temporal"

var toolsModule = regexp.MustCompile(`(?m)^module taskbridge/tools\s*$`)

// Binary returns the path of a Temporal CLI: the one on PATH, else one built from the project's tools module, else one
// downloaded by the Temporal SDK. Both are made once and kept in the user's cache directory. A build takes up to ten
// minutes the first time, so Binary says on log what it does.
func Binary(ctx context.Context, log io.Writer) (string, error) {
	if path, err := exec.LookPath("temporal"); err == nil {
		return path, nil
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	path, buildErr := buildInTools(ctx, cache, log)
	if buildErr == nil || ctx.Err() != nil {
		return path, buildErr
	}
	path, downloadErr := download(ctx, cache, log)
	if downloadErr != nil {
		return "", fmt.Errorf("no Temporal dev server; install the Temporal CLI and put it on PATH: %w",
			errors.Join(errors.New("temporal is not on PATH"), buildErr, downloadErr))
	}
	return path, nil
}

// cacheDir makes the directory for binaries.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory for the Temporal dev server: %w", err)
	}
	dir := filepath.Join(base, "taskbridge")
	return dir, os.MkdirAll(dir, 0o755)
}

func buildInTools(ctx context.Context, cache string, log io.Writer) (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	tools, err := findTools(wd)
	if err != nil {
		return "", err
	}
	return build(ctx, tools, cache, log)
}

// findTools looks for the tools module in dir and its parents.
func findTools(dir string) (string, error) {
	for at := dir; ; at = filepath.Dir(at) {
		tools := filepath.Join(at, "tools")
		mod, err := os.ReadFile(filepath.Join(tools, "go.mod"))
		if err == nil && toolsModule.Match(mod) {
			return tools, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("the module taskbridge/tools is neither in %s nor above it", dir)
		}
	}
}

// build returns the CLI built in tools, and builds it unless the cache has one of the same pinned version.
func build(ctx context.Context, tools, cache string, log io.Writer) (string, error) {
	digest, err := pinDigest(tools)
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, executable("temporal-"+digest))
	return path, once(ctx, path, func() error {
		begin := time.Now()
		_, _ = fmt.Fprintf(log, "building the Temporal dev server, once; on two cores this takes 6 to 9 minutes, with a warm Go cache one\n")
		if err := goBuild(ctx, tools, path); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(log, "built %s in %s\n", path, time.Since(begin).Round(time.Second))
		return nil
	})
}

// pinDigest identifies the versions of the CLI and of all that is built into it.
func pinDigest(tools string) (string, error) {
	hash := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(tools, name))
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(hash, "%d\n%s", len(content), content)
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:8]), nil
}

// goBuild builds to a temporary name and renames, so that path is whole if it exists.
func goBuild(ctx context.Context, tools, path string) error {
	partial := path + ".partial"
	output := procgroup.NewTail(4 << 10)
	cmd := exec.Command("go", "build", "-o", partial, cliPackage)
	cmd.Dir = tools
	cmd.Env = append(cmd.Environ(), "GOWORK=off")
	cmd.Stdout, cmd.Stderr = output, output
	if err := run(ctx, cmd); err != nil {
		_ = os.Remove(partial)
		text, _ := output.Text()
		return fmt.Errorf("build the Temporal dev server in %s: %w\n%s", tools, err, text)
	}
	return os.Rename(partial, path)
}

// run runs cmd and ends it, the compilers it started too, when ctx is done.
func run(ctx context.Context, cmd *exec.Cmd) error {
	group, err := procgroup.Start(cmd)
	if err != nil {
		return err
	}
	select {
	case <-group.Done():
		return group.Wait()
	case <-ctx.Done():
		group.Stop(time.Second)
		return ctx.Err()
	}
}

// download returns the CLI which the SDK downloads, and lets it do so unless the cache has it. The SDK downloads only
// in order to start a server, so one is started and stopped.
func download(ctx context.Context, cache string, log io.Writer) (string, error) {
	path := filepath.Join(cache, executable("temporal-cli-go-sdk-"+temporal.SDKVersion)) // the SDK's name for it
	return path, once(ctx, path, func() error {
		_, _ = fmt.Fprintln(log, "downloading the Temporal dev server, once (about 60 MB)")
		server, err := testsuite.StartDevServer(ctx, testsuite.DevServerOptions{
			CachedDownload: testsuite.CachedDownload{DestDir: cache},
			ClientOptions:  &client.Options{Logger: silent()},
			Stdout:         io.Discard,
			Stderr:         io.Discard,
		})
		if err != nil {
			return fmt.Errorf("download the Temporal dev server: %w", err)
		}
		_ = server.Stop() // it has served its purpose, however it ends
		return nil
	})
}

// once runs produce unless path exists, and lets no two processes do so at the same time.
func once(ctx context.Context, path string, produce func() error) error {
	if exists(path) {
		return nil
	}
	unlock, err := lock(ctx, path+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if exists(path) { // another process was quicker
		return nil
	}
	if err := produce(); err != nil {
		return err
	}
	if !exists(path) {
		return fmt.Errorf("the Temporal dev server was not put at %s", path)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func executable(name string) string {
	if runtime.GOOS == "windows" {
		return name + ".exe"
	}
	return name
}

// silent keeps the SDK from logging on standard error.
func silent() sdklog.Logger { return sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)) }
