//go:build !linux

package reaper

import "syscall"

// adopt does nothing: orphans belong to the first process here.
func adopt() {}

// attributes put the program into a group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killAll kills the group of the program.
func killAll(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
