package e2e

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// asProcess1 makes a command process 1 of a namespace of its own, as in a container.
func asProcess1(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}

// childrenOf returns the children of a process, each with its state.
func childrenOf(t *testing.T, pid int) (all []string) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		var state string
		var parent int
		if _, err := fmt.Sscan(rest, &state, &parent); err == nil && parent == pid {
			all = append(all, state)
		}
	}
	return all
}

// Whose parent has ended is a child of process 1, and a zombie until that waits for it.
func TestProcess1WaitsForWhatAgentsLeave(t *testing.T) {
	h := newTestHub(t, nil)
	cmd := program(t, "agent", "--name", "leaver", "--hub", h.url(), "--", "sh", "-c", `(sleep 600 >&- 2>&- &) && (: &) && echo hi`)
	asProcess1(cmd)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		notRun(t, "this machine makes no namespace of processes: "+err.Error())
		return
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended if all went well
		_ = cmd.Wait()
	})
	h.await(t, "joined leaver")
	for range 3 {
		if code, out, text := run(t, "ask", "leaver", "x", "--hub", h.url()); code != command.ExitDone || out != "hi\n" {
			t.Fatalf("got %d, %q and %q, want hi", code, out, text)
		}
	}
	for end := time.Now().Add(watchdog); ; <-time.After(time.Millisecond) {
		if all := childrenOf(t, cmd.Process.Pid); len(all) == 1 && all[0] != "Z" { // the program
			break
		} else if time.Now().After(end) {
			t.Fatalf("got the children %q of process 1, want the program alone", all)
		}
	}

	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	left := false
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		left = left || strings.Contains(lines.Text(), `"left"`)
	}
	if err := cmd.Wait(); err != nil || !left {
		t.Errorf("got %v and left %t, want the signal passed on and a normal end", err, left)
	}
}

func TestProcess1EndsAsTheProgramDoes(t *testing.T) {
	cmd := program(t, "agent", "--no-such-flag")
	asProcess1(cmd)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		notRun(t, "this machine makes no namespace of processes: "+err.Error())
		return
	}
	if code := cmd.ProcessState.ExitCode(); code != command.ExitUsage || !strings.Contains(string(out), "no-such-flag") {
		t.Errorf("got %d and %s, want %d and what the program says", code, out, command.ExitUsage)
	}
}
