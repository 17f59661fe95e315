package client_test

import (
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// steerable starts an agent that takes context while it works.
func (s *served) steerable() (*peer, func() error) {
	s.Helper()
	p, stop := s.run()
	p.replies(p.wants("initialize"), `{"protocolVersion":1,"agentInfo":{"name":"stub","version":"0"},"_meta":{"steering":{"supported":true}}}`)
	s.join(4)
	return p, stop
}

func (s *served) inject(id core.TaskID, in core.Injected) {
	s.Helper()
	if err := s.user.Inject(hub.NoWait, id, in); err != nil {
		s.Fatalf("got %v, want the context taken", err)
	}
}

func TestContextReachesATurnThatRuns(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.steerable()
		asked := s.ask("count")
		p.begins("s1")
		prompt := p.wants("session/prompt")
		p.text("s1", "one")
		synctest.Wait()
		s.inject(asked.ID(), core.Injected{ID: "i", Content: "in French"})
		steer := p.wants("_session/steering")
		const want = `{"sessionId":"s1","prompt":[{"type":"text","text":"in French"}],"_meta":{"steering":{"idleBehavior":"promptRequired"}}}`
		if got := string(steer.Params.Raw()); got != want {
			s.Errorf("the agent got %s, want %s", got, want)
		}
		p.updates("s1", `{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`)
		synctest.Wait()
		if n := len(s.answered(asked.ID())); n != 0 {
			s.Errorf("got %d receipts before the agent has answered, want none", n)
		}
		p.replies(steer, `{"outcome":"injected"}`)
		p.text("s1", "deux")
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		s.tells(asked, `text {"text":"one"}`, `injected {"id":"i","content":"in French","priority":"normal","source":"user"}`, `thinking {"text":"hm"}`,
			`injection_answered {"id":"i","accepted":true}`, `text {"text":"deux"}`, "done {}")
		_ = stop()
	})
}

// answered returns the receipts of context that a task has.
func (s *served) answered(id core.TaskID) (all []core.InjectionAnswered) {
	t, _ := s.hub.Task(s.Context(), core.Principal{ID: "user", Operator: true}, id)
	for _, e := range t.Events() {
		if a, is := e.Body.(core.InjectionAnswered); is {
			all = append(all, a)
		}
	}
	return all
}

func TestTheReceiptOfContextSaysWhatTheAgentHasAnswered(t *testing.T) {
	for answer, want := range map[string]string{
		`"result":{"outcome":"promptRequired","reason":"noRunningTurn"}`: "the agent answered promptRequired: noRunningTurn",
		`"result":{"outcome":"failed"}`:                                  "the agent answered failed",
		`"result":{}`:                                                    "the answer of the agent: outcome: missing; send a string",
		`"result":7`:                                                     "the answer of the agent: want an object, got 7",
		`"error":{"code":-32002,"message":"unknown session"}`:            "unknown session",
		"": "the turn ended before the agent answered",
	} {
		serve(t, nil, func(s *served) {
			p, stop := s.steerable()
			asked := s.ask("count")
			p.begins("s1")
			prompt := p.wants("session/prompt")
			p.text("s1", "one")
			synctest.Wait()
			s.inject(asked.ID(), core.Injected{ID: "i", Content: "two"})
			steer := p.wants("_session/steering")
			if answer != "" {
				p.says(`{"jsonrpc":"2.0","id":%s,%s}`, steer.ID, answer)
			}
			p.replies(prompt, `{"stopReason":"end_turn"}`)
			s.wait(asked)
			if got := s.answered(asked.ID()); len(got) != 1 || got[0].Accepted || got[0].Reason != want {
				s.Errorf("%s: got %+v, want one that says %q", answer, got, want)
			}
			if answer == "" { // too late: nobody is told anything else
				p.replies(steer, `{"outcome":"injected"}`)
				synctest.Wait()
				if got := s.answered(asked.ID()); len(got) != 1 {
					s.Errorf("got %+v after the end, want one receipt", got)
				}
			}
			_ = stop()
		})
	}
}

func TestAnAgentWithoutSteeringIsGivenNoContext(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.ask("count")
		p.begins("s1")
		prompt := p.wants("session/prompt")
		p.text("s1", "one")
		synctest.Wait()
		err := s.user.Inject(hub.NoWait, asked.ID(), core.Injected{ID: "i", Content: "two"})
		if got := core.AsFault(err); err == nil || got.Code != core.CodeUnsupported {
			s.Errorf("got %v, want it refused as unsupported", err)
		}
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		s.wait(asked)
		_ = stop()
	})
}
