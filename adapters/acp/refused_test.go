package acp_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

func TestAnAnswerThatTheHubRefusesEndsItsTaskAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		ask, answer string
		refused     wire.Code
		message     string // what the requester gets, in part
	}{
		"without a summary":         {`query`, `{"id":"r1","kind":"response","ref":"%s","payload":{"data":1}}`, wire.CodeInvalidEnvelope, "summary"},
		"with data that is too big": {`query`, `{"id":"r1","kind":"response","ref":"%s","payload":{"summary":"` + strings.Repeat("x", wire.DefaultMaxEnvelopeBytes) + `"}}`, wire.CodeTooLarge, "1000000"},
		"that is no JSON":           {`query`, `{"id":"r1","kind":"response","ref":"%s","payload":{"summary":}}`, wire.CodeInvalidEnvelope, "not JSON"},
		"in the name of another":    {`query`, `{"id":"r1","from":"eve","kind":"response","ref":"%s","payload":{"summary":"x"}}`, wire.CodeNotAuthorized, "eve"},
		"under an id used before":   {`query`, `{"id":"used","kind":"response","ref":"%s","payload":{"summary":"x"}}`, wire.CodeConflict, "used"},
		"of a status unheard of":    {`delegate`, `{"id":"r1","kind":"result","ref":"%s","payload":{"status":"fine","outcome":"x"}}`, wire.CodeInvalidEnvelope, "status"},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(t *testing.T, s *setup) {
				fam, kit := s.agent("fam", `{}`), s.peer("kit")
				fam.send(`{"id":"used","kind":"ping"}`)
				fam.expect(wire.KindPong)
				began := time.Now()
				kit.send(`{"id":"q1","to":"fam","kind":"%s","payload":{"question":"?","task":"!"}}`, c.ask)
				if c.ask == "delegate" {
					kit.expect(wire.KindAck)
				}
				id := fam.next().ID
				fam.send("%s", strings.Replace(c.answer, "%s", id, 1))
				if got := fam.expect(wire.KindError); !strings.Contains(string(got.Payload), `"`+string(c.refused)+`"`) {
					t.Errorf("the agent: got %s, want %s", got.Raw, c.refused)
				}
				got := kit.next()
				if (got.Kind != wire.KindError && got.Kind != wire.KindResult) || got.Ref != "q1" || !strings.Contains(string(got.Payload), "was refused") || !strings.Contains(string(got.Payload), c.message) {
					t.Errorf("the requester: got %s, want a refused answer, with %q", got.Raw, c.message)
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("it took %s, want the failure at once", took)
				}
				kit.send(`{"id":"q2","to":"fam","kind":"query","payload":{"question":"again?"}}`)
				fam.expect(wire.KindQuery) // its slot is free
			})
		})
	}
}

func TestTheTextOfAnAnswerIsNeverEmpty(t *testing.T) {
	long := json.RawMessage(`"` + strings.Repeat("x", 8<<10) + `"`)
	for name, c := range map[string]struct {
		answer core.Done
		file   bool
		want   string
	}{
		"text":                {core.Done{Text: "Mon", Data: json.RawMessage(`1`)}, false, "Mon"},
		"data alone":          {core.Done{Data: json.RawMessage("{\"day\": \"Mon\",\n \"at\": [ 4 ]}")}, false, `{"day":"Mon","at":[4]}`},
		"much data alone":     {core.Done{Data: long}, false, string(long[:wire.SummaryBytes]) + " ..."},
		"a file alone":        {core.Done{}, true, "done"},
		"nothing but the end": {core.Done{}, false, "done"},
	} {
		t.Run(name, func(t *testing.T) {
			withHub(t, func(t *testing.T, s *setup) {
				doer, kit := s.plainAgent("doer", core.Card{}), s.peer("kit")
				for _, kind := range []wire.Kind{wire.KindQuery, wire.KindDelegate} {
					kit.send(`{"id":"%s","to":"doer","kind":"%s","payload":{"question":"?","task":"!"}}`, kind, kind)
					if kind == wire.KindDelegate {
						kit.expect(wire.KindAck)
					}
					task := s.assigned(doer)
					if c.file {
						s.report(doer, task, core.File{Name: "f", Data: []byte("x")})
					}
					s.report(doer, task, c.answer)
					s.nextBatch(doer) // of its own end
					if kind == wire.KindQuery {
						if got := expect[wire.Response](kit, wire.KindResponse, "query"); got.Summary != c.want {
							t.Errorf("summary: got %q, want %q", got.Summary, c.want)
						}
					} else if got := expect[wire.Result](kit, wire.KindResult, "delegate"); got.Outcome != c.want {
						t.Errorf("outcome: got %q, want %q", got.Outcome, c.want)
					}
				}
			})
		})
	}
}

