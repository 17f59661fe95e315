package hub_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

// framed is a session whose connection keeps frames.
type framed struct {
	*hub.Session
	*frame.Ring
}

func (g *testHub) framed(b *frame.Book, id string) framed {
	r := b.Connect("test", nil)
	s := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: id}, Dialect: "test", Frames: r})
	g.t.Cleanup(func() { s.Close(nil) })
	return framed{s, r}
}

// handles has the reader of the connection handle a message.
func (f framed) handles(message string, act func()) {
	f.Receive([]byte(message))
	act()
	f.Received()
}

// became returns the frames in short.
func became(found hub.TaskFrames) (all []string) {
	for _, f := range found.Frames {
		line := string(f.Direction) + " " + string(f.Frame)
		for _, is := range f.Became {
			line += " " + is.Kind + "=" + is.Disposition
		}
		all = append(all, line)
	}
	return all
}

func newFramedHub(t *testing.T, change func(*hub.Options)) (*testHub, *frame.Book) {
	b := frame.NewBook(frame.Options{Keep: 1 << 20})
	o := hub.Options{Frames: b}
	if change != nil {
		change(&o)
	}
	return &testHub{t, coretest.NewHub(t, o)}, b
}

func TestTheSessionSaysWhatAFrameIs(t *testing.T) {
	g, b := newFramedHub(t, nil)
	agent, asker := g.framed(b, "a"), g.framed(b, "r")
	if err := agent.Join(core.Card{ID: "a", Features: able}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	var asked *task.Task
	asker.handles(`"ask"`, func() { asked = g.ask(asker.Session, "a") })
	agent.handles(`"two texts"`, func() { g.report(agent.Session, asked, core.Text{Text: "one"}, core.Text{Text: "two"}) })
	asker.handles(`"inject"`, func() { _ = asker.Inject(hub.NoWait, asked.ID(), core.Injected{ID: "i", Content: "more"}) })
	asker.handles(`"decide"`, func() { _ = asker.Decide(hub.NoWait, asked.ID(), core.ApprovalDecided{ID: "nobody asked"}) })
	asker.handles(`"cancel"`, func() { _ = asker.Cancel(asked.ID(), "enough") })
	agent.handles(`"call"`, func() { agent.CallTool("c", "no_such_tool", json.RawMessage(`{}`)) })
	agent.handles(`"done"`, func() { g.report(agent.Session, asked, core.Done{}) })
	agent.handles(`"late"`, func() { _ = agent.Report(asked.ID(), core.Text{Text: "late"}, nil) })
	found, err := g.hub.Frames(t.Context(), core.Principal{ID: "op", Operator: true}, asked.ID())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`in "ask" opened=native`, `in "two texts" text=native`, `in "inject" injected=native`, `in "decide" approval_decided=refused`,
		`in "cancel" cancel_requested=native`, `in "call" call_tool=native`, `in "done" done=native`, `in "late" text=refused`,
	}
	if d := cmp.Diff(want, became(found)); d != "" || found.Missing != "" {
		t.Errorf("missing %q (-want +got):\n%s", found.Missing, d)
	}
	// A frame says which events of the task it is, so that the frames of both sides can be matched.
	log := asked.Log()
	for _, f := range found.Frames {
		for _, is := range f.Became {
			for seq := is.Seq; seq > 0 && seq <= max(is.Seq, is.Until); seq++ {
				if got := log.At(int(seq) - 1).Body.Kind().String(); got != is.Kind { //nolint:gosec // a short log
					t.Errorf("%s: got %s as event %d, want %s", f.Frame, is.Kind, seq, got)
				}
			}
			if (is.Seq == 0) != (is.Disposition == "refused" || is.Kind == "call_tool") || is.Until > 0 != (string(f.Frame) == `"two texts"`) {
				t.Errorf("%s: got %+v, want its events, and none for what is no event", f.Frame, is)
			}
		}
	}
}

