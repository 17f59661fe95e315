package acp_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestTheTranslationTableSaysWhatBecomesOfEveryKind(t *testing.T) {
	if err := acp.Translation.Check(); err != nil {
		t.Error(err)
	}
}

// counts walks a direction: what happens to one event of each kind that is declared
// folded or refused is counted as that, once.
func counts(t *testing.T, table core.Table, happen func(s *stage, k core.Kind)) {
	t.Helper()
	for _, k := range core.Kinds() {
		how := table[k].How
		if how != core.Folded && how != core.Refused {
			continue
		}
		t.Run(k.String(), func(t *testing.T) {
			onStage(t, func(_ *testing.T, s *stage) {
				happen(s, k)
				s.counted("acp."+how.String()+"."+k.String(), 1)
			})
		})
	}
}

// saying is how an agent or a requester says what the table refuses it.
var saying = map[core.Kind]string{
	core.KindApprovalRequested: `"kind":"progress","payload":{"seq":1,"approval_requested":{"id":"t","name":"n"}}`,
	core.KindApprovalDecided:   `"kind":"progress","payload":{"seq":1,"approval_decided":{"id":"t","approved":true,"by":"me"}}`,
	core.KindInjected:          `"kind":"progress","payload":{"seq":1,"injected":{"id":"i","content":"c"}}`,
	core.KindCancelRequested:   `"kind":"cancel","payload":{"reason":"no"}`,
	core.KindForeign:           `"kind":"mood","payload":{}`,
}

func TestWhatAnAgentMayNotSayIsRefusedAndCounted(t *testing.T) {
	counts(t, acp.Translation.FromAgent, func(s *stage, k core.Kind) {
		fam := s.agent("fam", `{}`)
		task := s.ask(s.plain("rest"), core.Request{To: core.ToAgent("fam"), Content: "?"})
		id := fam.expect(wire.KindQuery).ID
		fam.say(`{"id":"x","ref":"%s",%s}`, id, saying[k])
		fam.refused("x", wire.CodeUnsupported, "")
		fam.say(`{"id":"r","kind":"response","ref":"%s","payload":{"summary":"ok"}}`, id)
		s.ended(task)
	})
}

func TestWhatARequesterMayNotSayIsRefusedAndCounted(t *testing.T) {
	counts(t, acp.Translation.FromRequester, func(s *stage, k core.Kind) {
		poet, kit := s.plainAgent("poet", core.Card{}), s.enter("kit")
		kit.say(`{"id":"q1","to":"poet","kind":"query","payload":{"question":"?"}}`)
		task := s.assigned(poet)
		kit.say(`{"id":"x","ref":"q1",%s}`, saying[k])
		kit.refused("x", wire.CodeUnsupported, "")
		s.report(poet, task, core.Done{})
		kit.expect(wire.KindResponse)
	})
}

func TestForeignKindsThatAreRefusedAreCountedAndThoseThatPassAreNot(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		fam, kit := s.agent("fam", `{}`), s.enter("kit")
		s.plainAgent("poet", core.Card{})
		kit.say(`{"id":"1","to":"poet","kind":"mood"}`)
		kit.refused("1", wire.CodeUnknownKind, "mood")
		s.counted("acp.refused.foreign", 1)
		task := s.ask(s.plain("rest"), core.Request{To: core.ToAgent("fam"), Content: "?"})
		id := fam.expect(wire.KindQuery).ID
		fam.say(`{"id":"x","ref":"%s","kind":"mood"}`, id)
		fam.refused("x", wire.CodeUnknownKind, "mood")
		s.counted("acp.refused.foreign", 2)
		fam.say(`{"id":"r","kind":"response","ref":"%s","payload":{"summary":"ok"}}`, id)
		s.ended(task)
		kit.say(`{"id":"2","to":"fam","kind":"mood"}`)
		fam.expect("mood")
		s.counted("acp.refused.foreign", 2)
	})
}

func TestAnAgentIsToldToStopWhenTheHubEndsItsTask(t *testing.T) {
	onStageWith(t, hub.Options{Limits: hub.Limits{TaskBytes: 1000}}, func(t *testing.T, s *stage) {
		fam := s.agent("fam", `{"extensions":["progress"]}`)
		task := s.ask(s.plain("rest"), core.Request{To: core.ToAgent("fam"), Content: "?"})
		id := fam.expect(wire.KindQuery).ID
		for i := range 20 {
			fam.say(`{"id":"p%d","kind":"progress","ref":"%s","payload":{"seq":%d,"text":"roses are red, violets are blue"}}`, i, id, i)
		}
		if got := s.ended(task); got.Fault == nil || got.Fault.Code != core.CodeTooLarge {
			t.Errorf("got %+v, want it too large", got)
		}
		if e := fam.expect(wire.KindCancel); e.Ref != id {
			t.Errorf("got %s, want a cancel of %s", e.Raw, id)
		}
		fam.say(`{"id":"a","kind":"ack","ref":"%s","payload":{"accepted":true}}`, id)
		s.until(func() bool { a, _ := s.hub.Agent("fam"); return a.Load.Active == 0 }, "the agent has room again")
		fam.silent()
	})
}
