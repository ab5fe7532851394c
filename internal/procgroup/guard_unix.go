//go:build unix

package procgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// watchdog leads the process group. Its standard input is a pipe whose other end only the owner holds, so the read
// ends when the owner is gone, however it went. It then gives the group two seconds to terminate before the kill.
//
// It ignores what is sent to the group by Stop, or by members to their own group, and says "ready" once it does.
const watchdog = `trap '' HUP INT QUIT TERM PIPE ALRM USR1 USR2
echo ready
read -r _
kill -TERM 0
sleep 2
kill -KILL 0`

// guard holds a process group together. The watchdog is the group's leader and is a member from before the child to
// after the last process. So there is no instant at which the child runs unguarded, and the group ID cannot be reused
// by a stranger while it may still be signalled.
type guard struct {
	watchdog *exec.Cmd // holds the write end of its standard input open until it is waited for

	mu       sync.Mutex
	released bool
}

// startGuarded starts cmd in a new process group under a watchdog.
func startGuarded(cmd *exec.Cmd) (*guard, error) {
	g, err := startWatchdog()
	if err != nil {
		return nil, fmt.Errorf("start the watchdog of a process group: %w", err)
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pgid = g.pgid()
	if err := cmd.Start(); err != nil {
		g.release()
		return nil, err
	}
	return g, nil
}

func startWatchdog() (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", watchdog)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/bin:/bin"} // of sleep
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, stdin.Close())
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	g := &guard{watchdog: cmd}
	_, err = io.ReadFull(stdout, make([]byte, len("ready\n")))
	_ = stdout.Close()
	if err != nil {
		g.release()
		return nil, fmt.Errorf("/bin/sh ended early: %w", err)
	}
	return g, nil
}

func (g *guard) pgid() int { return g.watchdog.Process.Pid }

func (g *guard) terminate() { g.signal(syscall.SIGTERM) }

func (g *guard) kill() { g.signal(syscall.SIGKILL) }

// signal sends sig to the whole group, unless the group has been released and its ID may belong to someone else.
func (g *guard) signal(sig syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.released {
		_ = syscall.Kill(-g.pgid(), sig) // fails only for processes that changed their user
	}
}

// release kills what is left of the group, the watchdog too.
func (g *guard) release() {
	g.kill()
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.watchdog.Wait() // "signal: killed"
	g.released = true
}

// leftovers tells whether the group has living members besides the watchdog. It knows on systems with a Linux-like
// /proc and says no on others.
func (g *guard) leftovers() bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // fails only for a bad pattern
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err == nil && g.isMember(stat) {
			return true
		}
	}
	return false
}

// isMember reads a process's /proc stat line, "pid (name) state parent group …". The name may contain anything.
func (g *guard) isMember(stat []byte) bool {
	pid, rest, _ := bytes.Cut(stat, []byte(" "))
	fields := bytes.Fields(rest[bytes.LastIndexByte(rest, ')')+1:])
	if len(fields) < 3 || string(fields[0]) == "Z" {
		return false
	}
	group := strconv.Itoa(g.pgid())
	return string(fields[2]) == group && string(pid) != group
}
