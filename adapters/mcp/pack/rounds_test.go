package pack_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/pack"
	"github.com/dragoman-hub/dragoman/core"
)

// modern begins as a server of 2026-07-28.
func modern(s *script) {
	s.answer(s.wants("server/discover"), `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`)
	s.answer(s.wants("tools/list"), oneTool)
}

func TestACallIsRepeatedWithWhatTheServerAskedFor(t *testing.T) {
	scripted(t, pack.Options{}, modern, func(g *testHub, s *script, _ *running) {
		ada, first := g.begun(s)
		s.answer(first, `{"resultType":"input_required","requestState":{"any": ["value"]},"inputRequests":{"b":{"method":"elicitation/create","params":{"message":"Name?",
			"requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}}}`)
		ada.reply(ada.asked(), core.Reply{Text: "Ada"})
		second := s.wants("tools/call")
		if string(second.ID) == string(first.ID) || string(second.Params.State) != `{"any": ["value"]}` || string(second.Params.Responses) != `{"b":{"action":"accept","content":{"name":"Ada"}}}` {
			t.Errorf("got %+v, want the call under a new id with the answer and the state as it was sent", second)
		}
		if second.Params.Name != "x" || string(second.Params.Arguments) != "{}" || second.Params.Meta.Version != "2026-07-28" {
			t.Errorf("got %+v, want the same call", second.Params)
		}
		s.answer(second, `{"resultType":"complete","content":[{"type":"text","text":"hello Ada"}]}`)
		if got := ada.result(); string(got.Output) != `{"text":"hello Ada"}` {
			t.Errorf("got %+v, want the result", got)
		}
	})
}

func TestEachRoundHasItsOwnProgress(t *testing.T) {
	scripted(t, pack.Options{Timeout: 10 * time.Second}, modern, func(g *testHub, s *script, _ *running) {
		got := g.start("x", `{}`)
		progress := func(m message, n int) {
			s.write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, m.ID, n)
		}
		m := s.wants("tools/call")
		progress(m, 90)
		s.answer(m, `{"resultType":"input_required","requestState":"later"}`)
		m = s.wants("tools/call")
		for i := range 3 {
			time.Sleep(6 * time.Second)
			progress(m, i+1)
		}
		s.answer(m, `{"content":[{"type":"text","text":"done"}]}`)
		if r := <-got; string(r.Output) != `{"text":"done"}` {
			t.Errorf("got %+v, want the call kept alive by the progress of its second round", r)
		}
	})
}

func TestABusyServerIsTriedAgainAFewTimes(t *testing.T) {
	scripted(t, pack.Options{}, modern, func(g *testHub, s *script, _ *running) {
		began := time.Now()
		got := g.start("x", `{}`)
		for range 4 {
			s.answer(s.wants("tools/call"), `{"resultType":"input_required","requestState":"later"}`)
		}
		wantFault(t, "a busy server", <-got, core.CodeOverloaded, "busy")
		if took := time.Since(began); took != 3*500*time.Millisecond {
			t.Errorf("got it after %s, want 1.5s", took)
		}
	})
}

func TestAServerThatAsksWithoutEndFailsTheCall(t *testing.T) {
	scripted(t, pack.Options{}, modern, func(g *testHub, s *script, _ *running) {
		got := g.start("x", `{}`) // nobody can be asked: each question is declined
		for range 11 {
			s.answer(s.wants("tools/call"), `{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"?"}}}}`)
		}
		wantFault(t, "questions without end", <-got, core.CodeInternal, "10 rounds")
		got = g.start("x", `{}`)
		s.answer(s.wants("tools/call"), `{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage","params":{}}}}`)
		wantFault(t, "sampling", <-got, core.CodeUnsupported, "sampling/createMessage")
	})
}

func TestAnAddressThatTheServerWantsOpenedIsShownAndTheCallRepeated(t *testing.T) {
	const wanted = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32042,"message":"log in first","data":{"elicitations":[{"mode":"url","elicitationId":"1","url":"https://example.com/login","message":"Log in"}]}}}`
	scripted(t, pack.Options{}, legacy, func(g *testHub, s *script, _ *running) {
		ada, m := g.begun(s)
		s.write(wanted, m.ID)
		q := ada.asked()
		if !strings.Contains(q.Text, "https://example.com/login") {
			t.Errorf("got %q, want the address", q.Text)
		}
		ada.reply(q, core.Reply{Selected: []string{"Done"}})
		s.answer(s.wants("tools/call"), `{"content":[{"type":"text","text":"welcome"}]}`)
		if got := ada.result(); string(got.Output) != `{"text":"welcome"}` {
			t.Errorf("got %+v, want the result of the second call", got)
		}
		got := g.start("x", `{}`) // nobody can be asked
		s.write(wanted, s.wants("tools/call").ID)
		wantFault(t, "without people", <-got, core.CodeInternal, "log in first")
	})
}

func TestAServerWithoutSubscriptionsIsAskedOnce(t *testing.T) {
	begin := func(s *script) {
		s.answer(s.wants("server/discover"), `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`)
		s.answer(s.wants("tools/list"), oneTool)
	}
	scripted(t, pack.Options{}, begin, func(g *testHub, s *script, _ *running) {
		refuse := func(code int) {
			s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no"}}`, s.wants("subscriptions/listen").ID, code)
		}
		refuse(-32603)
		refuse(-32601)
		time.Sleep(time.Hour)
		got := g.start("x", `{}`)
		s.answer(s.wants("tools/call"), `{"content":[]}`) // nothing was asked before it
		<-got
		if refused, none := g.counts.of("refused.stream"), g.counts.of("no_stream"); refused != 1 || none != 1 {
			t.Errorf("got %d refusals and %d servers without streams counted, want one of each", refused, none)
		}
	})
}

func TestASubscriptionThatTheServerEndsIsOpenedAgain(t *testing.T) {
	begin := func(s *script) {
		s.answer(s.wants("server/discover"), `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`)
		s.answer(s.wants("tools/list"), oneTool)
	}
	scripted(t, pack.Options{}, begin, func(g *testHub, s *script, _ *running) {
		m := s.wants("subscriptions/listen")
		s.write(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, m.ID)
		began := time.Now()
		again := s.wants("subscriptions/listen")
		if took := time.Since(began); took != time.Second || string(again.ID) == string(m.ID) {
			t.Errorf("got %+v after %s, want another subscription after 1s", again, took)
		}
		s.write(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{}}`)
		s.answer(s.wants("tools/list"), `{"tools":[{"name":"z"}]}`)
		g.await("p.z")
	})
}
