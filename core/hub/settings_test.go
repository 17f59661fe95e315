package hub_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

var operator = core.Principal{ID: "ops", Operator: true}

// atOnce limits how many tasks an agent runs at once.
func atOnce(id core.AgentID, n int, reason string) core.Configure {
	return core.Configure{Agent: id, MaxConcurrent: &n, Reason: reason}
}

func TestAnOperatorLimitsHowManyTasksAnAgentRuns(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 4 })
		silent := g.agent("silent", able)
		for _, c := range []struct {
			id        core.AgentID
			set, want int
		}{{"a", 2, 2}, {"a", 9, 4}, {"a", 0, 4}, {"silent", 5, 5}, {"silent", 0, 1}, {"a", 1, 1}} {
			got, err := g.hub.Configure(t.Context(), operator, atOnce(c.id, c.set, "why"))
			if err != nil || got.MaxConcurrent != c.want {
				t.Errorf("%s at most %d: got %d and %v, want %d", c.id, c.set, got.MaxConcurrent, err, c.want)
			}
		}
		if b, ok := g.batch(a); !ok || b.SettingsChanged == nil || b.SettingsChanged.MaxConcurrent != 1 || b.SettingsChanged.Concurrent != 1 || b.SettingsChanged.Reason != "why" {
			t.Errorf("the agent got %+v, want only the last settings", b.SettingsChanged)
		}
		if b, ok := g.batch(a); ok {
			t.Errorf("got also %+v, want nothing more", b)
		}

		asker := g.connect("r")
		first, second := g.ask(asker, "a"), g.ask(asker, "a")
		if got := second.Agent(); got != "" {
			t.Errorf("got the second task assigned to %q, want it queued", got)
		}
		if _, err := g.hub.Configure(t.Context(), operator, atOnce("a", 0, "")); err != nil {
			t.Fatal(err)
		}
		if got := second.Agent(); got != "a" {
			t.Errorf("with a higher limit: got %q, want the second task assigned to a", got)
		}
		g.report(a, first, core.Done{})
		g.report(a, second, core.Done{})
		_ = silent
	})
}

func TestAnAgentThatDeclaresNoNumberRunsAsManyAsAnOperatorSets(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		for id, opts := range map[string]hub.JoinOptions{"one": {}, "two": {Concurrent: 2}} {
			a := g.connect(id)
			if err := a.Join(core.Card{ID: core.AgentID(id), Features: able}, opts); err != nil {
				t.Fatal(err)
			}
			if got, _ := g.hub.Agent(core.Principal{Operator: true}, core.AgentID(id)); got.MaxConcurrent != max(1, opts.Concurrent) {
				t.Errorf("%s after joining: got %d, want %d", id, got.MaxConcurrent, max(1, opts.Concurrent))
			}
			for _, c := range []struct{ set, want int }{{0, max(1, opts.Concurrent)}, {5, 5}, {1, 1}, {3, 3}} {
				got, err := g.hub.Configure(t.Context(), operator, atOnce(core.AgentID(id), c.set, ""))
				if err != nil || got.MaxConcurrent != c.want {
					t.Errorf("%s set to %d: got %d and %v, want %d", id, c.set, got.MaxConcurrent, err, c.want)
				}
			}
			asker, running := g.connect("r"), 0
			for range 4 {
				if g.ask(asker, id).State() == task.Running {
					running++
				}
			}
			if running != 3 {
				t.Errorf("%s set to 3: got %d tasks at once, want 3", id, running)
			}
			asker.Close(nil)
			a.Close(nil)
		}
	})
}

func TestSettingsOutliveTheConnectionAndTheCard(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 4 })
		if _, err := g.hub.Configure(t.Context(), operator, atOnce("a", 2, "")); err != nil {
			t.Fatal(err)
		}
		if err := a.Update(core.Card{ID: "a", MaxConcurrent: 8}); err != nil {
			t.Fatal(err)
		}
		if got, _ := g.hub.Agent(core.Principal{Operator: true}, "a"); got.MaxConcurrent != 2 {
			t.Errorf("with a new card: got %d, want 2", got.MaxConcurrent)
		}
		a.Close(nil)
		_, err := g.hub.Configure(t.Context(), operator, atOnce("a", 3, ""))
		g.wantFault("an unknown agent", err, core.CodeUnknownAgent)
		again := g.agent("a", able, func(c *core.Card) { c.MaxConcurrent = 4 })
		if got, _ := g.hub.Agent(core.Principal{Operator: true}, "a"); got.MaxConcurrent != 2 || again.AgentSettings().MaxConcurrent != 2 {
			t.Errorf("after a reconnect: got %d, want 2", got.MaxConcurrent)
		}
	})
}

