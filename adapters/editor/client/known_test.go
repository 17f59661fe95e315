package client_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
)

// blocks returns what a prompt has.
func blocks(prompt jsonrpc.Message) string { return string(prompt.Params.Get("prompt").Raw()) }

func TestATurnThatWasAskedWhileAnotherRanIsPromptedWithoutTheEarlierOnes(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		s.turn(p, "s1", "t", "first", "one")
		for range 3 { // the session stays the same
			running := s.open(core.Request{Content: "running", Thread: "t"})
			prompt := p.wants("session/prompt")
			next := s.open(core.Request{Content: "next", Thread: "t"}) // the agent gets it, without the turn that runs
			synctest.Wait()
			p.replies(prompt, `{"stopReason":"end_turn"}`)
			prompt = p.wants("session/prompt")
			if got, want := blocks(prompt), `[{"type":"text","text":"next"}]`; got != want {
				s.Errorf("got the prompt %s, want %s: the session knows all turns before", got, want)
			}
			p.replies(prompt, `{"stopReason":"end_turn"}`)
			s.wait(running)
			s.wait(next)
		}
		_ = stop()
	})
}

func TestATurnOfAnotherAgentThatEndsLateIsToldInTheNextOne(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		s.turn(p, "s1", "t", "first", "one")
		slow := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "slow"}, Dialect: "test"})
		defer slow.Close(nil)
		if err := slow.Join(core.Card{ID: "slow"}, hub.JoinOptions{}); err != nil {
			s.Fatal(err)
		}
		other, err := s.user.Open(core.Request{To: core.ToAgent("slow"), Content: "aside", Thread: "t"}, hub.OpenOptions{Unwatched: true})
		if err != nil {
			s.Fatal(err)
		}
		s.turn(p, "s1", "t", "second", "two") // which is asked later, and ends earlier
		if err := slow.Report(other.ID(), core.Done{Text: "from aside"}, nil); err != nil {
			s.Fatal(err)
		}
		for i, want := range []bool{true, false} {
			got := s.turn(p, "s1", "t", fmt.Sprint("next ", i), "three")
			if strings.Contains(got, "from aside") != want || strings.Contains(got, "second") {
				s.Errorf("turn %d: got the prompt %s, want the turn of the other agent in it: %t", i, got, want)
			}
		}
		_ = stop()
	})
}

func TestACancelledTurnIsNotGivenTheFilesOfEarlierTurnsAgain(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{"promptCapabilities":{"image":true}}`)
		other := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "other"}, Dialect: "test"})
		defer other.Close(nil)
		if err := other.Join(core.Card{ID: "other"}, hub.JoinOptions{}); err != nil {
			s.Fatal(err)
		}
		image := core.File{Name: "a.png", MediaType: "image/png", Data: []byte("png")}
		before, err := s.user.Open(core.Request{To: core.ToAgent("other"), Content: "look", Thread: "t", Attachments: []core.File{image}}, hub.OpenOptions{Unwatched: true})
		if err != nil {
			s.Fatal(err)
		}
		if err := other.Report(before.ID(), core.Done{Text: "seen"}, nil); err != nil {
			s.Fatal(err)
		}
		asked := s.open(core.Request{Content: "go on", Thread: "t"})
		p.begins("s1")
		prompt := p.wants("session/prompt")
		if got := blocks(prompt); !strings.Contains(got, `"type":"image"`) {
			s.Errorf("got the prompt %s, want the image of the turn before", got)
		}
		p.replies(prompt, `{"stopReason":"cancelled"}`)
		s.told(asked)
		if got := s.turn(p, "s1", "t", "again", "three"); strings.Contains(got, `"type":"image"`) {
			s.Errorf("got the prompt %s, want it without the image that the session has", got)
		}
		_ = stop()
	})
}

func TestATurnThatFailedOnceTheAgentSpokeIsNotGivenTheEarlierOnesAgain(t *testing.T) {
	for name, spoke := range map[string]bool{"it spoke": true, "it said nothing": false} {
		serve(t, nil, func(s *served) {
			p, stop := s.start(`{}`)
			s.wait(s.other("other", "one")("t", "first?"))
			asked := s.open(core.Request{Content: "go on", Thread: "t"})
			p.begins("s1")
			prompt := p.wants("session/prompt")
			if spoke {
				p.text("s1", "so far")
			}
			p.fails(prompt, -32603, "the model is down")
			s.told(asked)
			if got := s.turn(p, "s1", "t", "again", "three"); strings.Contains(got, "first?") == spoke {
				s.Errorf("%s: got the prompt %s, want the earlier turns in it: %t", name, got, !spoke)
			}
			_ = stop()
		})
	}
}
