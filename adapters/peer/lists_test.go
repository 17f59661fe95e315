package peer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/audit"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/usage"
)

var operator = core.Principal{ID: "root", Operator: true}

func TestADecisionIsMadeAtAHubThatHasNotReadTheTask(t *testing.T) {
	all := connected(t, "a", "b", "c")
	bob := all["b"].join(t, all, core.Card{ID: "bob", Features: core.FeatureApprovals})
	ask(t, all["a"].person("ann"), core.ToAgent("bob"))
	held := assigned(t, bob)
	if err := bob.Report(held.ID(), core.ApprovalRequested{ID: "1", Name: "rm", Input: "-r"}, nil); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"a", "b", "c"} {
		got, missing := all[at].Approvals(t.Context(), core.Principal{ID: "ann"})
		if len(got) != 1 || got[0].Task != held.ID() || len(missing) != 0 {
			t.Errorf("at hub %s: got the approvals %+v without %v, want one of task %s", at, got, missing, held.ID())
		}
		if got, _ := all[at].Approvals(t.Context(), core.Principal{ID: "eve"}); len(got) != 0 {
			t.Errorf("at hub %s: got %+v for somebody else, want none", at, got)
		}
	}
	if err := all["c"].person("eve").Decide(t.Context(), held.ID(), core.ApprovalDecided{ID: "1", Approved: true}); core.AsFault(err).Code != core.CodeUnknownTask {
		t.Errorf("the decision of somebody else: got %v, want unknown_task", err)
	}
	if err := all["c"].person("ann").Decide(t.Context(), held.ID(), core.ApprovalDecided{ID: "1", Approved: true}); err != nil {
		t.Fatal(err)
	}
	until(t, bob, held.ID(), core.KindApprovalDecided)
	if got, _ := all["a"].Approvals(t.Context(), operator); len(got) != 0 {
		t.Errorf("after the decision: got %+v, want none", got)
	}
}

func TestEveryHubListsWhyATaskFailed(t *testing.T) {
	all := connected(t, "a", "b", "c")
	bob := all["b"].join(t, all, core.Card{ID: "bob"})
	ann := all["a"].person("ann")
	ask(t, ann, core.ToAgent("bob"))
	failed := assigned(t, bob)
	if err := bob.Report(failed.ID(), core.Failed{Fault: core.NewFault(core.CodeUnreachable, "the shop is closed")}, nil); err != nil {
		t.Fatal(err)
	}
	until(t, ann, failed.ID(), core.KindFailed)
	for _, at := range []string{"a", "b", "c"} {
		page, err := all[at].Tasks(t.Context(), operator, task.Filter{State: "failed"})
		if err != nil || len(page.Tasks) != 1 {
			t.Fatalf("at hub %s: got %+v and %v, want one task", at, page, err)
		}
		if f := page.Tasks[0].Fault; f == nil || f.Code != core.CodeUnreachable || f.Message != "the shop is closed" {
			t.Errorf("at hub %s: got %v, want why it failed", at, f)
		}
	}
}

// gets waits until an agent has a task.
func gets(t *testing.T, agent *hub.Session, id core.TaskID) {
	t.Helper()
	for assigned(t, agent).ID() != id {
	}
}

// pagesOf returns the ids of the tasks that a hub lists in pages, and the hubs that are missing.
func pagesOf(t *testing.T, h *hub.Hub, f task.Filter) (all []core.TaskID, missing []string) {
	t.Helper()
	for {
		page, err := h.Tasks(t.Context(), operator, f)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Tasks) > f.Listed() {
			t.Errorf("got a page of %d tasks, want at most %d", len(page.Tasks), f.Listed())
		}
		for _, one := range page.Tasks {
			all = append(all, one.ID)
		}
		missing = append(missing, page.Missing...)
		if f.Before = page.Before; f.Before == "" {
			slices.Sort(missing)
			return all, slices.Compact(missing)
		}
	}
}

