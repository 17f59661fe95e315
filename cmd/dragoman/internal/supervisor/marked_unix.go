//go:build unix

package supervisor

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// endMarked kills every process with a variable in its environment, where the system shows
// environments.
func endMarked(variable string) {
	for range 100 { // those that are killed may have started others meanwhile
		left := marked(variable)
		if len(left) == 0 {
			return
		}
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// marked returns the processes with a variable in their environment, where the system shows
// environments; the caller is not one of them.
func marked(variable string) (pids []int) {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range all {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile("/proc/" + entry.Name() + "/environ")
		if err == nil && strings.Contains("\x00"+string(env), "\x00"+variable+"\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}
