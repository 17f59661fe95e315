package e2e

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core/cluster"
)

// serveCluster starts hubs of these names, each a process, and returns them once they are a cluster.
func serveCluster(t *testing.T, names ...string) map[string]*servedHub {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("a secret of this test alone"), 0o600); err != nil {
		t.Fatal(err)
	}
	var peers []string
	for range names {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		peers = append(peers, l.Addr().String())
		l.Close()
	}
	all := map[string]*servedHub{}
	var mu sync.Mutex
	var starting sync.WaitGroup
	for i, name := range names {
		cmd := program(t, "serve", "--hub-name", name, "--data-dir", t.TempDir(), "--cluster-listen", peers[i], "--cluster-peers", strings.Join(peers, ","),
			"--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--pi-addr", "", "--log-format", "json")
		cmd.Env = append(cmd.Env, "DRAGOMAN_CLUSTER_SECRET_FILE="+secret)
		starting.Go(func() {
			h := serveHubCmd(t, cmd, "interval")
			mu.Lock()
			defer mu.Unlock()
			all[name] = h
		})
	}
	starting.Wait()
	if len(all) != len(names) {
		t.Fatalf("got %d hubs, want %d", len(all), len(names))
	}
	for name, h := range all {
		h.untilHubs(t, func(hubs []cluster.Hub) bool { return len(hubs) == len(names) && allAre(hubs, cluster.Up) }, name+" hears all")
		h.waitReadiness(t, http.StatusOK, nil)
	}
	return all
}

func allAre(hubs []cluster.Hub, s cluster.State) bool {
	for _, h := range hubs {
		if h.State != s {
			return false
		}
	}
	return true
}

// untilHubs waits until the hub sees its cluster so.
func (h *servedHub) untilHubs(t *testing.T, so func([]cluster.Hub) bool, what string) {
	t.Helper()
	for end := time.Now().Add(watchdog); ; {
		var v struct{ Cluster struct{ Hubs []cluster.Hub } }
		if err := h.Get(t.Context(), "/v1/hub", &v); err == nil && so(v.Cluster.Hubs) {
			return
		} else if time.Now().After(end) {
			t.Fatalf("got %+v and %v, want that %s", v.Cluster.Hubs, err, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestThreeHubsAreOneForTheirUsers(t *testing.T) {
	all := serveCluster(t, "a", "b", "c")
	ctx := t.Context()
	go runWith(ctx, "", "agent", "--dialect", "coven", "--name", "shout", "--hub", all["b"].URL, "--", "tr", "a-z", "A-Z")
	for name, h := range all {
		code, out, stderr := run(t, "ask", "shout", "hello", "--hub", h.URL, "--wait=20s")
		if code != command.ExitDone || out != "HELLO\n" {
			t.Errorf("asked at %s: got %d, %q and %q, want HELLO", name, code, out, stderr)
		}
	}
	all["b"].kill()
	for _, name := range []string{"a", "c"} {
		all[name].untilHubs(t, func(hubs []cluster.Hub) bool {
			return len(hubs) == 3 && hubs[1].State == cluster.Gone && hubs[1].TakenBy != nil
		}, name+" knows who has taken b over")
		if code, _, stderr := run(t, "ask", "shout", "hello", "--hub", all[name].URL); code != command.ExitFailed || !strings.Contains(stderr, "no agent") {
			t.Errorf("asked at %s after b has died: got %d and %q, want the agent gone", name, code, stderr)
		}
	}
	if code, out, _ := run(t, "hubs", "--hub", all["a"].URL); code != command.ExitDone || !strings.Contains(out, "gone") {
		t.Errorf("dragoman hubs: got %d and %s, want b gone", code, out)
	}
}
