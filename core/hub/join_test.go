package hub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestABadAgentIDIsRefused(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		s := g.connect("a")
		for _, id := range []core.AgentID{"", "*", "hub", "capability:x", "domain:x", "a\nb", " a", core.AgentID(strings.Repeat("x", 513))} {
			g.wantFault("the id "+string(id), s.Join(core.Card{ID: id}, hub.JoinOptions{}), core.CodeInvalid)
		}
		if got := g.hub.Agents(core.Principal{Operator: true}); len(got) != 0 {
			t.Errorf("got %d agents, want none", len(got))
		}
		if err := s.Join(core.Card{ID: "a"}, hub.JoinOptions{}); err != nil {
			t.Errorf("a valid id afterwards: got %v, want no error", err)
		}
	})
}

func TestAStoppingHubAcceptsNoAgents(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		here, late, standby, asker := g.agent("a", able), g.connect("late"), g.connect("standby"), g.connect("r")
		if err := standby.Join(core.Card{ID: "p"}, hub.JoinOptions{OnlyByID: true}); err != nil {
			t.Fatal(err)
		}
		task := g.ask(asker, "a")
		closed := make(chan error, 1)
		go func() { closed <- g.hub.Close(context.Background(), "maintenance") }()
		synctest.Wait()
		g.wantFault("one that comes too late", late.Join(core.Card{ID: "late"}, hub.JoinOptions{}), core.CodeUnreachable)
		g.wantFault("one by its id alone", late.Join(core.Card{ID: "late"}, hub.JoinOptions{OnlyByID: true}), core.CodeUnreachable)
		g.wantFault("one that stood by", standby.Join(core.Card{ID: "p"}, hub.JoinOptions{}), core.CodeUnreachable)
		g.wantFault("one that takes an id", late.Take(context.Background(), core.Card{ID: "a"}, hub.JoinOptions{}), core.CodeUnreachable)
		if err := here.Update(core.Card{ID: "a", Name: "still here"}); err != nil {
			t.Errorf("a connected agent: got %v, want its card replaced", err)
		}
		g.report(here, task, core.Done{})
		if err := <-closed; err != nil {
			t.Errorf("closing: got %v, want no error", err)
		}
	})
}

func TestAnIDStaysWithItsAgent(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		first, second, asker := g.agent("a", able), g.connect("x"), g.connect("r")
		g.wantFault("the id of another", second.Join(core.Card{ID: "a"}, hub.JoinOptions{}), core.CodeConflict)
		g.wantFault("a second id", first.Join(core.Card{ID: "b"}, hub.JoinOptions{}), core.CodeConflict)
		g.wantFault("the same id again", first.Join(core.Card{ID: "a"}, hub.JoinOptions{}), core.CodeConflict)
		task := g.ask(asker, "a")
		g.wantFault("a report by the refused agent", second.Report(task.ID(), core.Done{}, nil), core.CodeNotAuthorized)
		g.report(first, task, core.Done{})

		first.Close(nil)
		if err := second.Join(core.Card{ID: "a"}, hub.JoinOptions{}); err != nil {
			t.Fatalf("after it left: got %v, want no error", err)
		}
		g.report(second, g.ask(asker, "a"), core.Done{})
	})
}

func TestOnlyTheOwnerReplacesACard(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, guest := g.agent("a", able), g.connect("r")
		g.wantFault("another id", a.Update(core.Card{ID: "b"}), core.CodeConflict)
		g.wantFault("no id", a.Update(core.Card{}), core.CodeConflict)
		g.wantFault("a session that is no agent", guest.Update(core.Card{ID: "a"}), core.CodeConflict)
		g.wantFault("a session that is no agent, with no id", guest.Update(core.Card{}), core.CodeConflict)
		if err := a.Update(core.Card{ID: "a", Name: "A", Domains: []string{"work"}}); err != nil {
			t.Fatal(err)
		}
		if got := g.hub.Match(core.Principal{Operator: true}, core.ToDomain("work.mail")); len(got) != 1 || got[0].Name != "A" || got[0].MaxConcurrent != 1 {
			t.Errorf("got %+v, want the new card, for one task at a time", got)
		}
	})
}

func TestAnAgentGetsOnlyWhatItsLatestCardDeclares(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		if err := agent.Update(core.Card{ID: "a"}); err != nil {
			t.Fatal(err)
		}
		g.wantFault("an injection", asker.Inject(hub.NoWait, task.ID(), core.Injected{Content: "hi"}), core.CodeUnsupported)
		if err := asker.Cancel(task.ID(), "stop"); err != nil {
			t.Fatal(err)
		}
		g.wantKinds("the agent read", g.events(agent), "assigned", "cancelled")
	})
}

func TestAgentsAreListedWithPrincipalAndLoad(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		g.agent("b", able)
		g.agent("a", able, func(c *core.Card) { c.Name = "Anna" })
		all := g.hub.Agents(core.Principal{Operator: true})
		if len(all) != 2 || all[0].ID != "a" || all[1].ID != "b" {
			t.Fatalf("got %+v, want a and b", all)
		}
		if all[0].Name != "Anna" || all[1].Name != "b" || all[0].Principal.ID != "a" || all[0].Load.State != core.LoadIdle {
			t.Errorf("got %+v, want a with the name Anna, idle, and b with its id as its name", all)
		}
		if _, ok := g.hub.Agent(core.Principal{Operator: true}, "c"); ok {
			t.Error("got an agent that is not connected, want none")
		}
	})
}

