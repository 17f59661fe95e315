//go:build !linux

package stdio

import "os/exec"

// exitWatch does nothing: os.Process.Wait waits.
type exitWatch struct{}

func watchExit(*exec.Cmd) *exitWatch { return &exitWatch{} }

func (*exitWatch) wait() {}
