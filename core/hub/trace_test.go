package hub_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/task"
)

// The traces of requesters.
const (
	sampled   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

// askIn asks an agent in a trace.
func (g *testHub) askIn(s *hub.Session, to core.AgentID, trace core.Trace) *task.Task {
	g.t.Helper()
	asked, err := s.Open(core.Request{To: core.ToAgent(to), Content: "?"}, hub.OpenOptions{Trace: trace})
	if err != nil {
		g.t.Fatal(err)
	}
	return asked
}

func traceOf(t *task.Task) core.Trace { return t.Events()[0].Body.(core.Opened).Trace }

func TestTheTraceOfACallIsInTheTaskThatItOpens(t *testing.T) {
	d, g := onDoor(t)
	agent, asker := g.agent("a", able), g.connect("r")
	asked := g.askIn(asker, "a", core.Trace{Parent: sampled, State: "a=b", Above: "forged", Tool: "forged"})
	if got, want := traceOf(asked), (core.Trace{Parent: sampled, Above: "above"}); got != want {
		t.Errorf("got the trace %+v, want the one that the tracer returned: %+v", got, want)
	}
	g.report(agent, asked, core.Done{})
	want := []policy.Opening{{Given: core.Trace{Parent: sampled, State: "a=b"}}}
	if diff := cmp.Diff(want, d.opening); diff != "" {
		t.Errorf("the tracer got (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]core.TaskID{asked.ID()}, d.ended); diff != "" {
		t.Errorf("tasks that ended (-want +got):\n%s", diff)
	}
}

func TestATraceThatIsMalformedOrNotSampledEndsNowhere(t *testing.T) {
	d, g := onDoor(t)
	agent, asker := g.agent("a", able, two), g.connect("r")
	for parent, want := range map[string]string{unsampled: unsampled, "00-1-2-01": ""} {
		asked := g.askIn(asker, "a", core.Trace{Parent: parent, State: "a=b"})
		g.report(agent, asked, core.Done{})
		if got := traceOf(asked).Parent; got != want {
			t.Errorf("%q: got %q in the task, want %q", parent, got, want)
		}
	}
	if len(d.ended) > 0 {
		t.Errorf("got the ends of %v, want none", d.ended)
	}
}

func TestAHubWithoutATracerCarriesTheTraceOfTheRequesterOn(t *testing.T) {
	g := &testHub{t, coretest.NewHub(t, hub.Options{})}
	agent, asker := g.agent("a", able), g.connect("r")
	asked := g.askIn(asker, "a", core.Trace{Parent: sampled, State: "a=b"})
	g.report(agent, asked, core.Done{})
	if got, want := traceOf(asked), (core.Trace{Parent: sampled, State: "a=b", Above: sampled}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestATaskOfAToolIsInTheTraceOfTheTaskThatShowsTheCall(t *testing.T) {
	d, g := onDoor(t)
	agent, asker := g.agent("a", able, two), g.connect("r")
	helper := g.agent("b", able, two)
	one, other := g.askIn(asker, "a", core.Trace{Parent: sampled}), g.askIn(asker, "a", core.Trace{Parent: unsampled})
	for _, shows := range []*task.Task{one, other} {
		g.report(agent, shows, core.Accepted{})
		g.report(agent, shows, core.ToolCall{ID: "call of " + string(shows.ID()), Name: "agent_ask", Input: "{}"})
		d.opening = nil
		agent.CallTool("call of "+string(shows.ID()), "agent_delegate", []byte(`{"to":"b","content":"?"}`))
		want := []policy.Opening{{IsCaused: true, Cause: traceOf(shows), Tool: "agent_delegate", Call: "call of " + string(shows.ID())}}
		if diff := cmp.Diff(want, d.opening); diff != "" {
			t.Errorf("the tracer got (-want +got):\n%s", diff)
		}
	}
	d.opening = nil
	agent.CallTool("nobody shows it", "agent_notify", []byte(`{"to":"b","topic":"x"}`))
	if len(d.opening) != 1 || d.opening[0].Call != "" || !d.opening[0].IsCaused || !d.opening[0].IsNotice || d.opening[0].Tool != "agent_notify" {
		t.Errorf("a call that no task shows: got %+v, want a notice by the tool, caused, without a call", d.opening)
	}
	helper.Close(nil)
	g.report(agent, one, core.Done{})
	g.report(agent, other, core.Done{})
}

func TestAChildAsksInItsTrace(t *testing.T) {
	_, g := onDoor(t)
	agent, asker := g.agent("a", able), g.connect("r")
	child := asker.Child()
	child.InTrace(core.Trace{Parent: sampled})
	asked, err := child.Ask([]byte(`{"to":"a","content":"?"}`), hub.OpenOptions{Unwatched: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := traceOf(asked).Parent; got != sampled {
		t.Errorf("got %q, want %q", got, sampled)
	}
	g.report(agent, asked, core.Done{})
	child.Close(nil)
}

func TestTheTraceOfAConnectionIsThatOfWhatItAsksForNoOther(t *testing.T) {
	g := &testHub{t, coretest.NewHub(t, hub.Options{})}
	agent := g.agent("a", able, two)
	caller := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "b"}, Dialect: "test", Trace: core.Trace{Parent: unsampled, State: "a=b"}})
	defer caller.Close(nil)
	if err := caller.Join(core.Card{ID: "b"}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	plain := g.askIn(caller, "a", core.Trace{})
	if got, want := traceOf(plain), (core.Trace{Parent: unsampled, State: "a=b", Above: unsampled}); got != want {
		t.Errorf("a request without a trace: got %+v, want that of the connection, %+v", got, want)
	}
	malformed := g.askIn(caller, "a", core.Trace{Parent: "00-1-2-01", State: "c=d"})
	if got, want := traceOf(malformed), traceOf(plain); got != want {
		t.Errorf("a request with a malformed one: got %+v, want %+v", got, want)
	}
	given := g.askIn(caller, "a", core.Trace{Parent: sampled})
	if got, want := traceOf(given), (core.Trace{Parent: sampled, Above: sampled}); got != want {
		t.Errorf("a request with its own: got %+v, want %+v", got, want)
	}
	for _, t := range []*task.Task{plain, malformed, given} {
		g.report(agent, t, core.Done{})
	}
	asker := g.connect("r")
	above := g.askIn(asker, "b", core.Trace{})
	below := g.askIn(caller, "a", core.Trace{})
	if got := traceOf(below); got != (core.Trace{}) {
		t.Errorf("a request because of a task: got %+v, want none, as the task", got)
	}
	g.report(agent, below, core.Done{})
	g.report(caller, above, core.Done{})
}

func TestTheTraceOfACallThatSteersIsInTheEvent(t *testing.T) {
	g := &testHub{t, coretest.NewHub(t, hub.Options{})}
	agent := g.agent("a", able)
	asker := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "r", Operator: true}, Dialect: "test", Trace: core.Trace{Parent: unsampled}})
	defer asker.Close(nil)
	asked := g.askIn(asker, "a", core.Trace{Parent: sampled})
	want := map[string]core.Trace{"own": {Parent: sampled, State: "a=b"}, "malformed": {Parent: unsampled}, "none": {Parent: unsampled}}
	for id, in := range map[string]core.Trace{"own": {Parent: sampled, State: "a=b", Above: "forged", Tool: "forged"}, "malformed": {Parent: "00-1-2-01"}, "none": {}} {
		if err := asker.Inject(hub.NoWait, asked.ID(), core.Injected{ID: id, Content: "x", Trace: in}); err != nil {
			t.Fatal(err)
		}
	}
	g.report(agent, asked, core.Done{})
	got := map[string]core.Trace{}
	for _, e := range asked.Events() {
		if in, is := e.Body.(core.Injected); is {
			got[in.ID] = in.Trace
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("traces (-want +got):\n%s", diff)
	}
}

func TestTheTracerIsToldOfTasksThatAKillCutOffAndOfThoseItMissed(t *testing.T) {
	kept := journal.NewMemory(journal.Retention{})
	begin := func(id core.TaskID) journal.Record {
		return journal.Record{Task: id, Event: core.Event{Seq: 1, Epoch: 1, Body: core.Opened{
			Task: id, From: core.Principal{ID: "r"}, Request: core.Request{Intent: core.IntentAsk, To: core.ToAgent("a"), Content: "?"}, Trace: core.Trace{Parent: sampled},
		}}}
	}
	end := func(id core.TaskID, year int) journal.Record {
		return journal.Record{Task: id, Event: core.Event{Seq: 2, Epoch: 1, At: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC), Body: core.Done{}}}
	}
	// The tracer says that it missed what ended in 2026.
	if err := kept.Append(t.Context(), begin("t0"), end("t0", 2025), begin("t1"), begin("t2"), end("t2", 2026)); err != nil {
		t.Fatal(err)
	}
	d := &doorRecorder{Authorizer: policy.Default{}}
	h := hub.New(hub.Options{Tracer: d, Journal: kept})
	defer h.Close(t.Context(), "")
	if err := h.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]core.TaskID{"t1", "t2"}, d.ended); diff != "" {
		t.Fatalf("tasks that were cut off or missed (-want +got):\n%s", diff)
	}
	events, err := h.Ended(t.Context(), "t1")
	if err != nil {
		t.Fatal(err)
	}
	var got []core.Kind
	for e := range events {
		got = append(got, e.Body.Kind())
	}
	if diff := cmp.Diff([]core.Kind{core.KindOpened, core.KindFailed}, got); diff != "" {
		t.Errorf("its events (-want +got):\n%s", diff)
	}
}
