package roster_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
)

func with(t *testing.T, cards ...core.Card) *roster.Roster {
	t.Helper()
	r := roster.New()
	for _, c := range cards {
		if err := r.Add(c, nil, false); err != nil {
			t.Fatalf("adding %s: got %v, want no error", c.ID, err)
		}
	}
	return r
}

func ids(entries []roster.Entry) []core.AgentID {
	out := []core.AgentID{}
	for _, e := range entries {
		out = append(out, e.ID)
	}
	return out
}

func wantIDs(t *testing.T, what string, entries []roster.Entry, want ...core.AgentID) {
	t.Helper()
	if got := ids(entries); !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestAnIDBelongsToTheFirstAgentUntilItLeaves(t *testing.T) {
	r := with(t, core.Card{ID: "a", Name: "first"})
	if err := r.Add(core.Card{ID: "a", Name: "second"}, nil, false); !errors.Is(err, &core.Fault{Code: core.CodeConflict}) {
		t.Fatalf("an id that is taken: got %v, want a conflict", err)
	}
	_ = r.Add(core.Card{ID: "a-1"}, nil, false)
	if err := r.Add(core.Card{ID: "a"}, nil, false); err == nil || !strings.Contains(err.Error(), "choose another id, such as a-2, or wait") {
		t.Errorf("an id that is taken: got %v, want it to suggest a free id", err)
	}
	if e, ok := r.Get("a"); !ok || e.Name != "first" {
		t.Errorf("got %q, want the first agent", e.Name)
	}
	r.Remove("a")
	r.Remove("a")
	if _, ok := r.Get("a"); ok {
		t.Error("got the agent after Remove, want none")
	}
	if err := r.Add(core.Card{ID: "a", Name: "second"}, nil, false); err != nil {
		t.Errorf("an id that is free again: got %v, want no error", err)
	}
}

func TestAgentsAreListedByID(t *testing.T) {
	r := with(t, core.Card{ID: "c"}, core.Card{ID: "a"}, core.Card{ID: "b"})
	wantIDs(t, "the list", r.List(), "a", "b", "c")
	wantIDs(t, "an empty list", roster.New().List())
}

func TestAnEntryIsACopy(t *testing.T) {
	r := with(t, core.Card{ID: "a"})
	e, _ := r.Get("a")
	e.Load.Active = 99
	if again, _ := r.Get("a"); again.Load.Active != 0 {
		t.Errorf("got %d active, want 0", again.Load.Active)
	}
}

func TestChangingAnUnknownAgentDoesNothing(t *testing.T) {
	r := roster.New()
	if r.Change("a", func(*roster.Entry) { t.Error("got a call, want none") }) {
		t.Error("got true, want false")
	}
	r.Start("a")
	r.Finish("a")
	wantIDs(t, "the list", r.List())
}

func TestAnEntryHasTheTimeWhenItsAgentJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		<-time.After(time.Hour)
		r := with(t, core.Card{ID: "a"})
		e, _ := r.Get("a")
		if now := time.Now(); !e.Since.Equal(now) || !e.Load.LastSeen.Equal(now) || e.Load.State != core.LoadIdle {
			t.Errorf("got %+v since %s, want it idle and seen at %s", e.Load, e.Since, now)
		}
	})
}

func TestTheStateOfAnAgentFollowsItsLoadAndItsReports(t *testing.T) {
	const two = 2
	for name, c := range map[string]struct {
		active, queued int
		reported       core.LoadState
		want           core.LoadState
		accepts, free  bool
	}{
		"nothing to do":                    {0, 0, 0, core.LoadIdle, true, true},
		"it reports idle and is":           {0, 0, core.LoadIdle, core.LoadIdle, true, true},
		"it reports busy without tasks":    {0, 0, core.LoadBusy, core.LoadBusy, true, true},
		"one of two slots used":            {1, 0, 0, core.LoadBusy, true, true},
		"it reports idle and works":        {1, 0, core.LoadIdle, core.LoadBusy, true, true},
		"full":                             {two, 0, 0, core.LoadBusy, true, false},
		"full, and a task waits":           {two, 1, 0, core.LoadOverloaded, true, false},
		"a task waits, and a slot is free": {1, 1, 0, core.LoadBusy, true, true},
		"a task waits, nothing runs":       {0, 1, 0, core.LoadBusy, true, true},
		"it reports overloaded":            {0, 0, core.LoadOverloaded, core.LoadOverloaded, false, false},
		"it reports draining":              {1, 0, core.LoadDraining, core.LoadDraining, false, false},
		"draining outranks full":           {two, 1, core.LoadDraining, core.LoadDraining, false, false},
	} {
		r := with(t, core.Card{ID: "a", MaxConcurrent: two})
		r.Change("a", func(e *roster.Entry) { e.Load.Active, e.Load.Queued, e.Reported = c.active, c.queued, c.reported })
		e, _ := r.Get("a")
		if e.Load.State != c.want || e.AcceptsWork() != c.accepts || e.Free() != c.free {
			t.Errorf("%s: got %s, accepts %v, free %v; want %s, %v, %v", name, e.Load.State, e.AcceptsWork(), e.Free(), c.want, c.accepts, c.free)
		}
	}
}

func TestAnAgentRunsOneTaskByDefault(t *testing.T) {
	for _, most := range []int{-1, 0, 1} {
		r := with(t, core.Card{ID: "a", MaxConcurrent: most})
		if e, _ := r.Get("a"); e.Capacity() != 1 || !e.Free() {
			t.Errorf("MaxConcurrent %d: got the capacity %d, want 1", most, e.Capacity())
		}
		r.Start("a")
		if e, _ := r.Get("a"); e.Free() {
			t.Errorf("MaxConcurrent %d: got it free with a task, want it full", most)
		}
	}
}

func TestStartedAndFinishedTasksCount(t *testing.T) {
	r := with(t, core.Card{ID: "a", MaxConcurrent: 3})
	r.Start("a")
	r.Start("a")
	if e, _ := r.Get("a"); e.Load.Active != 2 || e.Load.State != core.LoadBusy {
		t.Errorf("after two starts: got %+v, want 2 active and busy", e.Load)
	}
	r.Finish("a")
	r.Finish("a")
	if e, _ := r.Get("a"); e.Load.Active != 0 || e.Load.State != core.LoadIdle {
		t.Errorf("after two ends: got %+v, want none active and idle", e.Load)
	}
}

func TestTheNearestIDsAreSuggested(t *testing.T) {
	r := with(t, core.Card{ID: "shout"}, core.Card{ID: "Writer"}, core.Card{ID: "writer-2"}, core.Card{ID: "translate-german"}, core.Card{ID: "shot"}, core.Card{ID: "short"})
	for id, want := range map[core.AgentID][]core.AgentID{
		"shuot":          {"shot", "short", "shout"},
		"shout":          {"shout", "short", "shot"},
		"writer":         {"Writer", "writer-2"},
		"german":         {"translate-german"},
		"GERMAN":         {"translate-german"},
		"zzzzzzzzzzzzzz": nil,
	} {
		got := r.Nearest(id)
		slices.Sort(got)
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", id, d)
		}
	}
	if got := r.Nearest("writer"); len(got) == 0 || got[0] != "Writer" {
		t.Errorf("got %v, want the nearest first", got)
	}
	if got := roster.New().Nearest("a"); got != nil {
		t.Errorf("no agents: got %v, want nothing", got)
	}
	long := make([]byte, 5000)
	for i := range long {
		long[i] = 'x'
	}
	if got := r.Nearest(core.AgentID(long)); len(got) > 3 {
		t.Errorf("a long name: got %v, want at most three", got)
	}
}
