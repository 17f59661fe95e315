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