func TestASessionWithFramesIsToldOfOneEventAtATime(t *testing.T) {
	g, b := newFramedHub(t, nil)
	agent, asker := g.agent("a", able), g.framed(b, "r")
	asked := g.ask(asker.Session, "a")
	g.report(agent, asked, core.Text{Text: "one"}, core.Thinking{Text: "two"}, core.Text{Text: "three"}, core.Done{})
	var got []string
	for range 20 {
		batch, err := asker.Next(t.Context())
		if err != nil || len(batch.Events) != 1 {
			t.Fatalf("got %d events and %v, want one", len(batch.Events), err)
		}
		kind := batch.Events[0].Body.Kind()
		asker.Queued(t.Context(), []byte(`"`+kind.String()+`"`))
		if got = append(got, kind.String()); kind.Ends() {
			break
		}
	}
	asker.Told()
	asker.Queued(t.Context(), []byte(`"something else"`))
	var want []string
	for _, kind := range got {
		want = append(want, `out "`+kind+`" `+kind+"=native")
	}
	found, err := g.hub.Frames(t.Context(), asker.Identity().Principal, asked.ID())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, became(found)); d != "" || len(want) != 6 {
		t.Errorf("got %d events (-want +got):\n%s", len(want), d)
	}
}

func TestFramesAreForThoseWhoMayReadAllTheirTasks(t *testing.T) {
	g, b := newFramedHub(t, nil)
	g.agent("a", able)
	asker := g.framed(b, "r")
	other := g.connect("x")
	his := g.ask(other, "a")
	var asked *task.Task
	asker.handles(`"both"`, func() {
		asked = g.ask(asker.Session, "a")
		asker.Event(his.ID(), false, core.KindOpened, 0, false) // as a frame that has more than one task
	})
	asker.handles(`"meddle"`, func() { g.wantFault("a stranger cancels", asker.Cancel(his.ID(), ""), core.CodeUnknownTask) })
	asker.handles(`"made up"`, func() {
		g.wantFault("a stranger reports", asker.Report(his.ID(), core.Text{}, nil), core.CodeNotAuthorized)
	})

	_, err := g.hub.Frames(t.Context(), other.Identity().Principal, asked.ID())
	g.wantFault("a reader without the right", err, core.CodeUnknownTask)
	_, err = g.hub.Frames(t.Context(), other.Identity().Principal, "0190b5c0-0000-7000-8000-000000000000")
	g.wantFault("an unknown task", err, core.CodeUnknownTask)
	for _, tt := range []struct {
		who     core.Principal
		task    core.TaskID
		frames  int
		missing string
	}{
		{core.Principal{ID: "r"}, asked.ID(), 0, "frames that also belong to tasks you may not read: 1"},
		{core.Principal{ID: "x"}, his.ID(), 0, "frames that also belong to tasks you may not read: 1"},
		{core.Principal{ID: "op", Operator: true}, his.ID(), 1, ""},
	} {
		found, err := g.hub.Frames(t.Context(), tt.who, tt.task)
		if err != nil || len(found.Frames) != tt.frames || found.Missing != tt.missing {
			t.Errorf("%s: got %q, %q and %v, want %d frames and %q", tt.who.ID, became(found), found.Missing, err, tt.frames, tt.missing)
		}
	}
}

