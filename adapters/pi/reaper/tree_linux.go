package reaper

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// adopt makes orphans of this process's descendants its children, PR_SET_CHILD_SUBREAPER
// of prctl(2). Where the kernel does not, they escape.
func adopt() {
	const setChildSubreaper = 36
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0)
}

// attributes put the program into a group of its own, and have it die with its reaper.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// killAll kills every descendant of this process; where nobody tells which those are,
// the group of the program.
func killAll(pid int) {
	children := map[int][]int{}
	entries, _ := os.ReadDir("/proc") // what there is of it
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

// parentOf reads the parent of a process, or 0: the second field behind its name,
// which stands in parentheses and may have some of its own (proc_pid_stat(5)).
func parentOf(pid int) int {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(fields[1])) // 0 is nobody's
	return parent
}
