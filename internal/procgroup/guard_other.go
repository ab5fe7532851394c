//go:build !unix

package procgroup

import "os/exec"

// guard stands for the child alone: there are no process groups here.
type guard struct{ cmd *exec.Cmd }

func startGuarded(cmd *exec.Cmd) (*guard, error) {
	return &guard{cmd: cmd}, cmd.Start()
}

func (g *guard) terminate() { g.kill() }

func (g *guard) kill() { _ = g.cmd.Process.Kill() } // fails only when the child has ended

func (g *guard) release() {}

func (g *guard) leftovers() bool { return false }
