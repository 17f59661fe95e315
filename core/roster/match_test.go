package roster_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
)

func TestAnAddressByIDFindsThatAgentWhateverItsLoad(t *testing.T) {
	r := with(t, core.Card{ID: "a"}, core.Card{ID: "b"})
	r.Change("a", func(e *roster.Entry) { e.Reported = core.LoadDraining })
	wantIDs(t, "an agent that drains", r.Match(core.ToAgent("a")), "a")
	wantIDs(t, "an unknown id", r.Match(core.ToAgent("c")))
}

func TestOnlyAgentsThatAnswerForAnAddressAreFound(t *testing.T) {
	r := with(t,
		core.Card{ID: "a", Capabilities: []string{"x", "y"}},
		core.Card{ID: "b", Capabilities: []string{"x"}, Domains: []string{"work"}},
		core.Card{ID: "c"})
	wantIDs(t, "a capability", r.Match(core.ToCapability("x")), "a", "b")
	wantIDs(t, "two capabilities", r.Match(core.ToCapability("x", "y")), "a")
	wantIDs(t, "an unknown capability", r.Match(core.ToCapability("z")))
	wantIDs(t, "a domain", r.Match(core.ToDomain("work.mail")), "b")
	wantIDs(t, "any agent", r.Match(core.ToAny()), "a", "b", "c")
	wantIDs(t, "the hub", r.Match(core.ToHub()))
	wantIDs(t, "no address", r.Match(core.Address{}))
}

func TestTheLongestDomainComesFirstThenAgentsThatAcceptWorkThenTheLeastLoaded(t *testing.T) {
	r := with(t,
		core.Card{ID: "a", Domains: []string{"family"}},
		core.Card{ID: "b", Domains: []string{"family.calendar"}},
		core.Card{ID: "c", Domains: []string{"family.calendar"}, MaxConcurrent: 4},
		core.Card{ID: "d", Domains: []string{"family.calendar"}})
	r.Change("b", func(e *roster.Entry) { e.Load.Active = 1 })
	r.Change("c", func(e *roster.Entry) { e.Load.Active = 1 })
	r.Change("d", func(e *roster.Entry) { e.Reported = core.LoadOverloaded })
	// c uses a quarter of its capacity, b all of it; d accepts nothing; a is idle and
	// matches a shorter domain.
	wantIDs(t, "a domain", r.Match(core.ToDomain("family.calendar.today")), "c", "b", "d", "a")
	r.Change("d", func(e *roster.Entry) { e.Reported = core.LoadIdle })
	wantIDs(t, "once it accepts work again", r.Match(core.ToDomain("family.calendar.today")), "d", "c", "b", "a")
}

func TestAgentsWithWaitingTasksComeLast(t *testing.T) {
	r := with(t, core.Card{ID: "a", MaxConcurrent: 2}, core.Card{ID: "b", MaxConcurrent: 2})
	r.Change("a", func(e *roster.Entry) { e.Load.Active, e.Load.Queued = 2, 1 })
	r.Change("b", func(e *roster.Entry) { e.Load.Active = 2 })
	wantIDs(t, "any agent", r.Match(core.ToAny()), "b", "a")
}

func TestAgentsWithTheSameLoadTakeTurns(t *testing.T) {
	r := with(t, core.Card{ID: "a"}, core.Card{ID: "b"}, core.Card{ID: "c"})
	var got []core.AgentID
	for range 7 {
		id := r.Match(core.ToAny())[0].ID
		r.Start(id)
		r.Finish(id)
		got = append(got, id)
	}
	if want := "[a b c a b c a]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if err := r.Add(core.Card{ID: "z"}, nil, false); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, "an agent without a turn yet", r.Match(core.ToAny())[:1], "z")
}

func TestTasksAreSharedByCapacity(t *testing.T) {
	r := with(t, core.Card{ID: "small", MaxConcurrent: 2}, core.Card{ID: "big", MaxConcurrent: 6})
	got := map[core.AgentID]int{}
	for range 8 {
		best := r.Match(core.ToAny())[0]
		if !best.Free() {
			t.Fatalf("got %s, which is full, want one that is free", best.ID)
		}
		r.Start(best.ID)
		got[best.ID]++
	}
	if got["small"] != 2 || got["big"] != 6 {
		t.Errorf("got %v, want 2 for small and 6 for big", got)
	}
}

func TestTheRosterIsSafeForConcurrentUse(t *testing.T) {
	r := roster.New()
	const agents, rounds = 8, 200
	var group sync.WaitGroup
	for i := range agents {
		id := core.AgentID(fmt.Sprintf("a%d", i))
		group.Go(func() {
			for range rounds {
				if err := r.Add(core.Card{ID: id, MaxConcurrent: 4, Capabilities: []string{"x"}}, nil, false); err != nil {
					t.Errorf("adding: got %v, want no error", err)
					return
				}
				for _, e := range r.Match(core.ToCapability("x")) {
					r.Start(e.ID)
					r.Finish(e.ID)
				}
				r.Change(id, func(e *roster.Entry) { e.Reported = core.LoadBusy })
				r.Nearest("a")
				r.List()
				r.Remove(id)
			}
		})
	}
	group.Wait()
	wantIDs(t, "in the end", r.List())
}
