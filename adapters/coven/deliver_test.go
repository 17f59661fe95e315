package coven

import (
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

func TestATaskThatEndedBeforeItWasSentTakesNoSlot(t *testing.T) {
	h := coretest.NewHub(t, hub.Options{})
	agent, requester := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}}), h.Connect(hub.Identity{Principal: core.Principal{ID: "requester"}})
	defer requester.Close(nil)
	defer agent.Close(nil)
	card := core.Card{ID: "a", Dialect: Name, Features: core.FeatureInjection}
	if err := agent.Join(card, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	task, err := requester.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := requester.Inject(hub.NoWait, task.ID(), core.Injected{ID: "i", Content: "more"}); err != nil {
		t.Fatal(err)
	}
	if err := requester.Cancel(task.ID(), "never mind"); err != nil {
		t.Fatal(err)
	}
	conn, _ := coretest.Pipe[*pb.AgentMessage, *pb.ServerMessage](1)
	s := newSession(h, conn, &Options{})
	s.agent, s.card = agent, card
	b, err := agent.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.deliver(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if queued := s.link.Queued(); queued != 0 || len(s.requests) != 0 {
		t.Errorf("got %d bytes for the agent and %d tasks that it has, want none", queued, len(s.requests))
	}
	if a, _ := h.Agent(core.Principal{Operator: true}, "a"); a.Load.Active != 0 {
		t.Errorf("got %d active tasks, want 0: the hub waits for the agent to end this one", a.Load.Active)
	}
}

func TestALateDecisionOnAnEarlierInputIsNotSent(t *testing.T) {
	h := coretest.NewHub(t, hub.Options{})
	agent, requester := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}}), h.Connect(hub.Identity{Principal: core.Principal{ID: "requester"}})
	defer requester.Close(nil)
	defer agent.Close(nil)
	if err := agent.Join(core.Card{ID: "a", Dialect: Name, Features: core.FeatureApprovals}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	task, err := requester.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conn, _ := coretest.Pipe[*pb.AgentMessage, *pb.ServerMessage](1)
	s := newSession(h, conn, &Options{})
	s.agent = agent
	sink := &taskSink{ctx: t.Context(), session: s, task: task}
	ask := func(input string) core.ApprovalDecided {
		t.Helper()
		if err := agent.Report(task.ID(), core.ApprovalRequested{ID: "t", Name: "bash", Input: input}, nil); err != nil {
			t.Fatal(err)
		}
		return core.ApprovalDecided{ID: "t", Approved: true, By: "requester", InputSHA256: core.InputDigest(input)}
	}
	first, second := ask("ls"), ask("rm -rf /")
	for _, c := range []struct {
		decision core.ApprovalDecided
		sent     bool
	}{{first, false}, {second, true}} {
		before := s.link.Queued()
		if err := sink.ApprovalDecided(core.Event{}, c.decision); err != nil {
			t.Fatal(err)
		}
		if sent := s.link.Queued() > before; sent != c.sent {
			t.Errorf("%+v while the agent asks for rm: got it sent %v, want %v", c.decision, sent, c.sent)
		}
	}
	if err := agent.Report(task.ID(), core.Done{}, nil); err != nil {
		t.Fatal(err)
	}
}
