package peer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// offering connects a pack with tools of these names.
func offering(t testing.TB, s *hub.Session, id string, names ...string) *hub.Session {
	t.Helper()
	if err := s.Provide(id, tools(names...)); err != nil {
		t.Fatal(err)
	}
	return s
}

func tools(names ...string) (all []tool.Definition) {
	for _, n := range names {
		all = append(all, tool.Definition{Name: n, Description: "does " + n, InputSchema: json.RawMessage(`{"type":"object"}`), Timeout: patience / 2}) // a test waits for the timeout too
	}
	return all
}

// listed waits until a hub offers the tools of these packs, and no others.
func listed(t testing.TB, name string, h *hub.Hub, want ...string) {
	t.Helper()
	var got []string
	for waited := time.Now(); time.Since(waited) < patience; time.Sleep(time.Millisecond) {
		got = nil
		for _, tool := range h.ToolsFor(core.Principal{ID: "ann"}, nil)[len(h.Tools()):] {
			got = append(got, tool.Pack+"."+tool.Name)
		}
		if slices.Equal(got, want) {
			return
		}
	}
	t.Fatalf("hub %s offers %v, want %v", name, got, want)
}

// given waits for a call of the pack.
func given(t testing.TB, s *hub.Session) *pack.Execution {
	t.Helper()
	return next(t, s, func(b hub.Batch) *pack.Execution { return b.Execute })
}

// returned waits for the result of a tool.
func returned(t testing.TB, s *hub.Session) *tool.Result {
	t.Helper()
	return next(t, s, func(b hub.Batch) *tool.Result { return b.Tool })
}

// next waits for a batch with something.
func next[T any](t testing.TB, s *hub.Session, of func(hub.Batch) *T) *T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		b, err := s.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if v := of(b); v != nil {
			return v
		}
	}
}

func TestToolsOfAPackAreCalledFromEveryHub(t *testing.T) {
	all := connected(t, "a", "b", "c")
	kit := offering(t, all["b"].person("kit"), "kit", "cut", "glue")
	for name, n := range all {
		listed(t, name, n.Hub, "kit.cut", "kit.glue")
	}
	if got := all["c"].Packs(core.Principal{ID: "ann"}); len(got) != 1 || got[0].Hub != "b" || got[0].Dialect != "test" || len(got[0].Tools) != 2 {
		t.Errorf("hub c lists %+v, want the pack of b", got)
	}
	ann := all["a"].person("ann")
	ann.CallTool("1", "cut", []byte(`{"at":3}`))
	e := given(t, kit)
	if e.Tool != "cut" || string(e.Input) != `{"at":3}` || e.From.ID != "ann" {
		t.Errorf("the pack got %+v, want the call of ann", e)
	}
	words := &core.Foreign{Dialect: "test", JSON: json.RawMessage(`"done"`)}
	if err := kit.AnswerTool(e.ID, tool.Result{Output: json.RawMessage(`{"done":true}`), Foreign: words}); err != nil {
		t.Fatal(err)
	}
	if got := returned(t, ann); got.Call != "1" || got.Pack != "kit" || string(got.Output) != `{"done":true}` || !reflect.DeepEqual(got.Foreign, words) {
		t.Errorf("ann got %+v, want the answer in both forms", got)
	}
	ann.CallTool("1", "cut", nil)
	words.JSON = json.RawMessage(`"` + strings.Repeat("x", 17<<20) + `"`) // more than hubs keep for each other
	if err := kit.AnswerTool(given(t, kit).ID, tool.Result{Output: json.RawMessage(`{"done":true}`), Foreign: words}); err != nil {
		t.Fatal(err)
	}
	if got := returned(t, ann); got.Fault != nil || string(got.Output) != `{"done":true}` || got.Foreign != nil {
		t.Errorf("ann got %s and %v, want the answer without the words of the pack", got.Output, got.Fault)
	}
	ann.CallTool("2", "glue", nil)
	e = given(t, kit)
	if err := kit.AnswerTool(e.ID, tool.Result{Fault: core.NewFault(core.CodeOverloaded, "no glue")}); err != nil {
		t.Fatal(err)
	}
	if got := returned(t, ann); got.Fault == nil || got.Fault.Code != core.CodeOverloaded {
		t.Errorf("ann got %+v, want the fault", got)
	}
	offering(t, kit, "kit", "glue")
	for name, n := range all {
		listed(t, name, n.Hub, "kit.glue")
	}
	ann.CallTool("3", "glue", nil)
	given(t, kit)
	kit.Close(nil)
	if got := returned(t, ann); got.Fault == nil || got.Fault.Code != core.CodeUnreachable || !got.Fault.Retryable {
		t.Errorf("the pack left: got %+v, want unreachable", got)
	}
	for name, n := range all {
		listed(t, name, n.Hub)
	}
}

