package acp_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestTheTranslationTableCoversEveryKind(t *testing.T) {
	if err := acp.Translation.Check(); err != nil {
		t.Error(err)
	}
}

// counts checks that one event of each folded or refused kind of a table is counted once.
func counts(t *testing.T, table core.Table, happen func(s *setup, k core.Kind)) {
	t.Helper()
	for _, k := range core.Kinds() {
		how := table[k].How
		if how != core.Folded && how != core.Refused {
			continue
		}
		t.Run(k.String(), func(t *testing.T) {
			withHub(t, func(_ *testing.T, s *setup) {
				happen(s, k)
				s.counted("acp."+how.String()+"."+k.String(), 1)
			})
		})
	}
}

// refusedEvent returns an envelope with an event that the table refuses.
var refusedEvent = map[core.Kind]string{
	core.KindApprovalRequested: `"kind":"progress","payload":{"seq":1,"approval_requested":{"id":"t","name":"n"}}`,
	core.KindApprovalDecided:   `"kind":"progress","payload":{"seq":1,"approval_decided":{"id":"t","approved":true,"by":"me"}}`,
	core.KindInjected:          `"kind":"progress","payload":{"seq":1,"injected":{"id":"i","content":"c"}}`,
	core.KindCancelRequested:   `"kind":"cancel","payload":{"reason":"no"}`,
	core.KindForeign:           `"kind":"mood","payload":{}`,
}

func TestEventsThatAnAgentMayNotSendAreRefusedAndCounted(t *testing.T) {
	counts(t, acp.Translation.FromAgent, func(s *setup, k core.Kind) {
		fam := s.agent("fam", `{}`)
		task := s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("fam"), Content: "?"})
		id := fam.expect(wire.KindQuery).ID
		fam.send(`{"id":"x","ref":"%s",%s}`, id, refusedEvent[k])
		fam.refused("x", wire.CodeUnsupported, "")
		fam.send(`{"id":"r","kind":"response","ref":"%s","payload":{"summary":"ok"}}`, id)
		s.ended(task)
	})
}

func TestEventsThatARequesterMayNotSendAreRefusedAndCounted(t *testing.T) {
	counts(t, acp.Translation.FromRequester, func(s *setup, k core.Kind) {
		poet, kit := s.plainAgent("poet", core.Card{}), s.peer("kit")
		kit.send(`{"id":"q1","to":"poet","kind":"query","payload":{"question":"?"}}`)
		task := s.assigned(poet)
		kit.send(`{"id":"x","ref":"q1",%s}`, refusedEvent[k])
		kit.refused("x", wire.CodeUnsupported, "")
		s.report(poet, task, core.Done{})
		kit.expect(wire.KindResponse)
	})
}

func TestRefusedForeignKindsAreCountedAndPassedOnesAreNot(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		fam, kit := s.agent("fam", `{}`), s.peer("kit")
		s.plainAgent("poet", core.Card{})
		kit.send(`{"id":"1","to":"poet","kind":"mood"}`)
		kit.refused("1", wire.CodeUnknownKind, "mood")
		s.counted("acp.refused.foreign", 1)
		task := s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("fam"), Content: "?"})
		id := fam.expect(wire.KindQuery).ID
		fam.send(`{"id":"x","ref":"%s","kind":"mood"}`, id)
		fam.refused("x", wire.CodeUnknownKind, "mood")
		s.counted("acp.refused.foreign", 2)
		fam.send(`{"id":"r","kind":"response","ref":"%s","payload":{"summary":"ok"}}`, id)
		s.ended(task)
		kit.send(`{"id":"2","to":"fam","kind":"mood"}`)
		fam.expect("mood")
		s.counted("acp.refused.foreign", 2)
	})
}

func TestAnAgentIsSentACancelWhenTheHubEndsItsTask(t *testing.T) {
	withHubOptions(t, hub.Options{Limits: hub.Limits{TaskBytes: 1000}}, func(t *testing.T, s *setup) {
		fam := s.agent("fam", `{"extensions":["progress"]}`)
		task := s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("fam"), Content: "?"})
		id := fam.expect(wire.KindQuery).ID
		for i := range 20 {
			fam.send(`{"id":"p%d","kind":"progress","ref":"%s","payload":{"seq":%d,"text":"roses are red, violets are blue"}}`, i, id, i)
		}
		if got := s.ended(task); got.Fault == nil || got.Fault.Code != core.CodeTooLarge {
			t.Errorf("got %+v, want it too large", got)
		}
		if e := fam.expect(wire.KindCancel); e.Ref != id {
			t.Errorf("got %s, want a cancel of %s", e.Raw, id)
		}
		fam.send(`{"id":"a","kind":"ack","ref":"%s","payload":{"accepted":true}}`, id)
		s.until(func() bool { a, _ := s.hub.Agent(core.Principal{Operator: true}, "fam"); return a.Load.Active == 0 }, "the agent has room again")
		fam.expectNothing()
	})
}
