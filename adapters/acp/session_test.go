package acp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// setup is a hub with an agent and a requester without a dialect, for tests of the parts of an
// ACP session.
type setup struct {
	*testing.T
	hub   *hub.Hub
	peers *Peers
	poet  *hub.Session // the agent
	rest  *hub.Session
}

// withHub runs a test under a fake clock.
func withHub(t *testing.T, test func(t *testing.T, w *setup)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &setup{T: t, hub: coretest.NewHub(t, hub.Options{})}
		w.peers = NewPeers(w.hub, PeersOptions{})
		w.poet = w.hub.Connect(hub.Identity{Principal: core.Principal{ID: "poet", Dialect: "plain"}, Dialect: "plain"})
		w.rest = w.hub.Connect(hub.Identity{Principal: core.Principal{ID: "rest", Dialect: "plain"}, Dialect: "plain"})
		t.Cleanup(func() { w.poet.Close(nil) })
		t.Cleanup(func() { w.rest.Close(nil) })
		card := core.Card{ID: "poet", Dialect: "plain", MaxConcurrent: 3, Features: core.FeatureCancellation}
		if err := w.poet.Join(card, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		test(t, w)
	})
}

// session makes a session of an identified peer.
func (w *setup) session(id core.AgentID, out outlet) *session {
	s := newSession(w.hub, Options{Peers: w.peers}.withDefaults(), out)
	s.identify(id)
	return s
}