func TestSettingsOfAnAgentOverrideThoseOfItsDialect(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a, b := g.connect("a"), g.agent("b", able)
		if err := a.Join(core.Card{ID: "a", Dialect: "test", Features: able}, hub.JoinOptions{Heartbeats: true}); err != nil {
			t.Fatal(err)
		}
		beat := time.Second
		if _, err := g.hub.Configure(t.Context(), operator, core.Configure{Agent: "a", Heartbeat: &beat}); err != nil {
			t.Fatal(err)
		}
		g.hub.SetDialectSettings("test", hub.AgentSettings{Heartbeat: time.Minute}, "all of you")
		g.hub.SetDialectSettings("other", hub.AgentSettings{Heartbeat: time.Hour}, "not you")
		if got, want := [2]time.Duration{a.AgentSettings().Heartbeat, b.AgentSettings().Heartbeat}, [2]time.Duration{time.Second, time.Minute}; got != want {
			t.Errorf("got %v, want %v", got, want)
		}
		if batch, ok := g.batch(b); !ok || batch.SettingsChanged == nil || batch.SettingsChanged.Heartbeat != time.Minute || batch.SettingsChanged.Reason != "all of you" {
			t.Errorf("b got %+v, want a minute", batch.SettingsChanged)
		}
		g.hub.SetDialectSettings("test", hub.AgentSettings{Heartbeat: time.Minute}, "again")
		if batch, ok := g.batch(b); ok {
			t.Errorf("the same settings again: got %+v, want nothing", batch)
		}
	})
}

func TestAHeartbeatIntervalIsRefusedForAnAgentWithoutOne(t *testing.T) {
	withHub(t, hub.Limits{}, func(g *testHub) {
		a := g.agent("a", able)
		two, beat, none := 2, time.Second, time.Duration(0)
		_, err := g.hub.Configure(t.Context(), operator, core.Configure{Agent: "a", MaxConcurrent: &two, Heartbeat: &beat})
		g.wantFault("an interval", err, core.CodeUnsupported)
		if got := a.AgentSettings(); got != (hub.AgentSettings{}) {
			t.Errorf("refused: got %+v, want nothing set", got)
		}
		if _, err := g.hub.Configure(t.Context(), operator, core.Configure{Agent: "a", MaxConcurrent: &two, Heartbeat: &none}); err != nil {
			t.Errorf("no interval: got %v, want no error", err)
		}
	})
}

func TestSettingsThatCannotBeStoredApplyAndTheOperatorGetsAnError(t *testing.T) {
	full := errors.New("the disk is full")
	var kept []map[core.AgentID]hub.AgentSettings
	h := coretest.NewHub(t, hub.Options{
		AgentSettings: map[core.AgentID]hub.AgentSettings{"a": {MaxConcurrent: 2}},
		SaveAgentSettings: func(all map[core.AgentID]hub.AgentSettings) error {
			kept = append(kept, all)
			return full
		},
	})
	s := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}})
	defer s.Close(nil)
	if err := s.Join(core.Card{ID: "a", MaxConcurrent: 4}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	if a, _ := h.Agent(core.Principal{Operator: true}, "a"); a.MaxConcurrent != 2 {
		t.Errorf("got %d at once, want 2 as set before", a.MaxConcurrent)
	}
	_, err := h.Configure(t.Context(), operator, atOnce("a", 3, ""))
	if f := core.AsFault(err); !errors.Is(err, full) || f.Code != core.CodeInternal || !strings.Contains(f.Message, "in force") {
		t.Errorf("got %v, want an error that the settings last only until a restart", err)
	}
	if a, _ := h.Agent(core.Principal{Operator: true}, "a"); a.MaxConcurrent != 3 || len(kept) != 1 || kept[0]["a"].MaxConcurrent != 3 {
		t.Errorf("got %d at once and %v stored, want 3", a.MaxConcurrent, kept)
	}
}