// An agent at a, in a conversation of ann at c, calls a tool at b, which shows how far it is and asks.
func TestACallOfAToolShowsItsProgressAndAsksOverHubs(t *testing.T) {
	all := connected(t, "a", "b", "c")
	kit := offering(t, all["b"].person("kit"), "kit", "cut")
	bob := all["a"].join(t, all, core.Card{ID: "bob"})
	ann := all["c"].person("ann")
	asked, err := ann.Open(core.Request{To: core.ToAgent("bob"), Content: "cut it", Thread: "trip"}, hub.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	held := assigned(t, bob)
	listed(t, "a", all["a"].Hub, "kit.cut")
	if err := bob.Report(held.ID(), core.ToolState{ID: "call", State: core.ToolRunning}, nil); err != nil {
		t.Fatal(err)
	}
	until(t, ann, asked.ID(), core.KindToolState)
	bob.CallTool("call", "cut", nil)
	e := given(t, kit)
	if hops := kit.HopsOf(e.ID); hops != held.Hops()+1 {
		t.Errorf("got %d hops above what the pack asks, want %d", hops, held.Hops()+1)
	}
	if err := kit.ProgressTool(e.ID, "half of it"); err != nil {
		t.Fatal(err)
	}
	next(t, ann, func(b hub.Batch) *core.ToolState {
		for _, e := range b.Events {
			if s, ok := e.Body.(core.ToolState); ok && s.Detail == "half of it" {
				return &s
			}
		}
		return nil
	})
	watching(ann, "trip", "")
	done := make(chan outcomeOf, 1)
	go func() {
		o, err := kit.AskCaller(t.Context(), e.ID, question.Question{Text: "Really?"})
		done <- outcomeOf{o, err}
	}()
	q := shown(t, ann).Question
	if q.Agent != "bob" {
		t.Errorf("got a question of %s, want one of the agent that called", q.Agent)
	}
	if _, err := ann.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Text: "yes"}); err != nil {
		t.Fatal(err)
	}
	if o := <-done; o.err != nil || o.String() != "yes" || o.By.ID != "ann" {
		t.Errorf("the pack got %+v, want that ann said yes", o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := kit.AskCaller(ctx, e.ID, question.Question{Text: "Sure?"})
		done <- outcomeOf{err: err}
	}()
	for shown(t, ann).Outcome != nil { // the end of the first one
	}
	cancel()
	if o := <-done; o.err == nil {
		t.Errorf("the pack stopped to wait: got %+v, want an error", o)
	}
	if o := shown(t, ann).Outcome; o == nil || o.Answered {
		t.Errorf("the pack stopped to wait: ann sees %+v, want the question withdrawn", o)
	}
	if err := bob.Report(held.ID(), core.Done{}, nil); err != nil {
		t.Fatal(err)
	}
	next(t, kit, func(b hub.Batch) *string {
		if b.Withdrawn == e.ID {
			return &b.Withdrawn
		}
		return nil
	})
}

