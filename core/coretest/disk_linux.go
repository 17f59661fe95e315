package coretest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// Disk is a small disk that a test may fill: a private file system in memory. If none can be
// mounted, as in most containers, filling the disk keeps files of this process and its
// children from growing.
type Disk struct {
	// Dir is an empty directory on the disk.
	Dir     string
	mounted bool
}

// diskSize is the size of a Disk.
const diskSize = 16 << 20

// onDisk is set to the name of the test in the process in which the test has its disk.
const onDisk = "CORETEST_ON_DISK"

// OnDisk runs a test that needs a Disk in a process of its own, so that mounts and limits
// affect nothing else. t must not be that of a subtest.
func OnDisk(t *testing.T, test func(*testing.T, *Disk)) {
	t.Helper()
	if os.Getenv(onDisk) != t.Name() {
		inOwnProcess(t)
		return
	}
	d := &Disk{Dir: t.TempDir()}
	d.mounted = syscall.Mount("none", d.Dir, "tmpfs", 0, fmt.Sprintf("size=%d", diskSize)) == nil
	if d.mounted {
		t.Cleanup(func() {
			if err := syscall.Unmount(d.Dir, syscall.MNT_DETACH); err != nil {
				t.Errorf("unmounting the disk: got %v, want no error", err)
			}
		})
	}
	test(t, d)
}

// inOwnProcess runs the test again in a process of its own, with mounts of its own if that is
// allowed.
func inOwnProcess(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run := func(attr *syscall.SysProcAttr) (*exec.Cmd, *strings.Builder, error) {
		var out strings.Builder
		cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.count=1")
		cmd.Env = append(os.Environ(), onDisk+"="+t.Name())
		cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = &out, &out, attr
		return cmd, &out, cmd.Start()
	}
	own := []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	gids := []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	cmd, out, err := run(&syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: own, GidMappings: gids})
	if err != nil {
		cmd, out, err = run(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("on a disk of its own: got %v, want the test to pass:\n%s", err, out)
	}
}

// Fill fills the disk up to about that many bytes.
func (d *Disk) Fill(t *testing.T, leave int64) {
	t.Helper()
	if !d.mounted {
		d.limit(t, 0)
		return
	}
	f, err := os.Create(d.filler())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for chunk := make([]byte, 64<<10); len(chunk) > 0; {
		_, err := f.Write(chunk)
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		if err != nil {
			chunk = chunk[:len(chunk)/2]
		}
	}
	size, err := f.Seek(0, 1)
	if err == nil {
		err = f.Truncate(size - leave)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Free makes room on a disk that was filled.
func (d *Disk) Free(t *testing.T) {
	t.Helper()
	if !d.mounted {
		d.limit(t, ^uint64(0))
		return
	}
	if err := os.Remove(d.filler()); err != nil {
		t.Fatal(err)
	}
}

func (d *Disk) filler() string { return filepath.Join(d.Dir, "filler") }

// limit bounds the files of this process and its children. The race detector and the
// coverage of tests write theirs at the end.
func (d *Disk) limit(t *testing.T, size uint64) {
	t.Helper()
	pids := []int{os.Getpid()}
	lists, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range lists {
		children, _ := os.ReadFile(list) // the thread may have ended
		for _, child := range strings.Fields(string(children)) {
			var pid int
			if _, err := fmt.Sscan(child, &pid); err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	for _, pid := range pids {
		var r syscall.Rlimit
		if err := prlimit(pid, nil, &r); err != nil {
			t.Fatal(err)
		}
		r.Cur = min(size, r.Max)
		if err := prlimit(pid, &r, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func prlimit(pid int, set, get *syscall.Rlimit) error {
	_, _, err := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(get)), 0, 0)
	if err != 0 {
		return fmt.Errorf("the limit on files of process %d: %w", pid, err)
	}
	return nil
}
