package acp

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// serve handles a request in the bubble of the test.
func serve(x *HTTP, method, agent, envelope string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	x.ServeHTTP(w, httptest.NewRequest(method, "/acp?agent_id="+agent, strings.NewReader(envelope)))
	return w
}

func TestAnIdlePeerIsForgottenAndItsResultsAreNot(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		x := NewHTTP(s.hub, HTTPOptions{Session: Options{Peers: s.peers}, Idle: time.Minute})
		defer x.Close()
		doer := s.plainAgent("doer", core.Card{})
		serve(x, "POST", "kit", `{"id":"d1","to":"doer","kind":"delegate","payload":{"task":"one"}}`)
		serve(x, "POST", "kit", `{"id":"c1","kind":"capabilities"}`)
		s.report(doer, s.assigned(doer), core.Done{Text: "done"})
		time.Sleep(59 * time.Second)
		s.until(func() bool { _, ok := s.hub.Agent("kit"); return ok }, "it is remembered")
		time.Sleep(2 * time.Second)
		s.until(func() bool { _, ok := s.hub.Agent("kit"); return !ok }, "it is forgotten")
		kit := s.enter("kit")
		if got := expect[Result](kit, KindResult, "d1"); got.Outcome != "done" {
			t.Errorf("result: got %+v, want done", got)
		}
	})
}

func TestPeersAreBoundedInNumber(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		x := NewHTTP(s.hub, HTTPOptions{Session: Options{Peers: s.peers}, MaxPeers: 2})
		defer x.Close()
		s.plainAgent("slow", core.Card{MaxConcurrent: 2})
		for i, name := range []string{"a", "b", "c"} {
			if w := serve(x, "POST", name, `{"id":"1","kind":"capabilities"}`); w.Code != 202 {
				t.Errorf("peer %d: got %d, want 202, the one that was idle longest being forgotten", i, w.Code)
			}
			time.Sleep(time.Second)
		}
		s.until(func() bool { _, ok := s.hub.Agent("a"); return !ok }, "the first is forgotten")
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
	onStage(t, func(t *testing.T, s *stage) {
		x := NewHTTP(s.hub, HTTPOptions{Session: Options{Peers: s.peers}})
		defer x.Close()
		s.plainAgent("slow", core.Card{})
		began := time.Now()
		w := serve(x, "POST", "kit", `{"id":"q1","to":"slow","kind":"query","payload":{"question":"?"}}`)
		if got := time.Since(began); w.Code != 504 || got != DefaultDeadline {
			t.Errorf("got %d after %s, want 504 after %s", w.Code, got, DefaultDeadline)
		}
	})
}

func TestAMailboxIsBoundedAndSaysWhatIsGone(t *testing.T) {
	total := &budget{most: 1 << 20}
	b := newMailbox(1000, total)
	var lost []int
	for i := range 10 {
		b.put(message{json: make([]byte, 300), lost: func() { lost = append(lost, i) }})
	}
	at, _ := b.resume("")
	if got := fmt.Sprint(lost); got != "[0 1 2 3 4 5 6]" {
		t.Errorf("lost: got %s, want the oldest seven", got)
	}
	letters, missed, _ := b.after(0)
	if len(letters) != 3 || missed != 7 || at != 7 {
		t.Errorf("after the beginning: got %d letters, %d missed, to resume at %d; want 3, 7 and 7", len(letters), missed, at)
	}
	b.read(letters[0])
	b.read(letters[1])
	b.put(message{json: make([]byte, 900), lost: func() { lost = append(lost, 10) }})
	if got := fmt.Sprint(lost); got != "[0 1 2 3 4 5 6 9]" {
		t.Errorf("lost: got %s, want what was read to go without a word", got)
	}
	if got := total.used.Load(); got != 900 {
		t.Errorf("bytes in all: got %d, want 900", got)
	}
	other := newMailbox(1<<20, total)
	other.put(message{json: make([]byte, 1<<20)})
	other.put(message{json: make([]byte, 10)})
	if letters, _, _ := other.after(0); len(letters) != 1 || len(letters[0].json) != 10 {
		t.Errorf("beyond the bytes of all: got %d letters, want the latest alone", len(letters))
	}
	for _, m := range []*mailbox{b, other} {
		m.close()
		m.discard()
	}
	if got := lost[len(lost)-1]; got != 10 {
		t.Errorf("lost at the end: got %d, want the last letter", got)
	}
	if got := total.used.Load(); got != 0 {
		t.Errorf("bytes in all after the end: got %d, want 0", got)
	}
}

func TestAMailboxIsBoundedInNumberThoughItsResultsGoAnotherWay(t *testing.T) {
	b := newMailbox(1<<10, &budget{most: 1 << 20})
	for i := range 1000 {
		b.put(message{json: make([]byte, 300), owed: &owing{}})
		if due := b.reclaim(); len(due) != 1 {
			t.Fatalf("result %d: got %d reclaimed, want 1", i, len(due))
		}
	}
	if got := len(b.letters); got > 16 {
		t.Errorf("got %d letters, want at most 16", got)
	}
}

func TestAnAnswerThatComesAsThePostIsCutIsNotLostWhereTasksAreKept(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		x := NewHTTP(s.hub, HTTPOptions{Session: Options{Peers: s.peers, KeepTasks: true}})
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
		letters, _, _ := x.peers[callerKey{who: who{"kit", "kit"}}].mail.after(0)
		if len(letters)+written != 20 {
			t.Errorf("got %d answers written and %d that wait, want 20", written, len(letters))
		}
	})
}

func TestAQueryThatAnHTTPAgentNeverFetchedIsToldWhenItIsForgotten(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		x := NewHTTP(s.hub, HTTPOptions{Session: Options{Peers: s.peers}, MailboxBytes: 2000})
		defer x.Close()
		serve(x, "POST", "fam", `{"id":"c1","kind":"capabilities","payload":{"max_concurrent_tasks":9}}`)
		rest := s.plain("rest")
		first := s.ask(rest, core.Request{To: core.ToAgent("fam"), Content: strings.Repeat("x", 1500)})
		synctest.Wait()
		if got := first.Receipt().Stage; got != core.StageAccepted {
			t.Errorf("receipt of what nobody fetched: got %s, want accepted", got)
		}
		second := s.ask(rest, core.Request{To: core.ToAgent("fam"), Content: strings.Repeat("y", 1500)})
		if a := s.ended(first); a.Fault == nil || a.Fault.Code != core.CodeUnreachable {
			t.Errorf("the first: got %+v, want unreachable, since the mailbox is full", a)
		}
		s.until(func() bool { return second.State() == hub.Running }, "the second waits")
	})
}
