package acp_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/acptest"
	acpclient "github.com/dragoman-hub/dragoman/adapters/acp/client"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

func TestAnEnvelopePassesBetweenACPPeersWithUnknownFieldsUntouched(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit, fam := s.peer("kit"), s.agent("fam", `{"domains":["family"]}`)
		kit.send(`{"v":1, "id":"q1","x-trace":{"a":[1, 2.50]},"from":"kit","to":"domain:family","ts":17,"kind":"query","ref":null,"payload":{"question":"wh\u00e9n?  ","mood":1.0e2,"deadline_ms":5000}}`)
		want := `{"v":1, "id":"q1","x-trace":{"a":[1, 2.50]},"from":"kit","to":"fam","ts":17,"kind":"query","ref":null,"payload":{"question":"wh\u00e9n?  ","mood":1.0e2,"deadline_ms":5000}}`
		if got := string(fam.expect(wire.KindQuery).Raw); got != want {
			t.Errorf("the query:\ngot  %s\nwant %s", got, want)
		}
		fam.send(`{"v":1,"id":"r1","from":"fam","to":"somebody","ts":18,"kind":"response","ref":"q1","payload":{"data":{"z": 1e3},"summary":"Mon","confidence":0.90},"x":null}`)
		want = `{"v":1,"id":"r1","from":"fam","to":"kit","ts":18,"kind":"response","ref":"q1","payload":{"data":{"z": 1e3},"summary":"Mon","confidence":0.90},"x":null}`
		if got := string(kit.expect(wire.KindResponse).Raw); got != want {
			t.Errorf("the response:\ngot  %s\nwant %s", got, want)
		}

		kit.send(`{"id":"d1","to":"fam","kind":"delegate","payload":{"task":"do","y":1}}`)
		kit.expect(wire.KindAck)
		if got, want := string(fam.expect(wire.KindDelegate).Raw), `{"id":"d1","to":"fam","kind":"delegate","payload":{"task":"do","y":1},"from":"kit"}`; got != want {
			t.Errorf("the delegate:\ngot  %s\nwant %s", got, want)
		}
		fam.send(`{"id":"a1","kind":"ack","ref":"d1","payload":{"accepted":true}}`)
		fam.send(`{"id":"r2","kind":"result","ref":"d1","payload":{"status":"completed","outcome":"done","z":true}}`)
		if got, want := string(kit.expect(wire.KindResult).Raw), `{"id":"r2","kind":"result","ref":"d1","payload":{"status":"completed","outcome":"done","z":true},"from":"fam","to":"kit"}`; got != want {
			t.Errorf("the result:\ngot  %s\nwant %s", got, want)
		}

		kit.send(`{"id":"q2","to":"fam","kind":"query","payload":{"question":"?"}}`)
		fam.expect(wire.KindQuery)
		fam.send(`{"id":"e2","kind":"error","ref":"q2","payload":{"code":"out_of_milk","message":"go","retryable":false,"shop":"corner"}}`)
		if got := kit.expect(wire.KindError); !strings.Contains(string(got.Raw), `"out_of_milk","message":"go","retryable":false,"shop":"corner"`) {
			t.Errorf("the error: got %s, want it unchanged", got.Raw)
		}

		kit.send(`{"id":"n1","to":"fam","kind":"notify","payload":{"topic":"a","data":{"b": 1},"importance":"high","ttl":5}}`)
		if got, want := string(fam.expect(wire.KindNotify).Raw), `{"id":"n1","to":"fam","kind":"notify","payload":{"topic":"a","data":{"b": 1},"importance":"high","ttl":5},"from":"kit"}`; got != want {
			t.Errorf("the notify:\ngot  %s\nwant %s", got, want)
		}
	})
}

