package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/coder/websocket"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

// A key registers at one hub, is approved at another and revoked at a third.
func TestAPrincipalThatRegisteredAtOneHubIsKnownAtAll(t *testing.T) {
	t.Setenv("DRAGOMAN_AUTH_TOKENS", tokensFile(t, "alice", "root"))
	t.Setenv("DRAGOMAN_AUTH_REGISTRATION", "pending")
	all := newCluster(t, 3)
	for _, h := range all {
		h.Client = client.Hub{URL: h.URL, Token: "root"}.Client()
	}
	all.start()
	a, b, c := all[0], all[1], all[2]
	key := newSSHKey(t)
	comesIn := func(h *clusterHub) bool { return key.get(t, h.URL+"/v1/agents") == http.StatusOK }
	decide := func(at *clusterHub, act, name string) {
		t.Helper()
		if code, out, stderr := run(t, "principals", act, name, "--hub", at.URL, "--token", "root"); code != command.ExitDone {
			t.Fatalf("%s at %s: got %d, %s and %s, want it done", act, at.name, code, out, stderr)
		}
	}
	shows := func(h *clusterHub, name string, status core.PrincipalStatus) {
		t.Helper()
		h.until(fmt.Sprintf("hub %s shows %s as %s", h.name, name, status), func() error {
			for _, p := range principalsOf(t, h.URL) {
				if p.Principal == name && p.Status == status {
					return nil
				}
			}
			return fmt.Errorf("got %+v", principalsOf(t, h.URL))
		})
	}
	if comesIn(a) {
		t.Fatal("an unknown key came in at a, want it to wait")
	}
	name := principalsOf(t, a.URL)[0].Principal
	for _, h := range all {
		shows(h, name, core.PrincipalPending)
	}
	decide(b, "approve", name)
	for _, h := range all {
		shows(h, name, core.PrincipalApproved)
		if !comesIn(h) {
			t.Errorf("the key did not come in at %s, want it approved at all hubs", h.name)
		}
	}
	conn, _, err := websocket.Dial(t.Context(), "ws"+a.URL[len("http"):]+service.NativePath, &websocket.DialOptions{HTTPHeader: key.header(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	b.kill()
	a.until("b is gone", func() error { // who is away learns it when it starts
		_, _, stderr := run(t, "principals", "revoke", name, "--hub", c.URL, "--token", "root")
		if stderr == "" {
			return nil
		}
		return fmt.Errorf("got %s", stderr)
	})
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	for err == nil {
		_, _, err = conn.Read(ctx)
	}
	if ctx.Err() != nil {
		t.Error("its session at a is open still, want it ended")
	}
	b.start()
	b.untilReady()
	for _, h := range all {
		shows(h, name, core.PrincipalRevoked)
		if comesIn(h) {
			t.Errorf("the key came in at %s after it was revoked at c", h.name)
		}
	}
}