func TestOfTwoPacksThatCollideTheFirstStays(t *testing.T) {
	all := connected(t, "a", "b", "c")
	offering(t, all["b"].person("kit"), "kit", "cut")
	for name, n := range all {
		listed(t, name, n.Hub, "kit.cut")
	}
	for _, c := range []struct{ id, tool string }{{"kit", "glue"}, {"other", "cut"}} {
		err := all["a"].person("late").Provide(c.id, tools(c.tool))
		if core.AsFault(err).Code != core.CodeConflict {
			t.Errorf("pack %s with %s at another hub: got %v, want a conflict", c.id, c.tool, err)
		}
	}
	one, other := all["a"].person("one"), all["c"].person("other")
	errs := make(chan error, 2)
	for _, s := range []*hub.Session{one, other} {
		go func() { errs <- s.Provide("both", tools("glue")) }()
	}
	refused := 0
	for range 2 {
		if <-errs != nil {
			refused++ // it came so late that it was refused at once
		}
	}
	for late := time.Now().Add(patience); refused+closed(one, other) < 1 && time.Now().Before(late); {
		time.Sleep(time.Millisecond)
	}
	for name, n := range all {
		listed(t, name, n.Hub, "kit.cut", "both.glue")
	}
	if got := refused + closed(one, other); got != 1 {
		t.Errorf("%d of two packs that came at once were refused, want one", got)
	}
}

// closed returns how many of the sessions have ended.
func closed(all ...*hub.Session) (n int) {
	for _, s := range all {
		if s.Closed() {
			n++
		}
	}
	return n
}

func TestAPackGoesWithItsHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		kit := offering(t, w.person("b"), "kit", "cut")
		for name, m := range w.hubs {
			listed(t, name, m.Hub, "kit.cut")
		}
		ann := w.person("a")
		ann.CallTool("1", "cut", nil)
		given(t, kit)
		w.net.Kill("b")
		if got := returned(t, ann); got.Fault == nil || got.Fault.Code != core.CodeUnreachable || !got.Fault.Retryable {
			t.Errorf("got %+v, want unreachable, retryable", got)
		}
		for _, name := range []string{"a", "c"} {
			listed(t, name, w.hubs[name].Hub)
		}
		again := offering(t, w.person("c"), "kit", "cut")
		listed(t, "a", w.hubs["a"].Hub, "kit.cut")
		ann.CallTool("2", "cut", nil)
		if err := again.AnswerTool(given(t, again).ID, tool.Result{Output: json.RawMessage(`1`)}); err != nil {
			t.Fatal(err)
		}
		if got := returned(t, ann); string(got.Output) != "1" {
			t.Errorf("from another hub: got %+v, want the answer", got)
		}
	})
}

func TestACallOverHubsTimesOutAndItsLateAnswerIsInjected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		kit := offering(t, w.person("b"), "kit", "cut")
		listed(t, "a", w.hubs["a"].Hub, "kit.cut")
		bob := w.join("a", core.Card{ID: "bob", Features: core.FeatureInjection})
		ann := w.person("c")
		asked := ask(t, ann, core.ToAgent("bob"))
		assigned(t, bob)
		bob.CallTool("call", "cut", nil)
		e := given(t, kit)
		if got := returned(t, bob); got.Fault == nil || got.Fault.Code != core.CodeTimeout {
			t.Errorf("got %+v, want a timeout", got)
		}
		next(t, kit, func(b hub.Batch) *string {
			if b.Withdrawn == e.ID {
				return &b.Withdrawn
			}
			return nil
		})
		if err := kit.AnswerTool(e.ID, tool.Result{Output: json.RawMessage(`"late"`)}); err != nil {
			t.Errorf("a late answer: got %v, want it taken", err)
		}
		until(t, ann, asked.ID(), core.KindInjected)
	})
}

