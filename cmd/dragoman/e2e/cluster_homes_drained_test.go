package e2e

import (
	"bufio"
	"context"
	"fmt"
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
	home := piHome(t, all)
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
		if got := <-resultOverHTTP(t, others[0], idle[i]); !strings.Contains(got, "AT ONCE") {
			t.Fatalf("got %s, want the result", got)
		}
	}
	old.send(map[string]any{"type": "prompt", "sessionId": "mine", "message": "wait for the end"})
	<-w.asked
	for _, id := range busy { // the agent takes them one after the other
		delegateOverHTTP(t, others[0], id, "wait for the end")
	}

	drained := make(chan error, 1) // once the hub is empty
	go func() { drained <- home.Post(t.Context(), "/v1/hub/drain", struct{}{}, new(any)) }()
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
	results := map[string]<-chan string{}
	for i, id := range append(busy, idle...) {
		results[id] = resultOverHTTP(t, others[i%2], id)
	}

	for range 1 + len(idle) + len(busy) {
		w.release <- struct{}{}
	}
	old.waitFrame(`"agent_end"`, "WAIT FOR THE END")
	if err := <-drained; err != nil {
		t.Errorf("the drain: got %v, want the hub empty", err)
	}
	for id, result := range results {
		if got := <-result; !strings.Contains(got, "WAIT FOR THE END") {
			t.Errorf("%s: got %q, want the result", id, got)
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

// resultOverHTTP reads the stream of a peer, and returns where the first result in it will be; "" if
// there is none.
func resultOverHTTP(t *testing.T, at *clusterHub, peer string) <-chan string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.URL+"/acp?agent_id="+peer, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := at.HTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	result, ended := make(chan string, 1), make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	go func() {
		defer close(ended)
		defer close(result)
		defer resp.Body.Close()
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && strings.Contains(data, `"result"`) {
				result <- data
				return
			}
		}
	}()
	return result
}
