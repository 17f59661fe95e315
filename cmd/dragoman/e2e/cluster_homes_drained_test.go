package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	acpwire "github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
)

// While a hub that has the sessions of clients is drained, who comes to another hub is served there,
// and who was there before gets what it has asked for.
func TestNewClientsAreServedWhileAHomeIsDrained(t *testing.T) {
	t.Parallel()
	all := startCluster(t, 3)
	old := piAt(t, all[0])
	home := piHome(all)
	var others hubCluster
	for _, h := range all {
		if h != home {
			others = append(others, h)
		}
	}
	w := joinWorker(t, others[0], "worker")
	for _, h := range all {
		h.until(h.name+" knows the agent", func() error { return h.Get(t.Context(), "/v1/agents/worker", new(any)) })
	}
	thread := "thread-" + core.NewID()
	for _, command := range []map[string]any{
		{"type": "create_session", "sessionId": "mine", "agent": "worker", "thread": thread},
		{"type": "switch_session", "sessionId": "mine"},
	} {
		if f := old.do(command); !f.Success {
			t.Fatalf("%s: got %s", command["type"], f.Raw)
		}
	}
	var idle, busy []string // peers of ACP over HTTP: more than there are hubs, so that each has some
	for i := range 8 {
		idle, busy = append(idle, fmt.Sprint("idle-", i)), append(busy, fmt.Sprint("busy-", i))
		delegateOverHTTP(t, others[0], idle[i], "at once")
		if got := resultOverHTTP(t, others[0], idle[i]); !strings.Contains(got, "AT ONCE") {
			t.Fatalf("got %s, want the result", got)
		}
	}
	old.send(map[string]any{"type": "prompt", "sessionId": "mine", "message": "wait for the end"})
	<-w.asked
	for _, id := range busy { // the agent takes them one after the other
		delegateOverHTTP(t, others[0], id, "wait for the end")
	}

	if err := home.Post(t.Context(), "/v1/hub/drain", struct{}{}, nil); err != nil {
		t.Fatal(err)
	}
	for _, h := range others {
		h.untilHubs(h.name+" sees that "+home.name+" drains", func(hubs []cluster.Hub) bool { return stateOf(hubs, home.name).State == cluster.Draining })
	}
	old.waitFrame("server_shutdown")
	for _, h := range others {
		if f := piAt(t, h).do(map[string]any{"type": "list_sessions"}); !f.Success || strings.Contains(string(f.Data), `"mine"`) {
			t.Errorf("pi at %s: got %s, want it served, without the session of the drained hub", h.name, f.Raw)
		}
	}
	next := piAt(t, others[1])
	if f := next.do(map[string]any{"type": "create_session", "sessionId": "next", "thread": thread}); !f.Success {
		t.Errorf("the thread at another hub: got %s, want a session", f.Raw)
	}
	for i, id := range idle {
		delegateOverHTTP(t, others[i%2], id, "wait for the end")
		delegateOverHTTP(t, others[i%2], fmt.Sprint("new-", i), "at once")
	}

	for range 1 + len(idle) + len(busy) {
		w.release <- struct{}{}
	}
	old.waitFrame(`"agent_end"`, "WAIT FOR THE END")
	for i, id := range append(busy, idle...) {
		if got := resultOverHTTP(t, others[i%2], id); !strings.Contains(got, "WAIT FOR THE END") {
			t.Errorf("%s: got %s, want the result", id, got)
		}
	}
	others[1].until("the thread has what the drained hub has ended", func() error {
		f := next.do(map[string]any{"type": "get_messages", "sessionId": "next"})
		return notYet(strings.Contains(string(f.Data), "WAIT FOR THE END"), string(f.Raw))
	})
	if f := next.do(map[string]any{"type": "prompt", "sessionId": "next", "message": "go on"}); !f.Success {
		t.Errorf("the next prompt: got %s, want it taken", f.Raw)
	}
	others[1].until("the conversation goes on", func() error {
		f := next.do(map[string]any{"type": "get_messages", "sessionId": "next"})
		return notYet(strings.Contains(string(f.Data), "GO ON"), string(f.Raw))
	})
}

// delegateOverHTTP has a peer post a delegate for the agent worker, which is taken.
func delegateOverHTTP(t *testing.T, at *clusterHub, peer, task string) {
	t.Helper()
	e := acpwire.Envelope{ID: core.NewID(), From: peer, To: "worker", TS: time.Now().UnixMilli(), Kind: acpwire.KindDelegate}
	e.Payload = plainJSON(acpwire.Delegate{Task: task, DeadlineMS: watchdog.Milliseconds(), ReportBack: new(true)})
	if status, text := said(t, at, http.MethodPost, "/acp", string(e.Encode()), "X-Agent-Id: "+peer); status != http.StatusOK || !strings.Contains(text, `"ack"`) {
		t.Fatalf("%s at %s: got %d %s, want an ack", peer, at.name, status, text)
	}
}

// resultOverHTTP returns the first result that a peer reads from its stream.
func resultOverHTTP(t *testing.T, at *clusterHub, peer string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	var result string
	found := errors.New("found")
	err := streamOf(ctx, at, "/acp?agent_id="+peer, func(data string) error {
		if strings.Contains(data, `"result"`) {
			result = data
			return found
		}
		return nil
	})
	if !errors.Is(err, found) {
		t.Fatalf("%s at %s: got %v, want a result", peer, at.name, err)
	}
	return result
}

// streamOf reads the data of server-sent events until take returns an error.
func streamOf(ctx context.Context, at *clusterHub, path string, take func(data string) error) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.URL+path, nil)
	if err != nil {
		return err
	}
	resp, err := at.HTTP.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if err := take(data); err != nil {
				return err
			}
		}
	}
	return errors.Join(io.ErrUnexpectedEOF, lines.Err())
}
