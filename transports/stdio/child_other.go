//go:build !unix

package stdio

import (
	"os"
	"os/exec"
)

// Without process groups, only the process itself is killed, and at once.

func ownGroup(*exec.Cmd) {}

func terminate(p *os.Process) { _ = p.Kill() }

func kill(p *os.Process) { _ = p.Kill() }

func restrict(uintptr) {}
