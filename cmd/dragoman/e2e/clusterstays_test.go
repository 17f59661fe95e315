package e2e

import (
	"context"
	"slices"
	"testing"

	"github.com/coder/websocket"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// One hub is drained and stopped. Who is connected to another one stays connected there, also a client
// of pi, unless its sessions are at the hub that stops.
func TestConnectionsOfOtherHubsSurviveADrain(t *testing.T) {
	t.Parallel()
	all := startCluster(t, 3)
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	conns := map[string]*websocket.Conn{}
	closed := make(chan string, 10)
	piAt(t, all[0])
	home := piHome(t, all)
	drained := slices.IndexFunc(all, func(h *clusterHub) bool { return h != home })
	stay := slices.Delete(slices.Clone(all), drained, drained+1)
	for _, h := range stay {
		for dialect, c := range map[string]struct{ url, frame string }{
			"native":   {url: h.URL + "/ws/native?agent_id=native-" + h.name},
			"Parallax": {h.URL + "/ws/agent", `{"type":"register","id":"r","payload":{"capabilities":["x"]}}`},
			"ACP":      {url: h.URL + "/ws/acp"},
			"pi":       {url: "http://" + h.pi},
		} {
			conn, resp, err := websocket.Dial(ctx, c.url, nil)
			if err != nil {
				t.Fatalf("%s at hub %s: %v", dialect, h.name, err)
			}
			if resp.Body != nil {
				resp.Body.Close()
			}
			defer conn.CloseNow()
			if c.frame != "" {
				if err := conn.Write(ctx, websocket.MessageText, []byte(c.frame)); err != nil {
					t.Fatalf("%s at hub %s: %v", dialect, h.name, err)
				}
			}
			name := dialect + " at hub " + h.name
			conns[name] = conn
			go func() {
				for {
					if _, _, err := conn.Read(ctx); err != nil {
						closed <- name + ": " + err.Error()
						return
					}
				}
			}()
		}
	}
	joinWorker(t, stay[1], "worker") // over gRPC, and comes only once
	if code, _, stderr := run(t, "drain", "--hub", all[drained].URL); code != command.ExitDone {
		t.Fatalf("dragoman drain: got %d and %q, want the hub empty", code, stderr)
	}
	if code := all[drained].interrupt(); code != 0 {
		t.Errorf("stopping the drained hub %s: got the exit code %d, want 0", all[drained].name, code)
	}
	if code, out, stderr := run(t, "ask", "--hub", stay[0].URL, "worker", "still here"); code != command.ExitDone || out != "STILL HERE\n" {
		t.Errorf("got %d, %q and %q, want the answer of the agent at another hub", code, out, stderr)
	}
	for name, conn := range conns {
		if err := conn.Ping(ctx); err != nil {
			t.Errorf("%s: got %v, want it connected", name, err)
		}
	}
	select {
	case why := <-closed:
		t.Errorf("got %s, want it connected", why)
	default:
	}
}
