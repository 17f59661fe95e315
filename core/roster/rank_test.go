package roster_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// order returns the order that Best promises, computed from all agents.
func order(all []roster.Entry, turns map[core.AgentID]int, to core.Address) []core.AgentID {
	type scored struct {
		roster.Entry
		score int
	}
	var found []scored
	for _, e := range all {
		if score, ok := e.Answers(to); ok {
			found = append(found, scored{e, score})
		}
	}
	first := func(a, b bool) int {
		switch {
		case a == b:
			return 0
		case a:
			return -1
		}
		return 1
	}
	pressure := func(e roster.Entry) float64 {
		return float64(e.Load.Active+e.Load.Queued) / float64(e.Capacity())
	}
	slices.SortFunc(found, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), first(a.AcceptsWork(), b.AcceptsWork()), first(a.Free(), b.Free()),
			cmp.Compare(pressure(a.Entry), pressure(b.Entry)), cmp.Compare(turns[a.ID], turns[b.ID]), cmp.Compare(a.ID, b.ID))
	})
	out := []core.AgentID{}
	for _, e := range found {
		out = append(out, e.ID)
	}
	return out
}

func TestTheBestAgentComesFirstAfterAnySteps(t *testing.T) {
	capabilities, domains := []string{"a", "b", "c"}, []string{"x", "x.y", "x.y.z", "x.y.*", "w"}
	addresses := []core.Address{core.ToAny(), core.ToCapability("a"), core.ToCapability("b"), core.ToCapability("a", "c"), core.ToCapability("none"), core.ToDomain("x.y.z.q"), core.ToDomain("x"), core.ToDomain("v")}
	rapid.Check(t, func(rt *rapid.T) {
		r := roster.New()
		turns, turn := map[core.AgentID]int{}, 0
		id := rapid.Custom(func(rt *rapid.T) core.AgentID {
			return core.AgentID(fmt.Sprintf("agent-%d", rapid.IntRange(0, 12).Draw(rt, "number")))
		})
		card := func() core.Card {
			return core.Card{
				ID: id.Draw(rt, "id"), MaxConcurrent: rapid.IntRange(0, 3).Draw(rt, "capacity"),
				Capabilities: rapid.SliceOfN(rapid.SampledFrom(capabilities), 0, 4).Draw(rt, "capabilities"),
				Domains:      rapid.SliceOfN(rapid.SampledFrom(domains), 0, 3).Draw(rt, "domains"),
			}
		}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 6).Draw(rt, "step") {
			case 0, 1:
				c := card()
				if r.Add(c, nil, rapid.IntRange(0, 9).Draw(rt, "only by id") == 0) == nil {
					turns[c.ID] = 0
				}
			case 2:
				r.Remove(id.Draw(rt, "who"))
			case 3:
				r.SetCard(card(), false)
			case 4:
				who := id.Draw(rt, "who")
				if _, found := r.Get(who); found {
					turn++
					turns[who] = turn
				}
				r.Start(who)
			case 5:
				r.Finish(id.Draw(rt, "who"))
			case 6:
				reported := rapid.SampledFrom([]core.LoadState{0, core.LoadIdle, core.LoadBusy, core.LoadOverloaded, core.LoadDraining}).Draw(rt, "load")
				queued := rapid.IntRange(0, 2).Draw(rt, "queued")
				r.Change(id.Draw(rt, "who"), func(e *roster.Entry) { e.Reported, e.Load.Queued = reported, queued })
			}
			to := rapid.SampledFrom(addresses).Draw(rt, "address")
			if got, want := ids(r.Match(to)), order(r.List(), turns, to); !slices.Equal(got, want) {
				rt.Fatalf("%s: got %v, want %v", to, got, want)
			}
		}
	})
}

func TestSkippingContinuesWithAgentsThatMatchLessWell(t *testing.T) {
	r := with(t, core.Card{ID: "a", Domains: []string{"x.y"}}, core.Card{ID: "b", Domains: []string{"x.y", "x"}}, core.Card{ID: "c", Domains: []string{"x"}}, core.Card{ID: "d", Domains: []string{"x"}})
	for name, c := range map[string]struct {
		verdict roster.Verdict
		want    []core.AgentID
	}{
		"continue": {roster.Continue, []core.AgentID{"a", "b", "c", "d"}},
		"skip":     {roster.SkipWorse, []core.AgentID{"a", "c"}},
		"stop":     {roster.Stop, []core.AgentID{"a"}},
	} {
		var got []core.AgentID
		r.Best(core.ToDomain("x.y.z"), func(e *roster.Entry) roster.Verdict {
			got = append(got, e.ID)
			return c.verdict
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestTheNearestOfVeryManyIDsHaveASimilarBeginningOrEnd(t *testing.T) {
	r := roster.New()
	for n := range 5000 {
		_ = r.Add(core.Card{ID: core.AgentID(fmt.Sprintf("worker-%05d", n*7919%100000))}, nil, false)
	}
	for _, id := range []core.AgentID{"shout", "family-calendar"} {
		_ = r.Add(core.Card{ID: id}, nil, false)
	}
	for id, want := range map[core.AgentID]core.AgentID{"shouts": "shout", "Shout": "shout", "xhout": "shout", "calendar": "family-calendar", "family": "family-calendar", "worker-07919x": "worker-07919"} {
		if got := r.Nearest(id); len(got) == 0 || got[0] != want {
			t.Errorf("%s: got %v, want %s first", id, got, want)
		}
	}
	r.Remove("shout")
	if got := r.Nearest("shout"); slices.Contains(got, "shout") {
		t.Errorf("got %v, want no agent that has left", got)
	}
}

// BenchmarkBest chooses among many agents, assigns a task and ends it.
func BenchmarkBest(b *testing.B) {
	for _, agents := range []int{10, 20_000} {
		r := roster.New()
		for n := range agents {
			_ = r.Add(core.Card{ID: core.AgentID(fmt.Sprintf("agent-%d", n)), Capabilities: []string{"a", fmt.Sprintf("c%d", n%100)}, Domains: []string{"x.y"}}, nil, false)
		}
		for _, to := range []core.Address{core.ToAny(), core.ToCapability("a"), core.ToCapability("a", "c7"), core.ToDomain("x.y.z")} {
			b.Run(fmt.Sprintf("%d/%s", agents, to), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					var best core.AgentID
					r.Best(to, func(e *roster.Entry) roster.Verdict {
						best = e.ID
						return roster.Stop
					})
					r.Start(best)
					r.Finish(best)
				}
			})
		}
		b.Run(fmt.Sprintf("%d/nearest", agents), func(b *testing.B) {
			for b.Loop() {
				r.Nearest("agemt-1234")
			}
		})
	}
}
