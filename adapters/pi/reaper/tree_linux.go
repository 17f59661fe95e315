package reaper

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// adopt makes this process the parent of its orphaned descendants (PR_SET_CHILD_SUBREAPER of
// prctl(2)). If the kernel does not support it, they escape.
func adopt() {
	const setChildSubreaper = 36
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0)
}

// attributes returns the attributes that give the program its own process group and kill it
// when its reaper dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// killAll kills every descendant of this process. Without /proc it kills the process group
// of the program.
func killAll(pid int) {
	children := map[int][]int{}
	entries, _ := os.ReadDir("/proc") // a partial list is better than none
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			parent := parentOf(pid)
			children[parent] = append(children[parent], pid)
		}
	}
	if len(children) == 0 {
		_ = syscall.Kill(-pid, syscall.SIGKILL) // it may have ended
	}
	for next := children[os.Getpid()]; len(next) > 0; next = next[1:] {
		_ = syscall.Kill(next[0], syscall.SIGKILL) // it may have ended
		next = append(next, children[next[0]]...)
	}
}

// parentOf returns the parent of a process, or 0. It is the second field after the name,
// which is in parentheses and may itself contain parentheses (proc_pid_stat(5)).
func parentOf(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1])) // 0 on an error
	return parent
}
