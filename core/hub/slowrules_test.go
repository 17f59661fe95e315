package hub_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// slowRules take their time for the first decision about a principal or an agent named slow.
type slowRules struct {
	policy.Default
	of      func(core.Principal, policy.Object) bool
	once    sync.Once
	release chan struct{}
}

func (r *slowRules) May(p core.Principal, right core.Right, o policy.Object) bool {
	if r.of(p, o) {
		r.once.Do(func() { <-r.release })
	}
	return r.Default.May(p, right, o)
}

func TestASlowFirstDecisionDelaysNobodyElse(t *testing.T) {
	isAgent := func(_ core.Principal, o policy.Object) bool {
		return o.Target.Agent == "slow" || len(o.Target.Domains) > 0
	}
	isPrincipal := func(p core.Principal, _ policy.Object) bool { return p.ID == "slow" }
	for name, c := range map[string]struct {
		of  func(core.Principal, policy.Object) bool
		act func(h *hub.Hub, agent *hub.Session)
	}{
		"about an agent that joins": {isAgent, func(h *hub.Hub, _ *hub.Session) {
			_ = h.Connect(hub.Identity{Principal: core.Principal{ID: "x"}, Dialect: "test"}).Join(core.Card{ID: "slow"}, hub.JoinOptions{})
			_, _ = h.Connect(hub.Identity{Principal: core.Principal{ID: "y"}, Dialect: "test"}).Open(core.Request{To: core.ToAgent("slow"), Content: "?"}, hub.OpenOptions{Unwatched: true})
		}},
		"about a card that changes": {isAgent, func(_ *hub.Hub, agent *hub.Session) {
			_ = agent.Update(core.Card{ID: "quick", Domains: []string{"new"}})
		}},
		"about a principal that connects": {isPrincipal, func(h *hub.Hub, _ *hub.Session) {
			_, _ = h.Connect(hub.Identity{Principal: core.Principal{ID: "slow"}, Dialect: "test"}).Open(core.Request{To: core.ToAny(), Content: "?"}, hub.OpenOptions{Unwatched: true})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rules := &slowRules{of: c.of, release: make(chan struct{})}
				h := coretest.NewHub(t, hub.Options{Authorizer: rules})
				agent := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}, Dialect: "test"})
				if err := agent.Join(core.Card{ID: "quick"}, hub.JoinOptions{}); err != nil {
					t.Fatal(err)
				}
				asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}, Dialect: "test"})
				var acting sync.WaitGroup
				acting.Go(func() { c.act(h, agent) })
				synctest.Wait()
				if _, err := asker.Open(core.Request{To: core.ToAgent("quick"), Content: "?"}, hub.OpenOptions{Unwatched: true}); err != nil {
					t.Errorf("meanwhile: got %v, want the question taken", err)
				}
				close(rules.release)
				acting.Wait()
			})
		})
	}
}
