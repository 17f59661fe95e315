//go:build unix && !linux

package reaper

import "syscall"

// adopt does nothing: on these systems orphans become children of process 1.
func adopt() {}

// attributes returns the attributes that give the program its own process group.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killAll kills the process group of the program.
func killAll(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