func TestPagesOfTasksAreThoseOfAllHubs(t *testing.T) {
	all := connected(t, "a", "b", "c")
	var agents []*hub.Session
	for _, at := range []string{"a", "b", "c"} {
		agents = append(agents, all[at].join(t, all, core.Card{ID: core.AgentID("agent-" + at), MaxConcurrent: 100}))
	}
	people := []*hub.Session{all["a"].person("ann"), all["b"].person("ben"), all["c"].person("cid")}
	var ids []core.TaskID
	wanted := map[string][]core.TaskID{}
	for i := range 30 {
		n, by := i%len(agents), i/3%len(people)
		asked, err := people[by].Open(core.Request{To: core.ToAgent(agents[n].AgentID()), Content: fmt.Sprint(i), Thread: core.ThreadID(fmt.Sprint("talk", i%2))}, hub.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		gets(t, agents[n], asked.ID())
		if i%3 == 0 {
			if err := agents[n].Report(asked.ID(), core.Done{Text: "done"}, nil); err != nil {
				t.Fatal(err)
			}
			until(t, people[by], asked.ID(), core.KindDone)
		}
		ids = append(ids, asked.ID())
		for _, key := range []string{string(agents[n].AgentID()), people[by].Identity().Principal.ID, fmt.Sprint("talk", i%2), map[bool]string{true: "done", false: "running"}[i%3 == 0]} {
			wanted[key] = append(wanted[key], asked.ID())
		}
	}
	slices.Sort(ids) // hubs make ids of the same millisecond in any order
	for _, some := range wanted {
		slices.Sort(some)
	}
	for _, at := range []string{"a", "b", "c"} {
		for _, tt := range []struct {
			name   string
			filter task.Filter
			want   []core.TaskID
		}{
			{"all", task.Filter{}, ids},
			{"in pages", task.Filter{Limit: 7}, ids},
			{"one by one", task.Filter{Limit: 1}, ids},
			{"of an agent", task.Filter{Agent: "agent-b", Limit: 3}, wanted["agent-b"]},
			{"of a principal", task.Filter{From: "cid", Limit: 4}, wanted["cid"]},
			{"of a thread", task.Filter{Thread: "talk1", Limit: 4}, wanted["talk1"]},
			{"that are done", task.Filter{State: "done", Limit: 3}, wanted["done"]},
			{"that run", task.Filter{State: "running", Limit: 3}, wanted["running"]},
			{"before one", task.Filter{Before: ids[10], Limit: 3}, ids[:10]},
			{"in which something is said", task.Filter{Text: "DONE", Limit: 3}, wanted["done"]},
		} {
			got, missing := pagesOf(t, all[at].Hub, tt.filter)
			slices.Reverse(got)
			if !slices.Equal(got, tt.want) || len(missing) != 0 {
				t.Errorf("at hub %s, %s: got %v without %v, want %v", at, tt.name, got, missing, tt.want)
			}
		}
		if page, err := all[at].Threads(t.Context(), operator, hub.ThreadFilter{}); err != nil || len(page.Threads) != 2 || len(page.Threads[0].Agents) != 3 {
			t.Errorf("at hub %s: got %+v and %v, want two conversations with each agent", at, page.Threads, err)
		}
		if page, err := all[at].Tasks(t.Context(), core.Principal{ID: "ann"}, task.Filter{}); err != nil || len(page.Tasks) != len(wanted["ann"]) {
			t.Errorf("at hub %s: got %d tasks for ann and %v, want her %d", at, len(page.Tasks), err, len(wanted["ann"]))
		}
	}
}

func TestTasksOfAHubThatIsGoneAreListedFromTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", core.Card{ID: "bob", MaxConcurrent: 10})
		there := w.person("b")
		var ids []core.TaskID
		for i := range 3 {
			asked, err := there.Open(core.Request{To: core.ToAgent("bob"), Content: fmt.Sprint(i), Thread: "talk"}, hub.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			gets(t, bob, asked.ID())
			if i < 2 {
				if err := bob.Report(asked.ID(), core.Done{Text: "done"}, nil); err != nil {
					t.Fatal(err)
				}
				until(t, there, asked.ID(), core.KindDone)
			}
			ids = append(ids, asked.ID())
		}
		w.net.Kill("b")
		time.Sleep(300 * time.Millisecond)
		if _, missing := w.hubs["a"].Approvals(t.Context(), operator); !slices.Equal(missing, []string{"b"}) {
			t.Errorf("before it is taken over: got the approvals without %v, want without b", missing)
		}
		time.Sleep(5 * time.Second)
		for _, at := range []string{"a", "c"} {
			for _, f := range []task.Filter{{}, {Limit: 2}, {Agent: "bob"}, {Thread: "talk"}, {From: "ann", Limit: 1}} {
				got, missing := pagesOf(t, w.hubs[at].Hub, f)
				slices.Reverse(got)
				if !slices.Equal(got, ids) || len(missing) != 0 {
					t.Errorf("at hub %s, %+v: got %v without %v, want %v", at, f, got, missing, ids)
				}
			}
			if got, _ := pagesOf(t, w.hubs[at].Hub, task.Filter{State: "failed"}); len(got) != 1 || got[0] != ids[2] {
				t.Errorf("at hub %s: got %v failed, want %s, which ran", at, got, ids[2])
			}
		}
	})
}