func TestANumberWithoutAFractionIsAnIntegerInAnyNotation(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		fam := s.agent("fam", `{"max_concurrent_tasks":2e0,"extensions":["progress"]}`)
		if a, _ := s.hub.Agent(core.Principal{Operator: true}, "fam"); a.MaxConcurrent != 2 {
			t.Errorf("max_concurrent_tasks 2e0: got %d, want 2", a.MaxConcurrent)
		}
		doer, kit := s.plainAgent("doer", core.Card{}), s.peer("kit")
		kit.send(`{"v":1.0,"id":"q1","to":"doer","kind":"query","payload":{"question":{"n":5.0},"max_tokens":5.0,"deadline_ms":1e3}}`)
		task := s.assigned(doer)
		if r := task.Request(); r.MaxTokens != 5 || time.Until(r.Deadline) != time.Second || string(r.Data) != `{"n":5.0}` {
			t.Errorf("got %d tokens, %s and %s, want 5, 1s and the question unchanged", r.MaxTokens, time.Until(r.Deadline), r.Data)
		}
		s.report(doer, task, core.Done{Text: "x"})
		kit.expect(wire.KindResponse)
		asked := s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("fam"), Content: "?"})
		id := fam.expect(wire.KindQuery).ID
		fam.send(`{"id":"p1","kind":"progress","ref":"%s","payload":{"seq":1.0,"usage":{"input":1e2,"output":3.0}}}`, id)
		fam.send(`{"id":"r1","kind":"response","ref":"%s","payload":{"summary":"x","tokens_used":1.03e2}}`, id)
		if got := s.ended(asked); got.Usage != (core.Usage{Input: 100, Output: 3}) || got.TokensUsed != 103 {
			t.Errorf("got %+v, want 100, 3 and 103 tokens", got)
		}
		kit.send(`{"id":"q2","to":"doer","kind":"query","payload":{"question":"?","max_tokens":5.5}}`)
		kit.refused("q2", wire.CodeInvalidEnvelope, "5.5")
	})
}

func TestAnyReplyToAnUnknownKindIsReturnedUntouched(t *testing.T) {
	for _, kind := range []wire.Kind{wire.KindAck, wire.KindPong, wire.KindResponse, wire.KindResult, wire.KindError, "agreed"} {
		t.Run(string(kind), func(t *testing.T) {
			withHub(t, func(t *testing.T, s *setup) {
				kit, fam := s.peer("kit"), s.agent("fam", `{}`)
				kit.send(`{"id":"s1","to":"fam","kind":"negotiate"}`)
				fam.expect("negotiate")
				payload := `{"accepted":true,"status":"overloaded","summary":"","outcome":"","code":"x","message":"","z": 1.0}`
				if kind == wire.KindResult {
					payload = `{"status":"partial","outcome":"","z": 1.0}`
				}
				fam.send(`{"id":"t1","kind":"%s","ref":"s1","payload":%s,"y":2}`, kind, payload)
				if got, want := string(kit.expect(kind).Raw), `{"id":"t1","kind":"`+string(kind)+`","ref":"s1","payload":`+payload+`,"y":2,"from":"fam","to":"kit"}`; got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				kit.expectNothing()
				fam.expectNothing()
				if a, _ := s.hub.Agent(core.Principal{Operator: true}, "fam"); a.Load.State != core.LoadIdle {
					t.Errorf("the load of fam: got %s, want idle: the pong was for kit, not the hub", a.Load.State)
				}
			})
		})
	}
}