// ask opens a task for the agent.
func (w *setup) ask() *task.Task {
	w.Helper()
	task, err := w.rest.Open(core.Request{To: core.ToAgent("poet"), Content: "?"}, hub.OpenOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return task
}

// assigned returns the next task that the agent gets.
func (w *setup) assigned() *task.Task {
	w.Helper()
	b, err := w.poet.Next(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	if _, ok := b.Events[0].Body.(core.Assigned); !ok {
		w.Fatalf("got %+v, want an assignment", b)
	}
	return b.Task
}

func (w *setup) report(task *task.Task, bodies ...core.Body) {
	w.Helper()
	for _, b := range bodies {
		if err := w.poet.Report(task.ID(), b, nil); err != nil {
			w.Fatalf("reporting %s: got %v, want no error", b.Kind(), err)
		}
	}
}

// act handles an envelope in a session.
func (w *setup) act(s *session, raw string) {
	w.Helper()
	e, err := wire.Decode([]byte(raw), 1<<20)
	if err == nil {
		err = s.act(w.Context(), e)
	}
	if err != nil {
		w.Fatal(err)
	}
}

// startPump runs the pump of a session until stop is called.
func (w *setup) startPump(s *session) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.pump(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// recorder is an outlet that keeps the messages.
type recorder struct{ sent []message }

func (r *recorder) hold()                 {}
func (r *recorder) flush()                {}
func (r *recorder) away() bool            { return false }
func (r *recorder) owed() []pendingResult { return nil }

func (r *recorder) reclaim(func(core.TaskID) bool) []pendingResult { return nil }

func (r *recorder) send(_ context.Context, m message) error {
	r.sent = append(r.sent, m)
	return nil
}

// kinds returns the kinds of the messages.
func (r *recorder) kinds() []wire.Kind {
	var all []wire.Kind
	for _, m := range r.sent {
		all = append(all, m.kind)
	}
	return all
}

func TestConsecutivePiecesAreSentTogetherInEnvelopesOfBoundedSize(t *testing.T) {
	withHub(t, func(t *testing.T, w *setup) {
		query := w.ask()
		w.assigned()
		for range 100 {
			w.report(query, core.Text{Text: "abc"})
		}
		w.report(query, core.Thinking{Text: "hm"}, core.Text{Text: strings.Repeat("\u00e9", wire.MaxPieceBytes)}, core.Done{})
		out := &recorder{}
		session := w.session("kit", out)
		defer session.close(nil)
		r := &request{id: "q1", kind: wire.KindQuery, reports: true, live: true}
		session.requests[r.id] = r
		err := session.tellRequester(t.Context(), hub.Batch{Task: query, Role: task.Requester, Tag: r, Events: query.Events()})
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for i, m := range out.sent {
			payload := wire.ValueOf(m.json, "payload")
			got = append(got, len(wire.TextOf(payload, "text")))
			if seq, _, err := (wire.Envelope{Payload: payload}).Progress(); m.kind == wire.KindProgress && (err != nil || seq != uint64(i+1)) {
				t.Errorf("envelope %d: got seq %d and error %v, want it to grow by one", i, seq, err)
			}
		}
		if want := []int{300, 0, wire.MaxPieceBytes, wire.MaxPieceBytes, 0}; !slices.Equal(got, want) {
			t.Errorf("bytes of text in each envelope: got %v, want %v", got, want)
		}
	})
}

// bodiesOfAllKinds is one event of every kind.
var bodiesOfAllKinds = []core.Body{
	core.Opened{}, core.Assigned{}, core.Accepted{}, core.SessionStarted{Session: "s"}, core.SessionLost{Reason: "r"}, core.Thinking{Text: "hm"},
	core.Text{Text: "ro"}, core.ToolCall{ID: "t", Name: "n", Input: "{}"}, core.ToolState{ID: "t", State: core.ToolRunning},
	core.ToolResult{ID: "t", Output: "o"}, core.ApprovalRequested{ID: "t", Name: "n", Input: "{}"}, core.ApprovalDecided{ID: "t", By: "hub"},
	core.QuestionAsked{ID: "q", Text: "which?"}, core.QuestionAnswered{ID: "q", Answered: true, Text: "that"},
	core.Injected{ID: "i", Content: "c", Priority: core.InjectionNormal}, core.InjectionAnswered{ID: "i"}, core.File{Name: "f", Data: []byte{0}},
	core.Usage{Output: 1}, core.Retrying{Attempt: 1, Agent: "a", Fault: core.NewFault(core.CodeOverloaded, "later")}, core.CancelRequested{By: "hub"},
	core.ForeignFrame{Dialect: "coven", Name: "x"}, core.Done{}, core.Failed{Fault: core.NewFault(core.CodeInternal, "oops")}, core.Cancelled{Reason: "no"},
}

func TestThereIsOneEventOfEveryKind(t *testing.T) {
	for i, k := range core.Kinds() {
		if i >= len(bodiesOfAllKinds) || bodiesOfAllKinds[i].Kind() != k {
			t.Fatalf("event %d: got a kind other than %s, want all kinds in order", i, k)
		}
	}
}

// countsEach checks that one event of each folded or refused kind of a table is counted once.
func countsEach(t *testing.T, table core.Table, happen func(t *testing.T, w *setup, b core.Body)) {
	t.Helper()
	for i, k := range core.Kinds() {
		how := table[k].How
		if how != core.Folded && how != core.Refused {
			continue
		}
		t.Run(k.String(), func(t *testing.T) {
			withHub(t, func(t *testing.T, w *setup) {
				happen(t, w, bodiesOfAllKinds[i])
				synctest.Wait()
				name := "acp." + how.String() + "." + k.String()
				if got := w.hub.Counters()[name]; got != 1 {
					t.Errorf("counter %s: got %d, want 1", name, got)
				}
			})
		})
	}
}

func TestFoldedAndRefusedEventsToARequesterAreCounted(t *testing.T) {
	countsEach(t, Translation.ToRequester, func(t *testing.T, w *setup, b core.Body) {
		query, kit := w.ask(), w.session("kit", &recorder{})
		defer kit.close(nil)
		r := &request{id: "q1", kind: wire.KindQuery, reports: true}
		kit.requests[r.id] = r
		if err := kit.tellRequester(t.Context(), hub.Batch{Task: query, Role: task.Requester, Tag: r, Events: []core.Event{{Seq: 1, Body: b}}}); err != nil {
			t.Fatal(err)
		}
	})
}

func TestFoldedAndRefusedEventsToAnAgentAreCounted(t *testing.T) {
	countsEach(t, Translation.ToAgent, func(t *testing.T, w *setup, b core.Body) {
		asked, out := w.ask(), &recorder{}
		fam := w.session("fam", out)
		defer fam.close(nil)
		a := &assignment{id: "q1", kind: wire.KindQuery, task: asked.ID()}
		fam.assignments[a.id], fam.byTask[a.task] = a, a
		for range 2 {
			if err := fam.tellAgent(t.Context(), hub.Batch{Task: asked, Role: task.Agent, Events: []core.Event{{Seq: 1, Body: b}}}); err != nil {
				t.Fatal(err)
			}
			if b.Kind() == core.KindApprovalDecided {
				break // each is counted
			}
		}
		if b.Kind().Ends() && (len(out.sent) != 1 || out.sent[0].kind != wire.KindCancel) {
			t.Errorf("got %+v, want one cancel to the agent", out.sent)
		}
	})
}

// brokenOutlet is an outlet that fails to send a result.
type brokenOutlet struct{}

func (brokenOutlet) hold()  {}
func (brokenOutlet) flush() {}

func (brokenOutlet) away() bool { return false }

func (brokenOutlet) owed() []pendingResult { return nil }

func (brokenOutlet) reclaim(func(core.TaskID) bool) []pendingResult { return nil }

func (brokenOutlet) send(_ context.Context, m message) error {
	if m.kind != wire.KindResult {
		return nil
	}
	m.lost()
	return errors.New("broken")
}

func TestAResultThatCouldNotBeSentIsStillPending(t *testing.T) {
	withHub(t, func(t *testing.T, w *setup) {
		lost := w.session("kit", brokenOutlet{})
		w.act(lost, `{"id":"d1","to":"poet","kind":"delegate","payload":{"task":"do it"}}`)
		w.report(w.assigned(), core.Done{Text: "done"})
		if err := lost.pump(t.Context()); err == nil {
			t.Error("the pump: got no error, want that of the broken connection")
		}
		lost.close(core.NewFault(core.CodeUnreachable, "gone"))
		out := &recorder{}
		kit := w.session("kit", out)
		defer kit.close(nil)
		stop := w.startPump(kit)
		kit.takeOver(t.Context())
		synctest.Wait()
		stop()
		var got wire.Result
		i := slices.Index(out.kinds(), wire.KindResult)
		if i < 0 {
			t.Fatalf("got %v, want a result", out.kinds())
		}
		e, err := wire.Decode(out.sent[i].json, 1<<20)
		if err == nil {
			err = e.Read(&got)
		}
		if err != nil || e.Ref != "d1" || got.Outcome != "done" {
			t.Errorf("result: got %s and error %v, want done", out.sent[i].json, err)
		}
	})
}

// returning is an outlet whose peer comes back once it was found to be away.
type returning struct {
	recorder
	back bool
}

func (r *returning) away() (was bool) {
	was, r.back = !r.back, true
	return was
}

func TestAPeerThatComesBackAsItsTaskEndsGetsTheResult(t *testing.T) {
	withHub(t, func(t *testing.T, w *setup) {
		out := &returning{}
		kit := w.session("kit", out)
		defer kit.close(nil)
		stop := w.startPump(kit)
		w.act(kit, `{"id":"d1","to":"poet","kind":"delegate","payload":{"task":"do it"}}`)
		w.report(w.assigned(), core.Done{Text: "done"})
		synctest.Wait()
		stop()
		if got := out.kinds(); !slices.Contains(got, wire.KindResult) {
			t.Errorf("got %v, want a result", got)
		}
	})
}

func TestTheEndOfACancelledTaskWaitsForTheAckOfTheCancel(t *testing.T) {
	withHub(t, func(t *testing.T, w *setup) {
		out := &recorder{}
		kit := w.session("kit", out)
		defer kit.close(nil)
		w.act(kit, `{"id":"q1","to":"poet","kind":"query","payload":{"question":"?"}}`)
		task := w.assigned()
		stop := w.startPump(kit)
		r, acked := kit.beginCancel("q1") // its ack is on the way
		if err := kit.self.Cancel(r.task, ""); err != nil {
			t.Fatal(err)
		}
		w.report(task, core.Cancelled{})
		synctest.Wait()
		if got := out.kinds(); slices.Contains(got, wire.KindError) {
			t.Errorf("before the ack: got %v, want no end", got)
		}
		acked()
		synctest.Wait()
		stop()
		if got := out.kinds(); !slices.Contains(got, wire.KindError) {
			t.Errorf("after the ack: got %v, want the end", got)
		}
	})
}

func TestOverHTTPEachTokenOfAPrincipalHasOnlyItsOwnRights(t *testing.T) {
	withHub(t, func(t *testing.T, w *setup) {
		principal := core.Principal{ID: "alice", Authenticated: true}
		x := NewHTTP(w.hub, HTTPOptions{Session: Options{Peers: w.peers}, Identify: func(r *http.Request) (core.Principal, core.AgentID, error) {
			p := principal
			switch token := r.Header.Get("Authorization"); token {
			case "operator":
				p.Operator = true
			case "duty", "guest":
				p.Credential = &core.Credential{Roles: []string{token}}
			}
			return p, "kit", nil
		}})
		defer x.Close()
		for i, token := range []string{"operator", "lesser", "operator", "duty", "guest", "duty", "lesser"} {
			r := httptest.NewRequest("POST", "/acp", strings.NewReader(fmt.Sprintf(`{"id":"d%d","to":"poet","kind":"delegate","payload":{"task":"do it","report_back":false}}`, i)))
			r.Header.Set("Authorization", token)
			answer := httptest.NewRecorder()
			x.ServeHTTP(answer, r)
			if answer.Code != http.StatusOK {
				t.Fatalf("%s: got %d %s, want 200", token, answer.Code, answer.Body)
			}
			task := w.assigned()
			if got, want := task.From().Operator, token == "operator"; got != want {
				t.Errorf("with the token of the %s: got operator %t, want %t", token, got, want)
			}
			if c := task.From().Credential; (c != nil) != (token == "duty" || token == "guest") || c != nil && c.Roles[0] != token {
				t.Errorf("with the token of the %s: got the credential %+v, want its own", token, c)
			}
			w.report(task, core.Done{})
			if _, err := w.poet.Next(w.Context()); err != nil { // its end
				t.Fatal(err)
			}
		}
		if got := len(x.peers); got != 4 {
			t.Errorf("got %d callers, want one for each token", got)
		}
	})
}

func TestWhatPeopleSayDoesNotComeFromTheAgent(t *testing.T) {
	withHub(t, func(t *testing.T, w *setup) {
		query := w.ask()
		w.assigned()
		w.report(query, core.Done{})
		out := &recorder{}
		session := w.session("kit", out)
		defer session.close(nil)
		r := &request{id: "q1", kind: wire.KindQuery, reports: true, live: true}
		session.requests[r.id] = r
		events := []core.Event{
			{Seq: 2, Body: core.QuestionAsked{ID: "q", Text: "which?"}},
			{Seq: 3, Body: core.QuestionAnswered{ID: "q", Answered: true, Text: "that", By: "ann"}},
			{Seq: 4, Body: core.ApprovalRequested{ID: "t", Name: "rm"}},
			{Seq: 5, Body: core.ApprovalDecided{ID: "t", Approved: true, By: "ann"}},
		}
		if err := session.tellRequester(t.Context(), hub.Batch{Task: query, Role: task.Requester, Tag: r, Events: events}); err != nil {
			t.Fatal(err)
		}
		agent := string(query.Agent())
		for i, m := range out.sent {
			from := wire.TextOf(m.json, "from")
			if asks := i%2 == 0; asks != (from == agent) {
				t.Errorf("%s: got it from %q, want it from the agent only if that asks", m.json, from)
			}
		}
		if len(out.sent) != len(events) {
			t.Errorf("got %d envelopes, want %d", len(out.sent), len(events))
		}
	})
}
