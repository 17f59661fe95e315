package native_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

func TestAnAgentGetsWhatItsFeaturesNameAndNothingElse(t *testing.T) {
	withHub(t, func(s *setup) {
		agent, asker := s.agent(core.Card{ID: "plain"}), s.peer("asker")
		id := asker.open(ask("plain", "?"))
		asker.refused(core.Inject{Task: id, Context: core.Injected{Content: "by the way"}}, wire.With{}, core.CodeUnsupported)
		agent.report(id, core.ApprovalRequested{ID: "t", Name: "rm", Input: "{}"})
		agent.take()
		asker.call(core.Cancel{Task: id, Reason: "enough"}, wire.With{})
		for _, told := range agent.take() {
			if k := told.Event.Body.Kind(); !k.Ends() {
				t.Errorf("got %s, want only the end for an agent without features", k)
			}
		}
		if _, here := s.hub.Agent(core.Principal{Operator: true}, "plain"); !here {
			t.Error("got the agent gone, want it here")
		}
		agent.stop(id)
	})
}

func TestTheEndOfTheHubReachesTheAgentOnce(t *testing.T) {
	withHub(t, func(s *setup) {
		agent, asker := s.agent(able("agent")), s.peer("asker")
		r := ask("agent", "?")
		r.Deadline = time.Now().Add(time.Minute)
		id := asker.open(r)
		agent.take()
		<-time.After(2 * time.Minute) // of the fake clock
		if got := kinds(agent.take()); !slices.Equal(got, []string{"cancel_requested", "failed"}) {
			t.Errorf("got %v, want to be told to stop and that the hub has ended it", got)
		}
		if err := agent.ReportConfirmed(s.Context(), id, core.Text{Text: "late"}, nil); core.AsFault(err).Code != core.CodeConflict {
			t.Errorf("a late text: got %v, want a conflict", err)
		}
		second := asker.open(ask("agent", "?"))
		agent.take()
		agent.report(second, core.Done{})
		if got := kinds(agent.take()); len(got) > 0 {
			t.Errorf("got %v, want nothing about a task that the agent itself has ended", got)
		}
	})
}

func TestARefusedEventNamesItsTask(t *testing.T) {
	withHub(t, func(s *setup) {
		agent, other, asker := s.raw(newPeer("agent")), s.agent(able("other")), s.peer("asker")
		agent.send(`{"call":{"id":"1","act":"join","command":{"card":{}}}}`)
		if v := agent.next("result"); text(v.Get("agent")) != "agent" {
			t.Errorf("got %s, want it joined with the id of its connection", v.Raw())
		}
		theirs, mine := asker.open(ask("other", "?")), asker.open(ask("agent", "?"))
		agent.next("event")
		agent.next("event")
		for _, tt := range [][]string{
			{`{"event":{"task":"` + string(theirs) + `","kind":"text","body":{"text":"x"}}}`, string(theirs), "not_authorized"},
			{`{"event":{"task":"none","kind":"done","body":{},"id":"e"}}`, `"none"`, "not_authorized", `"id":"e"`},
			{`{"event":{"task":"` + string(mine) + `","kind":"assigned","body":{"agent":"x"}}}`, string(mine), "invalid", "an agent does not say assigned"},
			{`{"event":{"task":"` + string(mine) + `","kind":"done","body":{"data":`, string(mine), "invalid"},
			{`{"event":{"task":"` + string(mine) + `","kind":"failed","body":{"fault":7}}}`, string(mine), "invalid", "fault"},
		} {
			agent.send(tt[0])
			agent.wantError(tt[1:]...)
		}
		agent.send(`{"event":{"task":"` + string(mine) + `","kind":"done","body":{"text":"still here"},"id":"e"}}`)
		if v := agent.next("result"); text(v.Get("id")) != "e" {
			t.Errorf("got %s, want the event acknowledged", v.Raw())
		}
		other.stop(theirs)
	})
}