func TestASessionThatIsClosedTwiceKeepsTheFirstReason(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		agent.Close(core.NewFault(core.CodeTooLarge, "a message was too long"))
		agent.Close(core.NewFault(core.CodeInternal, "again"))
		agent.Close(nil)
		g.wantKinds("the log", task.Events(), "opened", "assigned", "failed")
		if f := task.Answer().Fault; !strings.Contains(f.Message, "a message was too long") {
			t.Errorf("got %v, want the first reason in it", f)
		}
		g.events(agent)
		if _, err := agent.Next(context.Background()); err == nil || core.AsFault(err).Code != core.CodeTooLarge {
			t.Errorf("got %v from Next, want the first reason", err)
		}
	})
}

func TestTheReasonWhyAnAgentLeftOmitsItsInternalCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		g := &testHub{t, coretest.NewHub(t, hub.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})}
		agent := g.agent("a", able)
		task := g.ask(g.connect("r"), "a")
		cut := fmt.Errorf("read tcp 127.0.0.1:49152: %w", io.ErrUnexpectedEOF)
		agent.Close(core.NewFault(core.CodeUnreachable, "its connection was lost").Because(fmt.Errorf("peer gone: %w", cut)))
		if got, want := task.Answer().Fault.Message, "agent a left: its connection was lost"; got != want {
			t.Errorf("the requester got %q, want %q", got, want)
		}
		if want := `agent=a reason="its connection was lost"`; !strings.Contains(log.String(), want) {
			t.Errorf("got the log %q, want %s in it", log.String(), want)
		}
		if want := `detail="peer gone: read tcp 127.0.0.1:49152: unexpected EOF"`; !strings.Contains(log.String(), want) {
			t.Errorf("got the log %q, want %s in it, once", log.String(), want)
		}
	})
}

func TestAnEndedSessionRefusesEverything(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, s := g.agent("a", able), g.connect("r")
		task := g.ask(g.connect("r2"), "a")
		s.Close(nil)
		_, err := s.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{})
		g.wantFault("asking", err, core.CodeUnreachable)
		g.wantFault("joining", s.Join(core.Card{ID: "b"}, hub.JoinOptions{}), core.CodeUnreachable)
		agent.Close(nil)
		g.wantFault("reporting", agent.Report(task.ID(), core.Done{}, nil), core.CodeNotAuthorized)
		agent.Delivered(task.ID())
		agent.Seen()
		agent.SetLoad(core.LoadIdle)
		if got := g.hub.Agents(core.Principal{Operator: true}); len(got) != 0 {
			t.Errorf("got %d agents, want none", len(got))
		}
	})
}

func TestAnExpelledPrincipalCannotConnectAgain(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		alice, bob, anonymous := g.as("alice"), g.as("bob"), g.connect("local")
		for _, s := range []*hub.Session{alice, bob, anonymous} {
			if err := s.Join(core.Card{ID: core.AgentID(s.Identity().Principal.ID)}, hub.JoinOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		g.hub.Expel(func(p core.Principal) bool { return p.ID != "bob" })
		g.wantAgents("without bob", "alice", "local")
		// The second connection was authenticated before, but connects now.
		for _, s := range []*hub.Session{bob, g.as("bob")} {
			_, err := s.Next(t.Context())
			g.wantFault("bob", err, core.CodeUnauthenticated)
		}
		if err := g.as("alice").Join(core.Card{ID: "second"}, hub.JoinOptions{}); err != nil {
			t.Errorf("alice again: got %v, want no error", err)
		}
	})
}

func TestACardOverTheLimitIsRefusedAndNamesWhatToShorten(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		big := core.Card{ID: "a", Tools: []string{"t"}, Metadata: map[string]json.RawMessage{"notes": json.RawMessage(`"` + strings.Repeat("x", 64<<10) + `"`)}}
		s := g.connect("a")
		err := s.Join(big, hub.JoinOptions{})
		g.wantFault("joining with a card of more than 64 KiB", err, core.CodeTooLarge)
		for _, want := range []string{"65536", "limits.card_bytes", "shorten its metadata"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("got %q, want it to say %s", err, want)
			}
		}
		small := big
		small.Metadata = nil
		if err := s.Join(small, hub.JoinOptions{}); err != nil {
			t.Fatalf("joining with a small card: got %v, want no error", err)
		}
		g.wantFault("replacing it by the large one", s.Update(big), core.CodeTooLarge)
		if got := g.hub.Agents(core.Principal{})[0].Metadata; got != nil {
			t.Errorf("got %d bytes of metadata after a refused card, want none", len(got["notes"]))
		}
	})
}

func TestANameKeepsNoIDFromItsOwner(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		if err := g.as("mallory").Join(core.Card{ID: "mallory", Name: "shout"}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		named := core.Principal{ID: "alice", Authenticated: true, Credential: &core.Credential{Agents: []string{"shout"}}}
		for _, p := range []core.Principal{{ID: "shout", Authenticated: true}, named} {
			s := g.connectAs(p)
			if err := s.Join(core.Card{ID: "shout"}, hub.JoinOptions{}); err != nil {
				t.Errorf("%s: got %v, want no error: the id is its own", p.ID, err)
			}
			s.Close(nil)
		}
	})
}