// What is delegated at a, to an agent at b, is looked up, read and cancelled at c.
func TestToolsOfTheHubWorkOnTasksOfOtherHubs(t *testing.T) {
	all := connected(t, "a", "b", "c")
	bob := all["b"].join(t, all, core.Card{ID: "bob", Features: core.FeatureCancellation | core.FeatureNotices})
	call := func(at, name, input string) map[string]any {
		t.Helper()
		s := all[at].person("ann")
		s.CallTool("1", name, []byte(input))
		got := returned(t, s)
		if got.Fault != nil {
			t.Fatalf("%s at %s: got %v", name, at, got.Fault)
		}
		var out map[string]any
		if err := json.Unmarshal(got.Output, &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	id := call("a", "agent_delegate", `{"to":"bob","content":"go"}`)["task_id"].(string)
	held := assigned(t, bob)
	if err := bob.Report(held.ID(), core.Text{Text: "so far"}, nil); err != nil {
		t.Fatal(err)
	}
	about, seen := `{"task_id":"`+id+`"}`, map[core.TaskID]bool{}
	for _, at := range []string{"c", "b", "a"} {
		if got := call(at, "agent_result", about); got["task_id"] != id || got["state"] == "done" {
			t.Errorf("agent_result at %s: got %v, want the task running", at, got)
		}
		if got := call(at, "task_readers", about); got["readers"] == nil {
			t.Errorf("task_readers at %s: got %v", at, got)
		}
		if got := call(at, "agents_list", `{}`)["agents"].([]any); len(got) != 1 {
			t.Errorf("agents_list at %s: got %v, want bob", at, got)
		}
		done := make(chan map[string]any, 1)
		go func() { done <- call(at, "agent_notify", `{"to":"bob","topic":"news"}`) }()
		notice := assigned(t, bob)
		for seen[notice.ID()] || !notice.IsNotice() { // more of those before
			notice = assigned(t, bob)
		}
		seen[notice.ID()] = true
		bob.Delivered(notice.ID())
		if got := <-done; got["delivered"] != true {
			t.Errorf("agent_notify at %s: got %v", at, got)
		}
	}
	if got := call("c", "agent_cancel", about); got["cancelled"] != true {
		t.Errorf("agent_cancel at c: got %v", got)
	}
	until(t, bob, held.ID(), core.KindCancelRequested)
	if err := bob.Report(held.ID(), core.Cancelled{}, nil); err != nil {
		t.Fatal(err)
	}
	if got := call("a", "agent_result", `{"task_id":"`+id+`","wait_seconds":20}`); got["state"] != "cancelled" {
		t.Errorf("agent_result at a: got %v, want it cancelled", got)
	}
}

// ann at c works on no task, and the tool that she calls is at b. Somebody at a may answer, too.
func TestAToolAtAnotherHubAsksItsCallerWithAForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := connected(t, "a", "b", "c")
		kit := offering(t, all["b"].person("kit"), "kit", "cut")
		listed(t, "c", all["c"].Hub, "kit.cut")
		ann := all["c"].person("ann")
		ann.WatchOwnQuestions()
		form := &question.Form{Name: "how", Message: "How?", Schema: json.RawMessage(`{"type":"object"}`)}
		done := make(chan outcomeOf, 1)
		for i, name := range []string{"c", "a"} {
			ann.CallTool("call", "cut", nil)
			e := given(t, kit)
			go func() {
				o, err := kit.AskCaller(t.Context(), e.ID, question.Question{Text: "How? In words.", Form: form})
				done <- outcomeOf{o, err}
			}()
			q := shown(t, ann).Question
			if q.Agent != "" || q.Text != "cut asks: How? In words." || q.Form == nil || q.Form.Message != "cut asks: How?" || q.Form.Name != "how" || string(q.Form.Schema) != `{"type":"object"}` {
				t.Errorf("got %+v, want the question with its form", q)
			}
			by := all[name].person("ann")
			synctest.Wait() // all hubs have heard of it
			content := json.RawMessage(fmt.Sprintf(`{"times":%d}`, i))
			if _, err := by.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Content: content}); err != nil {
				t.Fatalf("at hub %s: %v", name, err)
			}
			if o := <-done; o.err != nil || string(o.Content) != string(content) || o.By.ID != "ann" {
				t.Errorf("at hub %s: the pack got %+v, want %s of ann", name, o, content)
			}
			if err := kit.AnswerTool(e.ID, tool.Result{Output: json.RawMessage("1")}); err != nil {
				t.Fatal(err)
			}
			if shown(t, ann).Outcome == nil {
				t.Error("got the question again, want its end")
			}
			returned(t, ann)
		}
	})
}