func TestGarbageDisturbsNothing(t *testing.T) {
	withHub(t, func(s *setup) {
		r := s.raw(native.Options{AgentID: "a", FrameBytes: 1000})
		for _, tt := range [][]string{
			{"\x00\xff", "invalid"}, {"null", "invalid"}, {`"x"`, "invalid"}, {`{"a":1,"a":2}`, "invalid"}, {strings.Repeat("[", 100), "invalid"},
			{`{"call":{"id":"x","act":"list","command":{"what":"agents"}},"pad":"` + strings.Repeat("a", 1000) + `"}`, "invalid", `"id":"x"`},
			{`{"call":{"id":"y","act":"join","command":{"card":{"id":"b"}}}}`, "not_authorized", `"id":"y"`, `agent \"a\", not \"b\"`},
			{`{"load":{"state":""}}`, "invalid"},
		} {
			r.send(tt[0])
			r.wantError(tt[1:]...)
		}
		r.send(`{"hello":{"native":1}}`)
		r.send(`{"load":{"state":"idle","id":"l"}}`)
		r.next("result")
		r.send(`{"vitals":{"status":"well","id":"v"}}`)
		r.next("result")
		r.send(`{"hello":{"native":2}}`)
		r.wantError("unsupported", `"fatal":true`)
		if _, err := r.end.Receive(s.Context()); err == nil {
			t.Error("got another frame, want the connection closed")
		}
	})
}

