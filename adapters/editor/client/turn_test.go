package client_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
)

func TestATurnIsToldInOrderAndTheAnswerToThePromptComesLast(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.ask("count")
		p.begins("s1")
		prompt := p.wants("session/prompt")
		if got, want := string(prompt.Params.Raw()), `{"sessionId":"s1","prompt":[{"type":"text","text":"count"}]}`; got != want {
			s.Errorf("got the prompt %s, want %s", got, want)
		}
		var want strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&want, "%d ", i)
			p.text("s1", fmt.Sprintf("%d ", i))
		}
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		s.settle()
		a := asked.Answer()
		if a.End != core.KindDone || a.Text != want.String() {
			s.Errorf("got %s with %d bytes (%v), want done with all 1000 chunks in order", a.End, len(a.Text), a.Fault)
		}
		if err := stop(); err != nil {
			s.Errorf("Run returned %v after the end of its context, want nil", err)
		}
	})
}

func TestTwoSessionsShareAPipeWithoutMixing(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		one, two := s.open(core.Request{Content: "one", Thread: "t1"}), s.open(core.Request{Content: "two", Thread: "t2"})
		sessions := map[string]string{}
		prompts := map[string]string{}
		for range 4 {
			m := p.next()
			if m.Method == "session/new" {
				p.replies(m, fmt.Sprintf(`{"sessionId":"s%s"}`, m.ID))
				continue
			}
			name := "one"
			if strings.Contains(string(m.Params.Get("prompt").Raw()), "two") {
				name = "two"
			}
			sessions[name], _ = m.Params.Get("sessionId").Text()
			prompts[name] = string(m.ID)
		}
		for i := range 100 {
			p.text(sessions["one"], fmt.Sprintf("a%d ", i))
			p.text(sessions["two"], fmt.Sprintf("b%d ", i))
		}
		p.says(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, prompts["two"])
		p.says(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, prompts["one"])
		s.settle()
		for name, answer := range map[string]core.Answer{"a": one.Answer(), "b": two.Answer()} {
			if answer.End != core.KindDone || strings.Count(answer.Text, name) != 100 || !strings.HasSuffix(answer.Text, name+"99 ") {
				s.Errorf("got %s with %.50q..., want 100 pieces of %s alone", answer.End, answer.Text, name)
			}
		}
		_ = stop()
	})
}

func TestPromptsOfASessionTakeTurns(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		first := s.open(core.Request{Content: "first", Thread: "t1"})
		p.begins("s1")
		prompt := p.wants("session/prompt")
		second := s.open(core.Request{Content: "second", Thread: "t1"})
		synctest.Wait()
		p.text("s1", "1")
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		prompt = p.wants("session/prompt") // and no session/new
		if got := string(prompt.Params.Get("prompt").Raw()); got != `[{"type":"text","text":"second"}]` {
			s.Errorf("got the prompt %s, want the second without the history that the session has", got)
		}
		p.text("s1", "2")
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		s.tells(first, `text {"text":"1"}`, `done {}`)
		s.tells(second, `text {"text":"2"}`, `done {}`)
		_ = stop()
	})
}

func TestEveryStopReasonIsAnEndOfItsOwn(t *testing.T) {
	for _, c := range []struct{ result, want string }{
		{`{"stopReason":"end_turn","_meta":{"q":1}}`, `done {} + {"_meta":{"q":1}}`},
		{`{"stopReason":"max_tokens"}`, `done {"truncated":true} + {"stopReason":"max_tokens"}`},
		{`{"stopReason":"max_turn_requests"}`, `done {"truncated":true} + {"stopReason":"max_turn_requests"}`},
		{`{"stopReason":"cancelled"}`, `cancelled {"reason":"the agent cancelled the turn"} + {"stopReason":"cancelled"}`},
		{`{"stopReason":"refusal"}`, `failed {"fault":{"code":"not_authorized","message":"the agent refuses to go on with this request; it is not part of the conversation","peer_code":"refusal"}} + {"stopReason":"refusal"}`},
		{`{"stopReason":"tired"}`, `done {} + {"stopReason":"tired"}`},
		{`{}`, `failed {"fault":{"code":"invalid","message":"the agent's answer to the prompt: stopReason: missing; send a string"}}`},
	} {
		serve(t, nil, func(s *served) {
			p, stop := s.start(`{}`)
			asked := s.ask("x")
			p.begins("s1")
			p.replies(p.wants("session/prompt"), c.result)
			s.tells(asked, c.want)
			_ = stop()
		})
	}
}

func TestTheUsageOfATurnIsToldBeforeItsEnd(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.ask("x")
		p.begins("s1")
		prompt := p.wants("session/prompt")
		p.updates("s1", `{"sessionUpdate":"usage_update","used":10,"size":100}`)
		p.replies(prompt, `{"stopReason":"end_turn","usage":{"inputTokens":5,"outputTokens":4,"cachedReadTokens":3,"cachedWriteTokens":2,"thoughtTokens":1,"totalTokens":10}}`)
		s.tells(asked,
			`foreign {"dialect":"editor","name":"usage_update"} + {"sessionUpdate":"usage_update","used":10,"size":100}`,
			`usage {"input":5,"output":4,"cache_read":3,"cache_write":2,"thinking":1}`, `done {}`)
		_ = stop()
	})
}

