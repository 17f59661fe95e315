package hub_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestAHubGeneratesAnIDUnlessItHasOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, other := coretest.NewHub(t, hub.Options{}), coretest.NewHub(t, hub.Options{})
		if one.ID() == "" || one.ID() == other.ID() {
			t.Errorf("got %q and %q, want two different ids", one.ID(), other.ID())
		}
		if got := coretest.NewHub(t, hub.Options{ID: "home"}).ID(); got != "home" {
			t.Errorf("got %q, want home", got)
		}
	})
}

func TestEveryLimitHasADefaultAndIsSettable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := coretest.NewHub(t, hub.Options{}).Limits()
		for name, c := range map[string]struct{ got, want any }{
			"QueueLength": {got.QueueLength, 64}, "Retries": {got.Retries, 2}, "CancelGrace": {got.CancelGrace, 5 * time.Second},
			"SlotGrace": {got.SlotGrace, 5 * time.Second}, "QuestionTimeout": {got.QuestionTimeout, 24 * time.Hour}, "Silence": {got.Silence, 10 * time.Minute},
			"Deadline": {got.Deadline, 4 * time.Hour}, "HistoryBytes": {got.HistoryBytes, 64 << 10},
		} {
			if c.got != c.want {
				t.Errorf("%s: got %v, want %v", name, c.got, c.want)
			}
		}
		set := hub.Limits{
			QueueLength: 1, Retries: -1, CancelGrace: 2, SlotGrace: 3, Silence: 4, Deadline: 5, MaxDeadline: 6, RequestBytes: 7,
			Hops: 24, TaskBytes: 8, HistoryBytes: 9, Threads: 10, FinishedTasks: 11, FinishedBytes: 12, UnrecordedBytes: 14, JournalLag: 22, CauseMemory: -13, KeepNotices: 20, NoticeBytes: 21, CardBytes: 23,
			Disconnect: hub.DisconnectNever,
			Packs:      15, PackTools: 16, PackCalls: 17, ToolTimeout: 18, MaxToolTimeout: 19, QuestionTimeout: 20, Questions: 21,
		}
		if got := set.WithDefaults(); got != set {
			t.Errorf("got %+v, want %+v", got, set)
		}
	})
}

func TestADeadlineDefaultsToThatOfTheDialectAndThenOfTheHub(t *testing.T) {
	withHub(t, hub.Limits{Deadline: time.Hour, MaxDeadline: 24 * time.Hour}, func(g *testHub) {
		g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 9 })
		asker, quick := g.connect("r"), g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "r"}, Dialect: "quick", Deadline: time.Minute})
		defer quick.Close(nil)
		to := core.ToAgent("a")
		for name, c := range map[string]struct {
			task *task.Task
			want time.Duration
		}{
			"neither says": {g.open(asker, core.Request{To: to}), time.Hour},
			"the dialect":  {g.open(quick, core.Request{To: to}), time.Minute},
			"the request":  {g.open(quick, core.Request{To: to, Deadline: time.Now().Add(2 * time.Hour)}), 2 * time.Hour},
		} {
			if got := time.Until(c.task.Request().Deadline); got != c.want {
				t.Errorf("%s: got %s, want %s", name, got, c.want)
			}
		}
		_, err := asker.Open(core.Request{To: to, Content: "go", Deadline: time.Now().Add(25 * time.Hour)}, hub.OpenOptions{})
		g.wantFault("a deadline too far away", err, core.CodeInvalid)
	})
}

func TestATaskTellsItsRequesterAndState(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		if got := task.From(); got.ID != "r" {
			t.Errorf("got %q, want r", got.ID)
		}
		opened := task.Events()[0].Body.(core.Opened)
		if opened.Task != task.ID() || opened.From != task.From() {
			t.Errorf("got %+v in the log, want the task and its requester", opened)
		}
		if got, err := json.Marshal(task.State()); err != nil || string(got) != `"running"` {
			t.Errorf("got %s and %v, want running", got, err)
		}
		g.report(agent, task, core.Done{})
		if got, err := json.Marshal(task.State()); err != nil || string(got) != `"ended"` {
			t.Errorf("got %s and %v, want ended", got, err)
		}
	})
}

func TestASignOfLifeIsRecorded(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent := g.agent("a", able)
		g.sleep(time.Minute)
		agent.Seen()
		g.connect("r").Seen()
		if a, _ := g.hub.Agent(core.Principal{Operator: true}, "a"); !a.Load.LastSeen.Equal(time.Now()) || !a.Since.Before(time.Now()) {
			t.Errorf("got last seen %s and connected since %s, want now and a minute ago", a.Load.LastSeen, a.Since)
		}
		if got := g.hub.Nearest(core.Principal{Operator: true}, "A"); !slices.Equal(got, []core.AgentID{"a"}) {
			t.Errorf("got %v, want the nearest name", got)
		}
	})
}