func TestTheCardAndTheLoadOfAnAgentMayChange(t *testing.T) {
	withHub(t, func(s *setup) {
		agent, asker := s.agent(able("agent")), s.peer("asker")
		card := able("agent")
		card.Capabilities, card.Model, card.Dialect = []string{"verse"}, "m", "acp"
		agent.call(core.Join{Card: card}, wire.With{})
		a, _ := s.hub.Agent(core.Principal{Operator: true}, "agent")
		if a.Model != "m" || a.Dialect != "native" || !slices.Equal(a.Capabilities, card.Capabilities) {
			t.Errorf("got %+v, want the new card, and the dialect as it is", a.Card)
		}
		if err := agent.Send(s.Context(), "vitals", wire.Vitals{Status: "warm", Active: 1, Metrics: map[string]float64{"heat": 3}}); err != nil {
			t.Fatal(err)
		}
		if err := agent.Send(s.Context(), "load", wire.Load{State: core.LoadOverloaded}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		a, _ = s.hub.Agent(core.Principal{Operator: true}, "agent")
		if a.Load.State != core.LoadOverloaded || a.Vitals == nil || a.Vitals.Status != "warm" || a.Vitals.Metrics["heat"] != 3 {
			t.Errorf("got %+v and %+v, want it overloaded and warm", a.Load, a.Vitals)
		}
		id := asker.open(ask("agent", "?"))
		if got := agent.take(); len(got) > 0 {
			t.Errorf("got %v, want nothing new while overloaded", kinds(got))
		}
		if err := agent.Send(s.Context(), "load", wire.Load{State: core.LoadIdle}); err != nil {
			t.Fatal(err)
		}
		if got := kinds(agent.take()); !slices.Equal(got, []string{"opened", "assigned"}) {
			t.Errorf("got %v, want what waited", got)
		}
		agent.stop(id)
	})
}

func TestAnAgentTakesOverItsID(t *testing.T) {
	withHub(t, func(s *setup) {
		same := native.Options{Principal: core.Principal{ID: "p", Authenticated: true}}
		old, asker := s.peerWith(same), s.peer("asker")
		old.call(core.Join{}, wire.With{})
		id := asker.open(ask("p", "?"))
		old.take()
		s.peerWith(native.Options{AgentID: "p"}).refused(core.Join{}, wire.With{}, core.CodeConflict)
		newer := s.peerWith(same)
		newer.call(core.Join{}, wire.With{})
		if got := old.others(); len(got) != 1 || !strings.Contains(got[0], `"code":"conflict"`) || !strings.Contains(got[0], `"fatal":true`) {
			t.Errorf("the older connection: got %v, want a fatal conflict", got)
		}
		<-old.Done()
		if got := kinds(asker.take()); got[len(got)-1] != "failed" && len(newer.take()) == 0 {
			t.Errorf("got %v, want task %s failed or with the newer connection", got, id)
		}
		newer.stop(id)
	})
}

func TestATaskOfALostAgentFailsAndWhatItAskedIsCancelled(t *testing.T) {
	withHub(t, func(s *setup) {
		end, _ := s.connect(newPeer("agent"))
		agent, other, asker := s.peerOn(end), s.agent(able("other")), s.peer("asker")
		agent.call(core.Join{Card: able("agent")}, wire.With{})
		asker.open(ask("agent", "?"))
		agent.open(ask("other", "?"))
		other.take()
		_ = end.Close(link.Reason{Cause: link.PeerGone})
		told := asker.take()
		last := told[len(told)-1].Event.Body
		if f, ok := last.(core.Failed); !ok || f.Fault.Code != core.CodeUnreachable {
			t.Errorf("got %#v, want the task failed as unreachable", last)
		}
		got := other.take()
		if len(got) != 1 || got[0].Event.Body.Kind() != core.KindCancelRequested {
			t.Errorf("got %v, want what the lost agent asked cancelled", kinds(got))
		}
		other.stop(got[0].Task)
	})
}

func TestAHubThatStopsSaysSo(t *testing.T) {
	withHub(t, func(s *setup) {
		agent, asker := s.agent(able("agent")), s.peer("asker")
		id := asker.open(ask("agent", "?"))
		closed := make(chan error)
		go func() { closed <- s.hub.Close(context.Background(), "maintenance") }()
		if got := agent.others(); len(got) != 1 || got[0] != `draining {"reason":"maintenance"}` {
			t.Errorf("got %v, want that the hub stops", got)
		}
		asker.refused(&core.Open{Request: new(ask("agent", "?"))}, wire.With{}, core.CodeUnreachable)
		agent.report(id, core.Done{})
		if err := <-closed; err != nil {
			t.Error(err)
		}
		<-agent.Done()
		if got := agent.others(); len(got) != 1 || !strings.Contains(got[0], `"fatal":true`) {
			t.Errorf("got %v, want a last error", got)
		}
	})
}

func TestASlowReaderIsClosedAndSlowsNobody(t *testing.T) {
	withHub(t, func(s *setup) {
		agent := s.agent(able("agent"))
		end, reason := s.connect(native.Options{AgentID: "slow", Link: link.Options{WriteTimeout: 10 * time.Second, QueueBytes: 4096}})
		slow := raw{s, end}
		slow.next("hello")
		slow.send(`{"call":{"id":"1","act":"open","command":{"request":{"to":"agent","content":"?"},"keep":true}}}`)
		id := core.TaskID(text(slow.next("result").Get("task")))
		reader := s.peer("reader")
		reader.call(core.Read{Task: id}, wire.With{Watch: true})
		for range 1000 {
			agent.report(id, core.Text{Text: strings.Repeat("x", 100)})
		}
		agent.report(id, core.Done{})
		if got := len(reader.take()); got != 1003 {
			t.Errorf("the other reader: got %d events, want all of 1003", got)
		}
		<-time.After(11 * time.Second) // of the fake clock
		synctest.Wait()
		select {
		case r := <-reason:
			if r.Cause != link.Slow {
				t.Errorf("got %v, want it closed as slow", r.Error())
			}
		default:
			t.Error("got the slow reader connected, want it closed")
		}
		if got := len(func() []wire.Told { reader.call(core.Read{Task: id}, wire.With{Watch: true}); return reader.take() }()); got != 1003 {
			t.Errorf("read again: got %d events, want all of 1003", got)
		}
	})
}

// child is an agent of the hub's own.
type child struct {
	*peer
	end    *coretest.End[[]byte, []byte]
	served chan error
	notes  []string // what the supervisor is told
}

// serveChild serves a child on a session that has joined.
func (s *setup) serveChild(agent *hub.Session, card core.Card) *child {
	server, end := coretest.Pipe[[]byte, []byte](0)
	c := &child{end: end, served: make(chan error, 1)}
	var served sync.WaitGroup
	served.Go(func() {
		c.served <- native.Serve(s.Context(), s.hub, agent, server, native.Options{
			Card:  card,
			Ready: func(core.Card) { c.notes = append(c.notes, "ready") },
			Lost:  func(error) { c.notes = append(c.notes, "lost") },
		})
	})
	s.Cleanup(func() {
		_ = end.Close(link.Reason{Cause: link.Normal})
		served.Wait()
	})
	c.peer = s.peerOn(end)
	return c
}

func TestAChildWorksOnTheSessionOfItsSupervisor(t *testing.T) {
	withHub(t, func(s *setup) {
		session := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "kid", Authenticated: true}, Dialect: "native"})
		defer session.Close(nil)
		card := core.Card{ID: "kid", Name: "Kid", Dialect: "native", Capabilities: []string{"play"}, MaxConcurrent: 3}
		if err := session.Join(card, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		asker, other := s.peer("asker"), s.agent(able("other"))
		for range 2 { // the session outlives a child
			kid := s.serveChild(session, card)
			said := able("parrot")
			said.Capabilities, said.Name, said.MaxConcurrent = []string{"sing"}, "Parrot", 1
			if v := kid.call(core.Join{Card: said}, wire.With{}); text(v.Get("agent")) != "kid" {
				t.Errorf("got %s, want the id of the settings", v.Raw())
			}
			if a, _ := s.hub.Agent(core.Principal{Operator: true}, "kid"); a.Name != "Kid" || a.MaxConcurrent != 3 || strings.Join(a.Capabilities, " ") != "play sing" || !a.Features.Has(core.FeatureInjection) {
				t.Errorf("got %+v, want the settings first and what the child adds", a.Card)
			}
			done := asker.open(ask("kid", "?"))
			if got := kinds(kid.take()); !slices.Equal(got, []string{"opened", "assigned"}) {
				t.Errorf("got %v, want the task", got)
			}
			kid.report(done, core.Text{Text: "la"}, core.Done{})
			held := asker.open(ask("kid", "?"))
			kid.open(ask("other", "?"))
			kid.take()
			asked := other.take()[0]
			if asked.Event.Body.(core.Opened).Request.Cause != held {
				t.Errorf("got %+v, want it caused by the task of the child", asked.Event.Body)
			}
			_ = kid.end.Close(link.Reason{Cause: link.PeerGone})
			if err := <-kid.served; err == nil {
				t.Error("a lost child: got no error, want the reason")
			}
			if got := strings.Join(kid.notes, " "); got != "ready lost" {
				t.Errorf("the supervisor was told %q, want ready, and lost before the tasks fail", got)
			}
			told := asker.take()
			last := told[len(told)-1].Event.Body
			if f, ok := last.(core.Failed); !ok || f.Fault.Code != core.CodeUnreachable || !f.Fault.Retryable {
				t.Errorf("got %#v, want what it worked on failed as unreachable", last)
			}
			if got := other.take(); len(got) != 1 || got[0].Event.Body.Kind() != core.KindCancelRequested {
				t.Errorf("got %v, want what it asked cancelled", kinds(got))
			}
			other.stop(asked.Task)
			if _, here := s.hub.Agent(core.Principal{Operator: true}, "kid"); !here {
				t.Error("got the agent gone, want its session to stay")
			}
		}
		kid := s.serveChild(session, card)
		kid.Hello(s.Context())
		session.Close(core.NewFault(core.CodeConflict, "somebody else"))
		if f := core.AsFault(<-kid.served); f.Code != core.CodeConflict {
			t.Errorf("a session that has ended: got %v, want why", f)
		}
	})
}

