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

// odd ids are those that nobody may have, and those that leave no room for an ending.
var odd = rapid.OneOf(
	rapid.SampledFrom([]string{
		"*", "hub", "capability:chat", "domain:", "\x00", "\u202e", " ", "-1", " a", "a\nb", "twin",
		strings.Repeat("x", core.MaxIDBytes), strings.Repeat("é", core.MaxIDBytes), strings.Repeat("*", 100_000),
	}),
	rapid.String().Filter(func(s string) bool { return s != "" }),
)

func TestASuggestedIDIsOneThatTheAgentCanHave(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		id := odd.Draw(rt, "id")
		taken := rapid.SliceOfN(odd, 0, 3).Draw(rt, "ids that others want")
		synctest.Test(t, func(t *testing.T) {
			h := newHub(t, hub.Options{})
			var here []*agent
			// enter joins under the id, or else under what is suggested in its place.
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
						t.Fatalf("got %v, want an id that is free", m)
					}
				}
				t.Fatalf("the id %q that was suggested was refused", id)
			}
			for _, other := range append(taken, id) {
				enter(other)
				enter(other) // now it is taken for sure
			}
			for _, a := range here {
				a.hangUp()
			}
		})
	})
}

func TestWhoHasNoFreeNumberLeftIsSuggestedAnEndingOfItsOwn(t *testing.T) {
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
		if got := len(h.Agents()); got != 101 {
			t.Errorf("got %d agents, want 101 that asked for one id", got)
		}
		for _, a := range here {
			a.hangUp()
		}
	})
}
