package acp_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// serve handles a request in the test's bubble.
func serve(x *acp.HTTP, method, agent, envelope string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	x.ServeHTTP(w, httptest.NewRequest(method, "/acp?agent_id="+agent, strings.NewReader(envelope)))
	return w
}

// waiting returns the envelopes in the mailbox of a peer: those that a GET returns at once,
// without the initial discover.
func waiting(x *acp.HTTP, agent string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	w := httptest.NewRecorder()
	x.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/acp?agent_id="+agent, nil))
	var all []string
	for line := range strings.Lines(w.Body.String()) {
		if data, ok := strings.CutPrefix(line, "data: "); ok && !strings.Contains(data, `"discover"`) {
			all = append(all, data)
		}
	}
	return all
}

func TestTheResultsOfAForgottenPeerAreKept(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		x := acp.NewHTTP(s.hub, acp.HTTPOptions{Session: acp.Options{Peers: s.peers}, Idle: time.Minute})
		defer x.Close()
		doer := s.plainAgent("doer", core.Card{})
		serve(x, "POST", "kit", `{"id":"d1","to":"doer","kind":"delegate","payload":{"task":"one"}}`)
		serve(x, "POST", "kit", `{"id":"c1","kind":"capabilities"}`)
		s.report(doer, s.assigned(doer), core.Done{Text: "done"})
		time.Sleep(59 * time.Second)
		s.until(func() bool { _, ok := s.hub.Agent(core.Principal{Operator: true}, "kit"); return ok }, "it is remembered")
		time.Sleep(2 * time.Second)
		s.until(func() bool { _, ok := s.hub.Agent(core.Principal{Operator: true}, "kit"); return !ok }, "it is forgotten")
		kit := s.peer("kit")
		if got := expect[wire.Result](kit, wire.KindResult, "d1"); got.Outcome != "done" {
			t.Errorf("result: got %+v, want done", got)
		}
	})
}

func TestPeersAreBoundedInNumber(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		x := acp.NewHTTP(s.hub, acp.HTTPOptions{Session: acp.Options{Peers: s.peers}, MaxPeers: 2})
		defer x.Close()
		s.plainAgent("slow", core.Card{MaxConcurrent: 2})
		for i, name := range []string{"a", "b", "c"} {
			if w := serve(x, "POST", name, `{"id":"1","kind":"capabilities"}`); w.Code != 202 {
				t.Errorf("peer %d: got %d, want 202, and the longest idle peer forgotten", i, w.Code)
			}
			time.Sleep(time.Second)
		}
		s.until(func() bool { _, ok := s.hub.Agent(core.Principal{Operator: true}, "a"); return !ok }, "the first is forgotten")
		var wg sync.WaitGroup
		for _, name := range []string{"b", "c"} {
			wg.Go(func() {
				serve(x, "POST", name, `{"id":"q1","to":"slow","kind":"query","payload":{"question":"?"}}`)
			})
		}
		synctest.Wait()
		if w := serve(x, "POST", "d", `{"id":"1","kind":"ping"}`); w.Code != 503 || !strings.Contains(w.Body.String(), "overloaded") {
			t.Errorf("a third while two are busy: got %d %s, want 503 overloaded", w.Code, w.Body)
		}
		wg.Wait()
	})
}

func TestAHeldQueryTimesOutWithAStatus(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		x := acp.NewHTTP(s.hub, acp.HTTPOptions{Session: acp.Options{Peers: s.peers}})
		defer x.Close()
		s.plainAgent("slow", core.Card{})
		began := time.Now()
		w := serve(x, "POST", "kit", `{"id":"q1","to":"slow","kind":"query","payload":{"question":"?"}}`)
		if got := time.Since(began); w.Code != 504 || got != acp.DefaultDeadline {
			t.Errorf("got %d after %s, want 504 after %s", w.Code, got, acp.DefaultDeadline)
		}
	})
}

func TestTheAnswerToAClosingPostIsKeptIfTasksAreKept(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		x := acp.NewHTTP(s.hub, acp.HTTPOptions{Session: acp.Options{Peers: s.peers, KeepTasks: true}})
		defer x.Close()
		gone, hangUp := context.WithCancel(t.Context())
		hangUp()
		written := 0
		for i := range 20 {
			r := httptest.NewRequestWithContext(gone, "POST", "/acp", strings.NewReader(fmt.Sprintf(`{"id":"p%d","from":"kit","kind":"ping"}`, i)))
			w := httptest.NewRecorder()
			x.ServeHTTP(w, r)
			written += min(1, w.Body.Len())
		}
		if waits := len(waiting(x, "kit")); waits+written != 20 {
			t.Errorf("got %d answers written and %d waiting, want 20 in total", written, waits)
		}
	})
}

func TestAQueryThatAnHTTPAgentNeverFetchedFailsWhenTheAgentIsForgotten(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		x := acp.NewHTTP(s.hub, acp.HTTPOptions{Session: acp.Options{Peers: s.peers}, MailboxBytes: 2000})
		defer x.Close()
		serve(x, "POST", "fam", `{"id":"c1","kind":"capabilities","payload":{"max_concurrent_tasks":9}}`)
		rest := s.plainSession("rest")
		first := s.ask(rest, core.Request{To: core.ToAgent("fam"), Content: strings.Repeat("x", 1500)})
		synctest.Wait()
		if got := first.Receipt().Stage; got != core.StageAccepted {
			t.Errorf("receipt of a query that was not fetched: got %s, want accepted", got)
		}
		second := s.ask(rest, core.Request{To: core.ToAgent("fam"), Content: strings.Repeat("y", 1500)})
		if a := s.ended(first); a.Fault == nil || a.Fault.Code != core.CodeUnreachable {
			t.Errorf("the first: got %+v, want unreachable, since the mailbox is full", a)
		}
		s.until(func() bool { return second.State() == task.Running }, "the second waits")
	})
}