// What an agent asks the hub in a task, and is answered, may name agents and tasks that the readers of
// its task may not see.
func TestTheToolsOfAnAgentAreInNoFrameForTheReadersOfItsTask(t *testing.T) {
	g, b := newFramedHub(t, func(o *hub.Options) {
		o.Authorizer = coretest.Rules(t, "ann see,ask,read worker", "worker see,ask,read")
	})
	g.agent("secretagent", able)
	worker := g.framed(b, "worker")
	if err := worker.Join(core.Card{ID: "worker", Features: able}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	ann := g.framed(b, "ann")
	var asked *task.Task
	ann.handles(`"ask"`, func() { asked = g.ask(ann.Session, "worker") })
	worker.handles(`{"list":"the agents"}`, func() { worker.CallTool("c", "agents_list", json.RawMessage(`{}`)) })
	for answered := false; !answered; {
		batch, err := worker.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if answered = batch.Tool != nil; answered {
			worker.Queued(t.Context(), []byte(batch.Tool.Output))
		}
	}
	worker.Told()
	worker.handles(`"said"`, func() { g.report(worker.Session, asked, core.Text{Text: "x"}) })
	for who, want := range map[core.Principal]struct {
		frames  int
		missing string
	}{
		{ID: "ann"}:                {2, "calls of tools and their answers, which only operators see, since they may name what you may not see: 2"},
		{ID: "op", Operator: true}: {4, ""},
	} {
		found, err := g.hub.Frames(t.Context(), who, asked.ID())
		if err != nil {
			t.Fatal(err)
		}
		if all := became(found); len(all) != want.frames || found.Missing != want.missing || strings.Contains(strings.Join(all, ""), "secretagent") != who.Operator {
			t.Errorf("%s: got %q and missing %q, want %d frames and %q", who.ID, all, found.Missing, want.frames, want.missing)
		}
	}
}

// A request that repeats earlier turns is shown to who may read those, too.
func TestAFrameWithEarlierTurnsIsForThoseWhoMayReadThem(t *testing.T) {
	g, b := newFramedHub(t, func(o *hub.Options) {
		o.Authorizer = coretest.Rules(t, "* see,ask", "ron read worker", "eve read")
	})
	other, worker := g.agent("other", able), g.framed(b, "worker")
	if err := worker.Join(core.Card{ID: "worker", Features: able}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	asker := g.connect("asker")
	open := func(to core.AgentID) *task.Task {
		t.Helper()
		opened, err := asker.Open(core.Request{To: core.ToAgent(to), Thread: "th", Content: "for " + string(to)}, hub.OpenOptions{Unwatched: true})
		if err != nil {
			t.Fatal(err)
		}
		return opened
	}
	g.report(other, open("other"), core.Done{Text: "for your eyes only"})
	asked := open("worker")
	for sent := false; !sent; {
		batch, err := worker.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if sent = batch.Task != nil && batch.Events[0].Body.Kind() == core.KindAssigned; sent {
			worker.Queued(t.Context(), []byte(`{"history":`+string(strictjson.Encode(batch.Task.Request().History))+`}`))
		}
	}
	worker.Told()
	for who, frames := range map[string]int{"asker": 1, "eve": 1, "ron": 0} {
		found, err := g.hub.Frames(t.Context(), core.Principal{ID: who}, asked.ID())
		if err != nil || len(found.Frames) != frames || (found.Missing == "") != (frames > 0) {
			t.Errorf("%s: got %q, missing %q and %v, want %d frames", who, became(found), found.Missing, err, frames)
		}
	}
}

func TestFramesAreShownWithoutSecrets(t *testing.T) {
	r, err := redact.New([]string{`sk-[a-z]{8}`}, []string{"correct-horse"})
	if err != nil {
		t.Fatal(err)
	}
	g, b := newFramedHub(t, func(o *hub.Options) { o.Redact = func() *redact.Redactor { return r } })
	g.agent("a", able)
	asker := g.framed(b, "r")
	var asked *task.Task
	asker.handles(`{"a":"sk-abcdefgh","b":"correct\u002dhorse"}`, func() { asked = g.ask(asker.Session, "a") })
	asker.handles(`no JSON: correct-horse`, func() { _ = asker.Cancel(asked.ID(), "") })
	found, err := g.hub.Frames(t.Context(), asker.Identity().Principal, asked.ID())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`in {"a":"[redacted]","b":"[redacted]"} opened=native`, `in "no JSON: [redacted]" cancel_requested=native`}
	if d := cmp.Diff(want, became(found)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestAHubSaysThatFramesAreGoneOrNotKept(t *testing.T) { synctest.Test(t, framesAreGone) }

func framesAreGone(t *testing.T) {
	kept := journal.NewMemory(journal.Retention{})
	first := hub.New(hub.Options{Journal: kept, Frames: frame.NewBook(frame.Options{Keep: 1 << 20})})
	g := &testHub{t, first}
	agent, asker := g.agent("a", able), g.connect("r")
	asked := g.ask(asker, "a")
	g.report(agent, asked, core.Done{})
	if err := first.Close(t.Context(), ""); err != nil && !errors.Is(err, hub.ErrStopping) {
		t.Fatal(err)
	}
	asker.Close(nil)
	agent.Close(nil)

	g.sleep(time.Second)
	again, _ := newFramedHub(t, func(o *hub.Options) { o.Journal = kept })
	found, err := again.hub.Frames(t.Context(), core.Principal{ID: "r"}, asked.ID())
	if err != nil || len(found.Frames) != 0 || !strings.Contains(found.Missing, "kept in memory") {
		t.Errorf("after a restart: got %q, %q and %v, want none, and why", became(found), found.Missing, err)
	}
	off := &testHub{t, coretest.NewHub(t, hub.Options{Journal: kept})}
	_, err = off.hub.Frames(t.Context(), core.Principal{ID: "r"}, asked.ID())
	off.wantFault("without frames.keep", err, core.CodeConflict)
	if !strings.Contains(core.AsFault(err).Message, "frames.keep") {
		t.Errorf("got %q, want it to name frames.keep", err)
	}
}