func TestAnAgentReportsOnlyEventsOfAgents(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		for _, body := range []core.Body{
			core.Opened{}, core.Assigned{}, core.ApprovalDecided{}, core.Injected{}, core.Retrying{}, core.CancelRequested{},
		} {
			g.wantFault(body.Kind().String(), agent.Report(task.ID(), body, nil), core.CodeInvalid)
		}
		g.report(agent, task, core.Text{}) // empty text is ignored
		foreign := &core.Foreign{Dialect: "test", JSON: json.RawMessage(`{"x":1}`)}
		if err := agent.Report(task.ID(), core.Text{}, foreign); err != nil {
			t.Fatal(err)
		}
		g.report(agent, task, core.Failed{})
		g.wantKinds("the requester read", g.events(asker), "opened", "assigned", "text", "failed")
		if got := task.Events()[2].Foreign; got != foreign {
			t.Errorf("got the foreign fields %v, want %v", got, foreign)
		}
		if f := task.Answer().Fault; f == nil || f.Code != core.CodeInternal {
			t.Errorf("a failure without a reason: got %v, want internal", f)
		}
	})
}

func TestATimeoutIsReportedToTheMillisecond(t *testing.T) {
	withHub(t, hub.Limits{Deadline: 1234567 * time.Microsecond}, func(g *testHub) {
		g.agent("a", able)
		task := g.ask(g.connect("r"), "a")
		g.sleep(2 * time.Second)
		if got, want := task.Answer().Fault.Message, "no answer by the deadline of 2000-01-01T00:00:01.235Z"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestReportsAfterTheDeadlineAreCounted(t *testing.T) {
	withHub(t, hub.Limits{Deadline: time.Second}, func(g *testHub) {
		agent, asker := g.agent("a", able), g.connect("r")
		task := g.ask(asker, "a")
		g.sleep(time.Second)
		g.wantFault("late text", agent.Report(task.ID(), core.Text{Text: "sorry"}, nil), core.CodeConflict)
		g.wantFault("a late end", agent.Report(task.ID(), core.Done{}, nil), core.CodeConflict)
		g.wantFault("an end after it", agent.Report(task.ID(), core.Done{}, nil), core.CodeConflict)
		if got := g.hub.Counters(); got["report.late"] != 3 || got["report.not_held"] != 0 {
			t.Errorf("got %v, want three late reports", got)
		}
		g.wantLoad("a", 0, 0, core.LoadIdle)
	})
}

func TestAnOperatorGetsAGapForDroppedFirstEvents(t *testing.T) {
	forgotten(t, 2, func(g *testHub, _ *hub.Session, id core.TaskID) {
		operator := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "o", Operator: true}})
		defer operator.Close(nil)
		asked, err := g.hub.Task(g.t.Context(), operator.Identity().Principal, id)
		if err != nil {
			g.t.Fatal(err)
		}
		if err := operator.Watch(asked, core.Cursor{}, nil); err != nil {
			g.t.Fatal(err)
		}
		b, _ := g.batch(operator)
		if want := (task.Gap{From: 1, To: 2}); b.Gap == nil || *b.Gap != want {
			g.t.Fatalf("got %+v, want the gap %+v", b, want)
		}
		g.wantKinds("after the gap", g.events(operator), "text", "done")
		if err := operator.Watch(asked, core.Cursor{Epoch: 1, Seq: 3}, nil); err != nil {
			g.t.Fatal(err)
		}
		if b, _ := g.batch(operator); b.Gap != nil || len(b.Events) != 1 {
			g.t.Errorf("from after the gap: got %+v, want only the end", b)
		}
		if err := asked.Recorded(g.t.Context(), 4); err != nil || asked.Receipt().Stage != core.StageRecorded {
			g.t.Errorf("got %v and %s, want it recorded", err, asked.Receipt().Stage)
		}
	})
}

// unreadable is a journal that cannot be read.
type unreadable struct{ *journal.Memory }

var errDeaf = errors.New("the disk is on fire")

func (unreadable) Read(context.Context, core.TaskID, uint64, int) ([]core.Event, error) {
	return nil, errDeaf
}
func (unreadable) Heads(context.Context, func(journal.Head) bool) error { return errDeaf }

func TestAnUnreadableJournalIsAnErrorAndNotAnUnknownTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := coretest.NewHub(t, hub.Options{Journal: unreadable{journal.NewMemory(journal.Retention{})}})
		if err := h.Recover(t.Context()); !errors.Is(err, errDeaf) {
			t.Errorf("at the start: got %v, want %v", err, errDeaf)
		}
		if _, err := h.Task(t.Context(), core.Principal{ID: "r"}, "x"); !errors.Is(err, errDeaf) {
			t.Errorf("looking for a task: got %v, want %v", err, errDeaf)
		}
	})
}

func TestAJournalThatNeverRecordsIsReportedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &moody{Memory: journal.NewMemory(journal.Retention{})}
		j.refuse.Store(true)
		opts := hub.Options{Journal: j}
		promises := coretest.Watch(&opts)
		h := hub.New(opts)
		promises.Read(h)
		promises.JournalRefused()
		s := h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}})
		if _, err := s.Open(core.Request{To: core.ToAgent("nobody"), Content: "go"}, hub.OpenOptions{}); err == nil {
			t.Fatal("got no error, want one")
		}
		if err := h.Close(t.Context(), "the test is over"); err == nil {
			t.Error("closing: got no error, want the journal's")
		}
		if h.Counters()["journal.refused"] == 0 {
			t.Error("got nothing counted, want the refusals")
		}
		for _, broken := range promises.Broken() {
			t.Error(broken)
		}
	})
}