// spend lets an agent say that a task took so many tokens, and end it.
func spend(t *testing.T, agent *hub.Session, id core.TaskID, tokens int64) {
	t.Helper()
	gets(t, agent, id)
	for _, body := range []core.Body{core.Usage{Input: tokens}, core.Done{}} {
		if err := agent.Report(id, body, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func TestUsageIsThatOfAllHubs(t *testing.T) {
	all := connected(t, "a", "b", "c")
	for i, at := range []string{"a", "b", "c"} {
		agent := all[at].join(t, all, core.Card{ID: core.AgentID("agent-" + at)})
		ann := all["a"].person("ann")
		asked := ask(t, ann, core.ToAgent(agent.AgentID()))
		spend(t, agent, asked.ID(), int64(10*(i+1)))
		until(t, ann, asked.ID(), core.KindDone)
	}
	for _, at := range []string{"a", "b", "c"} {
		got, missing, err := all[at].Usage(t.Context(), operator, usage.ByRequester)
		if err != nil || len(got) != 1 || got[0].Tokens.Input != 60 || got[0].Events != 3 || len(missing) != 0 {
			t.Errorf("at hub %s: got %+v without %v and %v, want 60 tokens of ann", at, got, missing, err)
		}
		if got, _, _ := all[at].Usage(t.Context(), operator, usage.ByAgent); len(got) != 3 || got[2].Key != "agent-c" || got[2].Tokens.Input != 30 {
			t.Errorf("at hub %s: got %+v, want those of three agents", at, got)
		}
	}
	if _, _, err := all["a"].Usage(t.Context(), core.Principal{ID: "ann"}, usage.ByDay); core.AsFault(err).Code != core.CodeNotAuthorized {
		t.Errorf("got %v for somebody who may not operate, want not_authorized", err)
	}
}

func TestABudgetHoldsOverAllHubsAndOverTheirDeaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := func(o *hub.Options) {
			o.Budgets = []usage.Budget{{By: usage.ByRequester, Key: usage.Everybody, Tokens: 100, Per: usage.Ever}}
		}
		stores := map[string]usage.Store{}
		w := newWorldWith(t, func(name string, o *hub.Options) {
			budget(o)
			if stores[name] == nil {
				stores[name] = &coretest.MemoryUsage{}
			}
			o.UsageStore = stores[name]
		}, "a", "b", "c")
		bob := w.join("b", core.Card{ID: "bob"})
		ann := w.person("a")
		used := func(at string) int64 {
			if all := w.hubs[at].Budgets(operator); len(all) == 1 {
				return all[0].Used
			}
			return 0
		}
		spendAt := func(by *hub.Session, tokens int64) {
			asked := ask(t, by, core.ToAgent("bob"))
			spend(t, bob, asked.ID(), tokens)
			until(t, by, asked.ID(), core.KindDone)
		}
		spendAt(ann, 40)
		for _, at := range []string{"a", "b", "c"} {
			w.until("hub "+at+" knows that 40 are spent", func() bool { return used(at) == 40 })
		}
		w.net.Kill("b")
		w.until("b is gone", func() bool { _, here := w.hubs["c"].Agent(operator, "bob"); return !here })
		w.hubs["c"].stop()
		w.start("c", 2)
		w.until("a hub that starts again is told what one that is gone has spent", func() bool { return used("c") == 40 })
		w.hubs["b"].stop()
		w.start("b", 1)
		bob = w.join("b", core.Card{ID: "bob"})
		for _, at := range []string{"a", "b", "c"} {
			w.until("hub "+at+" still counts 40 once", func() bool { return used(at) == 40 })
		}
		spendAt(w.person("c"), 60)
		for _, at := range []string{"a", "b", "c"} {
			w.until("hub "+at+" knows that all is spent", func() bool { return used(at) == 100 })
			by := w.person(at)
			asked, _ := by.Open(core.Request{To: core.ToAgent("bob"), Content: "more?"}, hub.OpenOptions{})
			w.until("what is asked at hub "+at+" is refused", asked.HasEnded)
			if end, ok := asked.Last().Body.(core.Failed); !ok || end.Fault.Code != core.CodeBudget {
				t.Errorf("at hub %s: got %v, want no budget left", at, asked.Last().Body)
			}
		}
	})
}

