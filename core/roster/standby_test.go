package roster_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// connection is a member.
type connection struct{ principal core.Principal }

func (c *connection) Principal() core.Principal { return c.principal }

func wantFound(t *testing.T, what string, r *roster.Roster, id core.AgentID, want roster.Member) {
	t.Helper()
	e, ok := r.Find(id)
	if ok != (want != nil) || e.Member != want {
		t.Errorf("%s: got %v, %t, want %v", what, e.Member, ok, want)
	}
}

func TestAStandbyIsFoundByItsIDAndAliasAlone(t *testing.T) {
	r, m := roster.New(), &connection{}
	r.AddStandby(core.Card{ID: "kit", Capabilities: []string{"x"}}, m)
	wantFound(t, "its id", r, "kit", m)
	wantFound(t, "its alias", r, roster.Alias("kit"), m)
	wantIDs(t, "the list", r.List())
	wantIDs(t, "any agent", r.Match(core.ToAny()))
	wantIDs(t, "a capability", r.Match(core.ToCapability("x")))
	if got := r.Member("kit"); got != nil {
		t.Errorf("the agent of its id: got %v, want none", got)
	}
	if near := r.Nearest("kit"); near != nil {
		t.Errorf("the nearest: got %v, want none", near)
	}
	if e, _ := r.Find("kit"); !e.OnlyByID || e.Since.IsZero() || e.Load.State != core.LoadIdle {
		t.Errorf("got %+v, want an idle entry that only its id finds", e)
	}
	r.RemoveStandby("kit", m)
	wantFound(t, "its id after it left", r, "kit", nil)
	wantFound(t, "its alias after it left", r, roster.Alias("kit"), nil)
}

func TestTheAgentIsFoundBeforeMembersThatStandBy(t *testing.T) {
	r, first, second, agent := roster.New(), &connection{}, &connection{}, &connection{}
	card := core.Card{ID: "kit"}
	r.AddStandby(card, first)
	r.AddStandby(card, second)
	wantFound(t, "the later of two", r, "kit", second)
	if err := r.Add(card, agent, false); err != nil {
		t.Fatal(err)
	}
	wantFound(t, "the agent", r, roster.Alias("kit"), agent)
	if got := r.Member("kit"); got != agent {
		t.Errorf("the agent of the id: got %v, want %v", got, agent)
	}
	r.RemoveStandby("kit", second)
	r.Remove("kit")
	wantFound(t, "after the others left", r, roster.Alias("kit"), first)
}

func TestAnIDIsReservedForThePrincipalThatStandsByUnderIt(t *testing.T) {
	anonymous, other := core.Principal{ID: "a"}, core.Principal{ID: "b"}
	proved, otherProved := core.Principal{ID: "a", Authenticated: true}, core.Principal{ID: "b", Authenticated: true}
	for name, c := range map[string]struct {
		standby, newcomer core.Principal
		want              bool
	}{
		"neither is authenticated":      {anonymous, other, false},
		"the same, authenticated":       {proved, proved, false},
		"another, authenticated":        {proved, otherProved, true},
		"the first is authenticated":    {proved, anonymous, true},
		"the newcomer is authenticated": {anonymous, proved, true},
	} {
		r, m := roster.New(), &connection{c.standby}
		r.AddStandby(core.Card{ID: "kit"}, m)
		if got := r.Reserved("kit", &connection{c.newcomer}); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
		if r.Reserved("kit", m) {
			t.Errorf("%s: got it reserved for another, want it for itself", name)
		}
		if r.Reserved("kat", &connection{c.newcomer}) {
			t.Errorf("%s: got another id reserved, want it free", name)
		}
	}
}

// model is a simple roster, which searches all its members.
type model struct {
	agents  map[core.AgentID]roster.Member
	standby []standby
	known   []core.AgentID // in the order in which they became known
}

type standby struct {
	id core.AgentID
	m  roster.Member
}

func (m *model) find(text core.AgentID) (core.AgentID, roster.Member) {
	id := text
	if !slices.Contains(m.known, id) {
		if i := slices.IndexFunc(m.known, func(o core.AgentID) bool { return roster.SameAgent(string(text), o) }); i >= 0 {
			id = m.known[i]
		}
	}
	if a := m.agents[id]; a != nil {
		return id, a
	}
	for _, s := range slices.Backward(m.standby) {
		if s.id == id {
			return id, s.m
		}
	}
	return id, nil
}

// note updates which ids are known after a change of one.
func (m *model) note(id core.AgentID) {
	found := m.agents[id] != nil || slices.ContainsFunc(m.standby, func(s standby) bool { return s.id == id })
	switch i := slices.Index(m.known, id); {
	case found && i < 0:
		m.known = append(m.known, id)
	case !found && i >= 0:
		m.known = slices.Delete(m.known, i, i+1)
	}
}

func TestIDsAndAliasesFindTheRightMemberAfterAnySteps(t *testing.T) {
	const key = core.AgentID("21fe31dfa154a261626bf854046fd227")
	upper := core.AgentID(strings.ToUpper(string(key)))
	ids := []core.AgentID{"a", "b", roster.Alias("a"), key, upper, "ed25519." + key}
	texts := append([]core.AgentID{"", "nobody", "ED25519." + upper, "ed25519." + roster.Alias("a"), roster.Alias("b"), roster.Alias(roster.Alias("a")), roster.Alias(key)}, ids...)
	rapid.Check(t, func(rt *rapid.T) {
		r, want := roster.New(), &model{agents: map[core.AgentID]roster.Member{}}
		members := []*connection{{core.Principal{ID: "0"}}, {core.Principal{ID: "1"}}, {core.Principal{ID: "2"}}}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			id, m := rapid.SampledFrom(ids).Draw(rt, "id"), rapid.SampledFrom(members).Draw(rt, "member")
			switch rapid.SampledFrom([]string{"add", "remove", "stand by", "stop standing by"}).Draw(rt, "step") {
			case "add":
				taken := want.agents[id] != nil
				if err := r.Add(core.Card{ID: id}, m, false); (err != nil) != taken {
					rt.Fatalf("adding %s: got %v, want an error: %t", id, err, taken)
				}
				if !taken {
					want.agents[id] = m
				}
			case "remove":
				r.Remove(id)
				delete(want.agents, id)
			case "stand by":
				r.AddStandby(core.Card{ID: id}, m)
				want.standby = append(want.standby, standby{id, m})
			case "stop standing by":
				r.RemoveStandby(id, m)
				want.standby = slices.DeleteFunc(want.standby, func(s standby) bool { return s == standby{id, m} })
			}
			want.note(id)
			for _, text := range texts {
				wantID, wantMember := want.find(text)
				if got := r.Resolve(text); got != wantID {
					rt.Fatalf("resolving %q: got %q, want %q", text, got, wantID)
				}
				e, ok := r.Find(text)
				if e.Member != wantMember || ok != (wantMember != nil) || ok && e.ID != wantID {
					rt.Fatalf("finding %q: got %v of %q, %t, want %v of %q", text, e.Member, e.ID, ok, wantMember, wantID)
				}
				if got := r.Member(text); got != want.agents[text] {
					rt.Fatalf("the agent %q: got %v, want %v", text, got, want.agents[text])
				}
			}
		}
	})
}
