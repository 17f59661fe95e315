package hub_test

import (
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// A right that is withdrawn ends what it let somebody read, and nothing else.
func TestWhoMayReadNoMoreIsToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rules policy.Current
		rules.Replace(coretest.Rules(t, "ann see,ask", "eve read", "ron see,read", "ops operate,read", "bob operate"))
		g := &testHub{t, coretest.NewHub(t, hub.Options{Authorizer: &rules})}
		proven := func(id string) *hub.Session { return g.connectAs(core.Principal{ID: id, Authenticated: true}) }
		agent, ann := g.agent("a", able), proven("ann")
		tk := g.ask(ann, "a")
		watching := map[string]*hub.Session{"eve": proven("eve"), "ron": proven("ron"), "ann": proven("ann")}
		for who, s := range watching {
			if err := s.Watch(tk, core.Cursor{}, nil); err != nil {
				t.Fatalf("%s: got %v, want to watch", who, err)
			}
		}
		for _, who := range []string{"ops", "bob"} {
			watching[who] = proven(who)
			g.watchAll(watching[who])
		}
		rules.Replace(coretest.Rules(t, "ann see,ask", "ron read", "ops operate"))
		g.hub.Recheck()
		for who, ends := range map[string]bool{"eve": true, "bob": true, "ron": false, "ops": false, "ann": false} {
			if got := watching[who].Closed(); got != ends {
				t.Errorf("%s: got that it is closed: %t, want %t", who, got, ends)
			}
		}
		if ann.Closed() || agent.Closed() {
			t.Error("got who asked or answers closed, want only readers")
		}
		g.report(agent, tk, core.Done{})
	})
}

// changing replaces the rules as soon as they have allowed to watch all tasks.
type changing struct {
	*policy.Current
	change func()
}

func (c *changing) Allow(p core.Principal, cmd core.Command, about policy.Object) error {
	err := c.Current.Allow(p, cmd, about)
	if _, all := cmd.(core.WatchAll); all && c.change != nil {
		c.change()
		c.change = nil
	}
	return err
}

// Who was allowed to read just before the rules were replaced begins to read after everything was
// rechecked.
func TestWhoBeginsToReadWhileTheRulesChangeReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := coretest.Rules(t, "ann see,ask", "eve read", "ops operate"), coretest.Rules(t, "ann see,ask")
		rules := &changing{Current: &policy.Current{}}
		rules.Replace(before)
		g := &testHub{t, coretest.NewHub(t, hub.Options{Authorizer: rules})}
		change := func() {
			rules.Replace(after)
			g.hub.Recheck()
		}
		proven := func(id string) *hub.Session { return g.connectAs(core.Principal{ID: id, Authenticated: true}) }
		agent, ann := g.agent("a", able), proven("ann")
		tk := g.ask(ann, "a")
		eve := proven("eve")
		found, err := g.hub.Task(t.Context(), eve.Identity().Principal, tk.ID())
		if err != nil {
			t.Fatal(err)
		}
		change()
		g.wantFault("watching a task", eve.Watch(found, core.Cursor{}, nil), core.CodeNotAuthorized)
		if b, ok := g.batch(eve); ok {
			t.Errorf("watching a task: got %+v, want nothing", b)
		}
		for name, watch := range map[string]func(*hub.Session) error{
			"watching all": (*hub.Session).WatchAll,
			"a feed":       func(s *hub.Session) error { _, err := s.Feed(""); return err },
		} {
			rules.Replace(before)
			rules.change = change
			ops := proven("ops")
			g.wantFault(name, watch(ops), core.CodeNotAuthorized)
			if g.report(agent, tk, core.Text{Text: "so"}); !ops.Closed() {
				t.Errorf("%s: got an open session, want it closed", name)
			}
			if b, ok := g.batch(ops); ok {
				t.Errorf("%s: got %+v, want nothing", name, b)
			}
		}
		g.report(agent, tk, core.Done{})
	})
}
