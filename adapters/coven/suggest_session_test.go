package coven_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// odd draws ids, among them invalid ones and those that leave no room for a suffix.
var odd = rapid.OneOf(
	rapid.SampledFrom([]string{
		"*", "hub", "capability:chat", "domain:", "\x00", "\u202e", " ", "-1", " a", "a\nb", "twin",
		strings.Repeat("x", core.MaxIDBytes), strings.Repeat("é", core.MaxIDBytes), strings.Repeat("*", 100_000),
	}),
	rapid.String().Filter(func(s string) bool { return s != "" }),
)

func TestASuggestedIDIsAccepted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		id := odd.Draw(rt, "id")
		taken := rapid.SliceOfN(odd, 0, 3).Draw(rt, "ids of others")
		synctest.Test(t, func(t *testing.T) {
			h := newHub(t, hub.Options{})
			var here []*agent
			// enter joins with the id, or else with the suggested one.
			enter := func(id string) {
				for range 2 {
					a := connect(t, h, coven.Options{})
					a.register(id, "registration_error")
					m := a.receive()
					if m.GetWelcome() != nil {
						here = append(here, a)
						return
					}
					a.expectEnd()
					if id = m.GetRegistrationError().GetSuggestedId(); id == "" {
						t.Fatalf("got %v, want a free id", m)
					}
				}
				t.Fatalf("the suggested id %q was refused", id)
			}
			for _, other := range append(taken, id) {
				enter(other)
				enter(other) // now it is taken
			}
			for _, a := range here {
				a.hangUp()
			}
		})
	})
}

func TestASuggestedIDGetsARandomSuffixWhenNoNumberIsFree(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		var here []*agent
		for range 101 {
			id := "twin"
			for joined := false; !joined; {
				a := connect(t, h, coven.Options{})
				a.register(id, "registration_error")
				m := a.receive()
				if joined = m.GetWelcome() != nil; joined {
					here = append(here, a)
				} else {
					id = m.GetRegistrationError().GetSuggestedId()
					a.expectEnd()
				}
			}
		}
		if got := len(h.Agents(core.Principal{Operator: true})); got != 101 {
			t.Errorf("got %d agents, want all 101", got)
		}
		for _, a := range here {
			a.hangUp()
		}
	})
}