func TestEachTurnCostsWhatItAddedToTheCostOfItsSession(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		for i, c := range []struct{ told, want string }{
			{`{"amount":0.0014,"currency":"USD"}`, `,"cost":{"nanos":1400000,"currency":"USD"}`},
			{`{"amount":0.0034,"currency":"USD"}`, `,"cost":{"nanos":2000000,"currency":"USD"}`},
			{`{"amount":0.0034,"currency":"USD"}`, `,"cost":{"nanos":0,"currency":"USD"}`},
			{`{"amount":"much"}`, ``},
			{`null`, ``}, // unknown, not 0
			{`{"amount":0.0044,"currency":"USD"}`, `,"cost":{"nanos":1000000,"currency":"USD"}`},
			{`{"amount":0.0005,"currency":"USD"}`, `,"cost":{"nanos":500000,"currency":"USD"}`}, // it counts from zero again
		} {
			asked := s.open(core.Request{Content: "x", Thread: "th"})
			if i == 0 {
				p.begins("s1")
			}
			prompt := p.wants("session/prompt")
			update := `{"sessionUpdate":"usage_update","used":10,"size":100,"cost":` + c.told + `}`
			p.updates("s1", update)
			p.replies(prompt, `{"stopReason":"end_turn","usage":{"inputTokens":5,"outputTokens":4,"totalTokens":9}}`)
			s.tells(asked, `foreign {"dialect":"editor","name":"usage_update"} + `+update, `usage {"input":5,"output":4`+c.want+`}`, `done {}`)
		}
		_ = stop()
	})
}

func TestASessionInPlaceOfAnotherCostsFromItsBeginning(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, _ := s.start(`{}`)
		turn := func(session, amount, nanos string) {
			s.Helper()
			asked := s.open(core.Request{Content: "x", Thread: "th"})
			p.begins(session)
			prompt := p.wants("session/prompt")
			p.updates(session, `{"sessionUpdate":"usage_update","used":10,"size":100,"cost":{"amount":`+amount+`,"currency":"USD"}}`)
			p.replies(prompt, `{"stopReason":"end_turn","usage":{"inputTokens":5,"outputTokens":4,"totalTokens":9}}`)
			s.wait(asked)
			log := asked.Log()
			for e := range log.All() {
				if u, is := e.Body.(core.Usage); is && fmt.Sprint(u.Cost.Nanos) != nanos {
					s.Errorf("%s: got a cost of %d, want %s", session, u.Cost.Nanos, nanos)
				}
			}
		}
		turn("s1", "0.5", "500000000")
		p, stop := s.again(p, `{}`)
		turn("s2", "0.75", "750000000")
		_ = stop()
	})
}

func TestTheQuotaOfGeminiIsUsage(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.ask("x")
		p.begins("s1")
		const result = `{"stopReason":"end_turn","_meta":{"quota":{"token_count":{"input_tokens":5,"output_tokens":4},"model_usage":[]}}}`
		p.replies(p.wants("session/prompt"), result)
		s.tells(asked, `usage {"input":5,"output":4}`, `done {} + {"_meta":{"quota":{"token_count":{"input_tokens":5,"output_tokens":4},"model_usage":[]}}}`)
		_ = stop()
	})
}

func TestAnErrorOfTheAgentFailsTheTaskWithItsReason(t *testing.T) {
	for _, c := range []struct{ answer, want string }{
		{`{"code":-32603,"message":"boom","data":{"details":"no model"}}`, `failed {"fault":{"code":"internal","message":"the prompt: the agent answered: boom (no model)","peer_code":"-32603"}}`},
		{`{"code":-32602,"message":"bad"}`, `failed {"fault":{"code":"invalid","message":"the prompt: the agent answered: bad","peer_code":"-32602"}}`},
		{`{"code":-32800,"message":"stopped"}`, `cancelled {"reason":"the agent cancelled the turn"}`},
	} {
		serve(t, nil, func(s *served) {
			p, stop := s.start(`{}`)
			asked := s.ask("x")
			p.begins("s1")
			p.says(`{"jsonrpc":"2.0","id":%s,"error":%s}`, p.wants("session/prompt").ID, c.answer)
			s.tells(asked, c.want)
			_ = stop()
		})
	}
}

func TestAnAgentThatDiesInATurnFailsItAsUnreachable(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, _ := s.start(`{}`)
		asked := s.ask("x")
		p.begins("s1")
		p.wants("session/prompt")
		p.text("s1", "half")
		p.dies()
		s.settle()
		a := asked.Answer()
		if a.End != core.KindFailed || a.Text != "half" || a.Fault.Code != core.CodeUnreachable || !a.Fault.Retryable {
			s.Errorf("got %s with %q and %v, want it failed as unreachable, retryable, after what was said", a.End, a.Text, a.Fault)
		}
		s.gone(<-p.ran)
	})
}