func TestAChildIsToldOnceThatTheHubStops(t *testing.T) {
	withHub(t, func(s *setup) {
		session := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "kid"}, Dialect: "native"})
		defer session.Close(nil)
		if err := session.Join(core.Card{ID: "kid"}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		kid := s.serveChild(session, core.Card{ID: "kid"})
		kid.call(core.Join{}, wire.With{})
		id := s.peer("asker").open(ask("kid", "?"))
		kid.take()
		closed := make(chan error)
		go func() { closed <- s.hub.Close(context.Background(), "maintenance") }()
		if got := kid.others(); len(got) != 1 || got[0] != `draining {"reason":"maintenance"}` {
			t.Errorf("got %v, want it told once", got)
		}
		kid.report(id, core.Done{})
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

func TestACharacterInTwoTextsIsOne(t *testing.T) {
	withHub(t, func(s *setup) {
		agent, asker := s.raw(newPeer("agent")), s.peer("asker")
		agent.send(`{"call":{"id":"1","act":"join","command":{"card":{}}}}`)
		agent.next("result")
		id := asker.open(ask("agent", "?"))
		agent.next("event")
		agent.next("event")
		for _, said := range []string{`"kind":"text","body":{"text":"a\ud83d"},"id":"e"`, `"kind":"thinking","body":{"text":"hm"},"id":"e"`, `"kind":"text","body":{"text":"\ude00b"},"id":"e"`, `"kind":"text","body":{"text":"\ud83d"},"id":"e"`, `"kind":"done","body":{},"id":"e"`} {
			agent.send(`{"event":{"task":"` + string(id) + `",` + said + `}}`)
			agent.next("result")
		}
		var events []core.Event
		for _, told := range asker.take() {
			events = append(events, told.Event)
		}
		if got := core.Fold(events).Text; got != "a😀b�" {
			t.Errorf("got %q, want a😀b�", got)
		}
	})
}
