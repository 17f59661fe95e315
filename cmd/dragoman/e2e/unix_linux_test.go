package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestAnotherUserIsToldForEachCommandThatHeMayNotUseTheUnixSocket(t *testing.T) {
	if os.Geteuid() != 0 {
		notRun(t, "only root can connect as another user")
	}
	dir, err := os.MkdirTemp("", "socket") //nolint:usetesting // the directories of t.TempDir are closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "pi")
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens, c.PiSocket = tokensFile(t, "alice"), path })
	for file, mode := range map[string]os.FileMode{dir: 0o711, path: 0o666} { // as somebody may have opened it
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	const other = 65534
	conn, err := dialAs(other, path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, `{"id":"1","type":"list_sessions"}`+"\n"+`{"type":"prompt","sessionId":"s","message":"hello"}`+"\nno command\n")
	const why = `"success":false,"error":"the user with the id 65534 may not use this socket: connect as the user that runs the hub, or with a token over WebSocket"}`
	lines := bufio.NewScanner(conn)
	for _, want := range []string{`{"id":"1","type":"response","command":"list_sessions",` + why, `{"type":"response","command":"prompt",` + why, `{"type":"response","command":"unknown",` + why} {
		if !lines.Scan() || lines.Text() != want {
			t.Errorf("got %s (%v), want %s and no event", lines.Text(), lines.Err(), want)
		}
	}
	if n := h.service.Hub().Counters()["auth.refused.unix"]; n != 1 {
		t.Errorf("got %d refusals counted, want 1", n)
	}
	if sessions := h.service.Hub().Counters()["pi.sessions"]; sessions != 0 {
		t.Errorf("got %d sessions, want none", sessions)
	}
}

// dialAs connects to a Unix socket as another user, which only one thread of the process becomes.
func dialAs(uid int, path string) (net.Conn, error) {
	type dialled struct {
		conn net.Conn
		err  error
	}
	result := make(chan dialled)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with the goroutine
		conn, err := func() (net.Conn, error) {
			if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
				return nil, errno
			}
			fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
			if err != nil {
				return nil, err
			}
			file := os.NewFile(uintptr(fd), path)
			defer file.Close()
			if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err != nil {
				return nil, errors.Join(errors.New("connect"), err)
			}
			return net.FileConn(file)
		}()
		result <- dialled{conn, err}
	}()
	r := <-result
	return r.conn, r.err
}