func TestAnIDThatTheAgentHasFromAnotherPeerIsReplacedAndRefFollows(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit, bob, fam := s.peer("kit"), s.peer("bob"), s.agent("fam", `{"max_concurrent_tasks":2}`)
		kit.send(`{"id":"1","to":"fam","kind":"query","payload":{"question":"kit?"}}`)
		if got := fam.expect(wire.KindQuery); got.ID != "1" || got.From != "kit" {
			t.Errorf("got %s, want it unchanged from kit", got.Raw)
		}
		bob.send(`{"id":"1","to":"fam","kind":"query","payload":{"question":"bob?"}}`)
		other := fam.expect(wire.KindQuery)
		if other.ID == "1" || other.From != "bob" {
			t.Errorf("got %s, want it from bob with another id", other.Raw)
		}
		fam.send(`{"id":"r1","kind":"response","ref":"%s","payload":{"summary":"bob!"}}`, other.ID)
		fam.send(`{"id":"r2","kind":"response","ref":"1","payload":{"summary":"kit!"}}`)
		if got := expect[wire.Response](bob, wire.KindResponse, "1"); got.Summary != "bob!" {
			t.Errorf("bob: got %+v, want bob!", got)
		}
		if got := expect[wire.Response](kit, wire.KindResponse, "1"); got.Summary != "kit!" {
			t.Errorf("kit: got %+v, want kit!", got)
		}
	})
}

