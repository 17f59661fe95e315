package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
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
