// Package procgroup runs a child process in a process group of its own and sees to it that no process of that group
// outlives the owner, not even when the owner is killed with SIGKILL.
//
// A process which leaves the group by itself (setsid, a daemon) is out of reach. On systems without process groups
// only the child itself is stopped, and it does outlive an owner that is killed.
package procgroup

import (
	"errors"
	"os/exec"
	"sync"
	"time"
)

// outputDelay is how long background processes which hold the output open may keep writing after the child ended.
const outputDelay = time.Second

// Group is a running child process with all its descendants.
type Group struct {
	cmd   *exec.Cmd
	guard *guard

	mu       sync.Mutex
	deadline time.Time // end of the grace given by Stop; zero until then

	done chan struct{}
	err  error // of the child; valid once done is closed
}

// Start starts cmd in a process group of its own. It owns cmd.SysProcAttr.Setpgid and Pgid, and sets cmd.WaitDelay to
// a second unless it is set already. Let cmd.Stdout and cmd.Stderr be writers, not StdoutPipe, whose reader would race
// with the end of the child.
func Start(cmd *exec.Cmd) (*Group, error) {
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = outputDelay
	}
	guard, err := startGuarded(cmd)
	if err != nil {
		return nil, err
	}
	g := &Group{cmd: cmd, guard: guard, done: make(chan struct{})}
	go g.reap()
	return g, nil
}

// reap waits for the child, then ends what is left of the group.
func (g *Group) reap() {
	defer close(g.done)
	err := g.cmd.Wait()
	if !errors.Is(err, exec.ErrWaitDelay) { // a background process held the output: the child itself succeeded
		g.err = err
	}
	for g.inGrace() && g.guard.leftovers() {
		time.Sleep(20 * time.Millisecond)
	}
	g.guard.release()
}

// inGrace tells whether Stop was called and its grace is not over.
func (g *Group) inGrace() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Before(g.deadline)
}

// Done is closed when the child has ended and what was left of its group has been killed.
func (g *Group) Done() <-chan struct{} { return g.done }

// Wait waits until the child has ended, kills what is left of its group and returns the child's error, as
// [exec.Cmd.Wait] does. It may be called any number of times.
func (g *Group) Wait() error {
	<-g.done
	return g.err
}

// Stop asks every process of the group to terminate and kills those which have not done so after grace. It returns
// when Done is closed. It may be called at any time, repeatedly and concurrently with Wait; the first call asks, and the
// call whose grace ends first kills.
func (g *Group) Stop(grace time.Duration) {
	if g.beginStop(grace) {
		g.guard.terminate()
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-g.done:
	case <-timer.C:
		g.guard.kill()
		<-g.done
	}
}

// beginStop tells whether this is the first call of Stop.
func (g *Group) beginStop(grace time.Duration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.deadline.IsZero() {
		return false
	}
	g.deadline = time.Now().Add(grace)
	return true
}
