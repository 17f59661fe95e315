package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

// openUnix connects to a Unix socket.
func openUnix(t *testing.T, path string) frames {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	c := stdio.New(conn, conn, stdio.Options{})
	cut := func() { c.Close(link.Reason{Cause: link.Normal}) }
	t.Cleanup(cut)
	return frames{c, cut}
}

// ownName is the principal of the user that runs the hub.
func ownName() string {
	id := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "uid-" + id
}

// joinEcho connects an agent that answers with the name of the principal that asks, until the test
// ends.
func joinEcho(t *testing.T, h *testHub) {
	t.Helper()
	s := h.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "who", Component: true}, Dialect: "test"})
	if err := s.Join(core.Card{ID: "who", Dialect: "test", MaxConcurrent: 8, Features: core.FeatureStreaming | core.FeatureCancellation}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			b, err := s.Next(context.Background())
			if err != nil {
				return
			}
			for _, e := range b.Events {
				if _, is := e.Body.(core.Assigned); !is {
					continue
				}
				from := b.Task.From()
				for _, body := range []core.Body{core.Text{Text: fmt.Sprintf("%s, authenticated %v, operator %v", from.ID, from.Authenticated, from.Operator)}, core.Done{}} {
					if err := s.Report(b.Task.ID(), body, nil); err != nil {
						t.Errorf("answering: got %v, want no error", err)
					}
				}
			}
		}
	}()
	t.Cleanup(func() {
		s.Close(nil)
		<-done
	})
}

func TestTheUserOfTheHubIsAnOperatorOverTheUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pi")
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens, c.PiSocket = tokensFile(t, "alice"), path })
	joinEcho(t, h)
	c := connectPiClient(t, openUnix(t, path))
	defer c.leave()
	if got, want := c.begin(query{to: "who", content: "am I"}).wait(t).Text, ownName()+", authenticated true, operator true"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// A reload does not end the connection, as if the credential had gone.
	if err := h.service.Reload(h.config); err != nil {
		t.Fatal(err)
	}
	if got := c.begin(query{to: "who", content: "am still"}).wait(t); !strings.HasPrefix(got.Text, ownName()) {
		t.Errorf("after a reload: got %+v, want %s", got, ownName())
	}
}

func TestAnotherUserIsToldForEachCommandThatHeMayNotUseTheUnixSocket(t *testing.T) {
	if os.Geteuid() != 0 {
		notRun(t, "only root can connect as another user")
	}
	dir, err := os.MkdirTemp("", "socket") // the directories of t.TempDir are closed to others
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

// The mode of the socket lets its own user in alone; who that is matters only with authentication.
func TestAnOpenHubAsksNobodyOnTheUnixSocketWhoHeIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pi")
	h := newTestHub(t, func(c *config.Config) { c.PiSocket = path })
	joinEcho(t, h)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got the mode %v (%v), want 0600", info.Mode(), err)
	}
	c := connectPiClient(t, openUnix(t, path))
	defer c.leave()
	if got := c.begin(query{to: "who", content: "am I"}).wait(t).Text; !strings.HasPrefix(got, pi.Name+"-") && !strings.Contains(got, "authenticated false") {
		t.Errorf("got %q, want somebody who proved nothing", got)
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