func TestUnknownKindsPassBetweenACPPeersBothWays(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit, fam := s.peer("kit"), s.agent("fam", `{}`)
		for i := range 3 { // mutual answers are not a loop
			id := string(rune('0' + i))
			kit.send(`{"id":"s%s","from":"kit","to":"fam","kind":"negotiate","payload":{"topic":"a.>"},"x":1}`, id)
			if got, want := string(fam.expect("negotiate").Raw), `{"id":"s`+id+`","from":"kit","to":"fam","kind":"negotiate","payload":{"topic":"a.>"},"x":1}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			fam.send(`{"id":"t%s","kind":"agreed","ref":"s%s","payload":{},"y":2}`, id, id)
			if got, want := string(kit.expect("agreed").Raw), `{"id":"t`+id+`","kind":"agreed","ref":"s`+id+`","payload":{},"y":2,"from":"fam","to":"kit"}`; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		}
		kit.send(`{"id":"s4","to":"fam","kind":"frobnicate"}`)
		fam.expect("frobnicate")
		fam.send(`{"id":"t4","kind":"error","ref":"s4","payload":{"code":"unknown_kind","message":"what?","z":1}}`)
		if got := kit.expect(wire.KindError); got.Ref != "s4" || got.From != "fam" || !strings.Contains(string(got.Raw), `"z":1`) {
			t.Errorf("got %s, want the error of fam unchanged", got.Raw)
		}
		// A kind without an answer takes no slot, and its end is not sent.
		kit.send(`{"id":"s5","to":"fam","kind":"fyi"}`)
		fam.expect("fyi")
		kit.send(`{"id":"q1","to":"fam","kind":"query","payload":{"question":"?","deadline_ms":120000}}`)
		fam.expect(wire.KindQuery)
		time.Sleep(time.Minute)
		fam.expectNothing()
		kit.expectNothing()
		fam.send(`{"id":"r1","kind":"response","ref":"q1","payload":{"summary":"still here"}}`)
		kit.expect(wire.KindResponse)
	})
}

func TestAnUnknownKindForAnotherDialectIsRefused(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		s.plainAgent("shout", core.Card{Features: core.FeatureNotices})
		kit := s.peer("kit")
		for i, to := range []string{"shout", "hub", "*", "", "capability:x"} {
			id := "u" + string(rune('0'+i))
			kit.send(`{"id":"%s","to":"%s","kind":"frobnicate"}`, id, to)
			kit.refused(id, wire.CodeUnknownKind, "frobnicate")
		}
		kit.send(`{"id":"u9","to":"nobody","kind":"frobnicate"}`)
		kit.refused("u9", wire.CodePeerNotFound, "nobody")
	})
}

func TestAnUnknownKindInAnswerToAQuestionPassesAndTheAnswerFollows(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit, fam := s.peer("kit"), s.agent("fam", `{}`)
		kit.send(`{"id":"q1","to":"fam","kind":"query","payload":{"question":"?"}}`)
		fam.expect(wire.KindQuery)
		fam.send(`{"id":"m1","kind":"mood","ref":"q1","payload":{"mood":"good"}}`)
		if got := kit.expect("mood"); got.Ref != "q1" || got.From != "fam" {
			t.Errorf("got %s, want it from fam with ref q1", got.Raw)
		}
		fam.send(`{"id":"r1","kind":"response","ref":"q1","payload":{"summary":"x"}}`)
		kit.expect(wire.KindResponse)

		task := s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("fam"), Content: "?"})
		id := fam.expect(wire.KindQuery).ID
		fam.send(`{"id":"m2","kind":"mood","ref":"%s"}`, id)
		fam.refused("m2", wire.CodeUnknownKind, "mood")
		fam.send(`{"id":"r2","kind":"response","ref":"%s","payload":{"summary":"x"}}`, id)
		s.ended(task)
	})
}

func TestProgressPassesBetweenACPPeersUnchanged(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit, fam := s.peer("kit"), s.agent("fam", `{"extensions":["progress"]}`)
		plain := s.peer("plain")
		kit.send(`{"id":"h","kind":"hello","payload":{"protocol_versions":[1],"features":["progress"]}}`)
		kit.expect(wire.KindHello)
		for _, a := range []*peer{kit, plain} {
			a.send(`{"id":"q-%s","to":"fam","kind":"query","payload":{"question":"?"}}`, a.name)
			fam.expect(wire.KindQuery)
			fam.send(`{"id":"p1-%s","kind":"progress","ref":"q-%s","payload":{"seq":1,"text":"ro","w":0.50}}`, a.name, a.name)
			fam.send(`{"id":"p2-%s","kind":"progress","ref":"q-%s","payload":{"seq":2,"text":"ses"}}`, a.name, a.name)
			fam.send(`{"id":"r-%s","kind":"response","ref":"q-%s","payload":{"summary":"a poem","data":null,"w":0.70}}`, a.name, a.name)
		}
		if got, want := string(kit.expect(wire.KindProgress).Raw), `{"id":"p1-kit","kind":"progress","ref":"q-kit","payload":{"seq":1,"text":"ro","w":0.50},"from":"fam","to":"kit"}`; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		kit.expect(wire.KindProgress)
		if got := expect[wire.Response](kit, wire.KindResponse, "q-kit"); got.Summary != "a poem" {
			t.Errorf("with the extension: got %+v, want the response unchanged", got)
		}
		// A peer that did not get the pieces gets the whole text in the end, and all else unchanged.
		if got, want := string(plain.expect(wire.KindResponse).Raw), `{"id":"r-plain","kind":"response","ref":"q-plain","payload":{"summary":"roses","data":null,"w":0.70},"from":"fam","to":"plain"}`; got != want {
			t.Errorf("without the extension:\ngot  %s\nwant %s", got, want)
		}
	})
}

func TestA900KilobyteAnswerArrivesWhole(t *testing.T) {
	tier.Full(t, "it sends megabytes")
	withHub(t, func(t *testing.T, s *setup) {
		text := strings.Repeat(strings.Repeat("0123456789", 6)+"é\n", 900<<10/63)
		s.work(core.Card{ID: "echo", MaxConcurrent: 2}, acpclient.WorkOptions{}, func(_ context.Context, r core.Request, say func(core.Body) error) error {
			if r.Domain == "whole" {
				return say(core.Done{Text: text})
			}
			for rest := text; rest != ""; {
				var part string
				part, rest = wire.CutText(rest, 1800)
				if err := say(core.Text{Text: part}); err != nil {
					return err
				}
			}
			return nil
		})
		c := s.client(acptest.Options{ID: "kit"})
		if _, err := c.Ask(s.Context(), core.Request{To: core.ToAgent("echo"), Content: strings.Repeat("x", wire.DefaultMaxEnvelopeBytes)}, nil); core.AsFault(err).Code != core.CodeTooLarge {
			t.Errorf("a question over the limit: got %v, want too_large", err)
		}
		for _, progress := range []bool{true, false} {
			c := s.client(acptest.Options{ID: core.AgentID("kit" + map[bool]string{true: "1", false: "2"}[progress]), Progress: progress})
			for _, domain := range []string{"whole", "pieces"} {
				a, err := c.Ask(s.Context(), core.Request{To: core.ToAgent("echo"), Content: text, Domain: domain}, nil)
				if err != nil {
					t.Fatalf("progress %t, %s: got %v, want no error", progress, domain, err)
				}
				if a.Text != text {
					t.Errorf("progress %t, %s: got %d bytes, want %d", progress, domain, len(a.Text), len(text))
				}
			}
		}
	})
}