func TestEachHubKeepsItsAuditAndShowsThatOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldWith(t, func(name string, o *hub.Options) {
			l, err := audit.Open(t.Context(), audit.Options{Store: audit.NewMemory(journal.Retention{})})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			o.Auditor = l
		}, "a", "b", "c")
		w.join("b", core.Card{ID: "bob"})
		read := func(at, of string) (lines []string) {
			t.Helper()
			err := w.hubs[at].Audit(t.Context(), operator, of, 0, func(line []byte) bool {
				lines = append(lines, string(line))
				return true
			})
			if err != nil {
				t.Fatalf("at hub %s, of %q: %v", at, of, err)
			}
			return lines
		}
		own, of := read("b", ""), read("a", "b")
		if len(own) == 0 || !slices.Equal(own, of) {
			t.Errorf("got %q at another hub, want %q, byte for byte", of, own)
		}
		if !strings.Contains(strings.Join(of, ""), `"act":"join","object":"bob"`) || strings.Contains(strings.Join(read("a", "a"), ""), "bob") {
			t.Error("want that bob has joined in the audit of b alone")
		}
		var chain audit.Chain
		for _, line := range of {
			if err := chain.Next([]byte(line)); err != nil {
				t.Error(err)
			}
		}
		for of, want := range map[string]core.Code{"nobody": core.CodeInvalid, "b": core.CodeNotAuthorized} {
			by := operator
			if of == "b" {
				by = core.Principal{ID: "eve"}
			}
			if err := w.hubs["a"].Audit(t.Context(), by, of, 0, func([]byte) bool { return true }); core.AsFault(err).Code != want {
				t.Errorf("the audit of %s: got %v, want %s", of, err, want)
			}
		}
	})
}

func TestSettingsAndRestartsReachTheHubOfAnAgent(t *testing.T) {
	restarted := map[string][]string{}
	all, _ := connectedWith(t, func(name string, o *hub.Options) {
		o.Restart = func(what string) error {
			if what != "pack-of-"+name && what != "bob" {
				return core.NewFault(core.CodeUnknownAgent, "%s is not in the settings", what)
			}
			restarted[name] = append(restarted[name], what)
			return nil
		}
		if name == "a" {
			o.Restart = nil
		}
	}, "a", "b", "c")
	bob := all["b"].join(t, all, core.Card{ID: "bob", MaxConcurrent: 5})
	two := 2
	got, err := all["a"].Configure(t.Context(), operator, core.Configure{Agent: "bob", MaxConcurrent: &two})
	if err != nil || got.Hub != "b" || bob.AgentSettings().MaxConcurrent != 2 {
		t.Errorf("got %+v and %v, and %+v at its hub, want at most two at once", got, err, bob.AgentSettings())
	}
	if _, err := all["a"].Configure(t.Context(), core.Principal{ID: "eve"}, core.Configure{Agent: "bob", MaxConcurrent: &two}); core.AsFault(err).Code != core.CodeNotAuthorized {
		t.Errorf("got %v for somebody who may not operate, want not_authorized", err)
	}
	for _, name := range []string{"bob", "pack-of-c"} {
		if err := all["a"].Restart(t.Context(), operator, name); err != nil {
			t.Errorf("restarting %s: %v", name, err)
		}
	}
	if err := all["a"].Restart(t.Context(), operator, "nobody"); core.AsFault(err).Code != core.CodeUnknownAgent {
		t.Errorf("restarting nobody: got %v, want unknown_agent", err)
	}
	if !slices.Equal(restarted["b"], []string{"bob"}) || !slices.Equal(restarted["c"], []string{"pack-of-c"}) {
		t.Errorf("got %v restarted, want bob at b and the pack at c", restarted)
	}
}

func TestAHubThatStartsWhileAnotherOneIsGoneListsItsTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		cid, ann := w.join("c", core.Card{ID: "cid"}), w.person("c")
		asked := ask(t, ann, core.ToAgent("cid"))
		if err := cid.Report(assigned(t, cid).ID(), core.Done{Text: "answer"}, nil); err != nil {
			t.Fatal(err)
		}
		until(t, ann, asked.ID(), core.KindDone)
		w.hubs["c"].stop()
		w.untilGone("c")
		w.hubs["a"].stop()
		time.Sleep(5 * time.Second)
		a := w.start("a", 0)
		w.until("a has heard who has taken c over", func() bool {
			hubs, _ := a.part.Cluster().Hubs()
			return slices.ContainsFunc(hubs, func(h cluster.Hub) bool { return h.Name == "c" && h.TakenBy != nil })
		})
		synctest.Wait()
		page, err := a.Tasks(t.Context(), core.Principal{ID: "ann"}, task.Filter{})
		if err != nil || len(page.Tasks) != 1 || len(page.Missing) > 0 {
			t.Errorf("got %d tasks without those of %q and %v, want the one of c", len(page.Tasks), page.Missing, err)
		}
		never := asked.ID()[:len(asked.ID())-4] + "0000" // an id of c
		if _, err := a.Task(t.Context(), core.Principal{ID: "ann"}, never); core.AsFault(err) == nil || core.AsFault(err).Code != core.CodeUnknownTask {
			t.Errorf("a task that c never had: got %v, want that it is unknown", err)
		}
	})
}
