package pack_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/pack"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/tool"
)

func TestGarbageIsSkippedAndCounted(t *testing.T) {
	scripted(t, pack.Options{}, legacy, func(g *testHub, s *script, _ *running) {
		got := g.start("x", `{}`)
		m := s.wants("tools/call")
		for _, line := range []string{"Server started on port 80", "", `{"level":"info"}`, `[]`, `{"jsonrpc":"1.0","id":7,"result":1}`} {
			s.write("%s", line)
		}
		s.write(`{"jsonrpc":"2.0","id":4711,"result":{}}`)
		s.write(`{"jsonrpc":"2.0","method":"notifications/unknown","params":{}}`)
		s.write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":4711,"progress":1}}`)
		s.answer(m, `{"content":[{"type":"text","text":"still here"}]}`)
		s.answer(m, `{"content":[{"type":"text","text":"twice"}]}`)
		if r := <-got; string(r.Output) != `{"text":"still here"}` {
			t.Errorf("got %+v, want the answer", r)
		}
		synctest.Wait()
		for name, want := range map[string]int{"garbage": 5, "ignored.response": 3, "ignored.notification": 1, "ignored.progress": 1} {
			if got := g.counts.of(name); got != want {
				t.Errorf("%s: got %d, want %d", name, got, want)
			}
		}
	})
}

func TestAnAnswerThatCannotBeReadFailsItsCallAtOnce(t *testing.T) {
	scripted(t, pack.Options{}, legacy, func(g *testHub, s *script, _ *running) {
		for _, answer := range []string{
			`{"jsonrpc":"2.0","id":%s,"result":{"a":1,"a":2}}`,
			`{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":""}}`,
			`{"jsonrpc":"2.0","id":%s,"error":"no"}`,
			`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"` + "\xff" + `"}]}}`,
		} {
			got := g.start("x", `{}`)
			s.write(answer, s.wants("tools/call").ID)
			wantFault(t, answer, <-got, core.CodeInternal, "cannot be read")
		}
	})
}

func TestAResultOverTheLimitFailsAndTheServerGoesOn(t *testing.T) {
	scripted(t, pack.Options{ResultBytes: 1000}, legacy, func(g *testHub, s *script, _ *running) {
		got := g.start("x", `{}`)
		s.answer(s.wants("tools/call"), `{"content":[{"type":"text","text":"`+strings.Repeat("x", 1000)+`"}]}`)
		wantFault(t, "a long result", <-got, core.CodeTooLarge, "1000")
		got = g.start("x", `{}`)
		s.answer(s.wants("tools/call"), `{"content":[]}`)
		if r := <-got; string(r.Output) != `{"text":""}` {
			t.Errorf("got %+v, want the next call answered", r)
		}
	})
}

func TestALineOverTheLimitOfTheConnectionFailsItsCallAlone(t *testing.T) {
	scripted(t, pack.Options{}, legacy, func(g *testHub, s *script, _ *running) {
		long := strings.Repeat("x", 200_000)
		first, second := g.start("x", `{}`), g.start("x", `{}`)
		m, other := s.wants("tools/call"), s.wants("tools/call")
		s.answer(m, `{"content":[{"type":"text","text":"`+long+`"}]}`) // its id is last
		s.answer(other, `{"content":[]}`)
		results := []*tool.Result{<-first, <-second}
		if results[0].Fault == nil {
			results[0], results[1] = results[1], results[0]
		}
		wantFault(t, "the long line", results[0], core.CodeTooLarge, "4194304")
		if results[1].Fault != nil {
			t.Errorf("the other call: got %v, want its result", results[1].Fault)
		}
		got := g.start("x", `{}`)
		s.write(`{"jsonrpc":"2.0","id":%s,"result":{"text":"%s"}}`, s.wants("tools/call").ID, long)
		wantFault(t, "with the id first", <-got, core.CodeTooLarge)
		got = g.start("x", `{}`)
		s.wants("tools/call")
		s.write(`{"jsonrpc":"2.0","result":{"text":"%s"}}`, long)
		wantFault(t, "without an id, while one call runs", <-got, core.CodeTooLarge)
		got = g.start("x", `{}`)
		m = s.wants("tools/call")
		s.write("%s", long)
		s.write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"%s"}}`, long)
		s.answer(m, `{"content":[]}`)
		if r := <-got; r.Fault != nil {
			t.Errorf("after a log and a notification over the limit: got %v, want the result", r.Fault)
		}
		if n := g.counts.of("too_large"); n != 5 {
			t.Errorf("got %d lines counted, want 5", n)
		}
	})
}

func TestACallEndsWithoutProgressAndAtItsMaximum(t *testing.T) {
	opts := pack.Options{Timeout: 10 * time.Second, MaxTime: 25 * time.Second}
	scripted(t, opts, legacy, func(g *testHub, s *script, _ *running) {
		began := time.Now()
		got := g.start("x", `{}`)
		m := s.wants("tools/call")
		if cancel := s.wants("notifications/cancelled"); string(cancel.Params.RequestID) != string(m.ID) || !strings.Contains(cancel.Params.Reason, "no progress") {
			t.Errorf("got %+v, want the call cancelled with the reason", cancel.Params)
		}
		wantFault(t, "without progress", <-got, core.CodeTimeout, "no progress for 10s")
		if took := time.Since(began); took != 10*time.Second {
			t.Errorf("got it after %s, want 10s", took)
		}

		began = time.Now()
		got = g.start("x", `{}`)
		m = s.wants("tools/call")
		for i := range 4 {
			time.Sleep(6 * time.Second)
			s.write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, m.ID, i+1)
		}
		wantFault(t, "with progress", <-got, core.CodeTimeout, "25s")
		if took := time.Since(began); took != 25*time.Second {
			t.Errorf("got it after %s, want 25s", took)
		}
		s.wants("notifications/cancelled")
	})
}

func TestOnlySoManyCallsRunAtOnce(t *testing.T) {
	scripted(t, pack.Options{Calls: 2}, legacy, func(g *testHub, s *script, _ *running) {
		results := []<-chan *tool.Result{g.start("x", `{}`), g.start("x", `{}`), g.start("x", `{}`)}
		first, second := s.wants("tools/call"), s.wants("tools/call")
		synctest.Wait()
		s.answer(first, `{"content":[]}`)
		third := s.wants("tools/call")
		s.answer(second, `{"content":[]}`)
		s.answer(third, `{"content":[]}`)
		for _, r := range results {
			if got := <-r; got.Fault != nil {
				t.Errorf("got %v, want an answer", got.Fault)
			}
		}
	})
}

func TestTheLatestProgressIsShownBeforeTheResult(t *testing.T) {
	scripted(t, pack.Options{}, legacy, func(g *testHub, s *script, _ *running) {
		caller := g.connect("b")
		caller.WatchProgress()
		caller.CallTool("c", "p.x", nil)
		m := s.wants("tools/call")
		for i := range 3 {
			s.write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":3}}`, m.ID, i+1)
		}
		s.answer(m, `{"content":[]}`)
		for last := ""; ; {
			b, err := caller.Next(g.t.Context())
			switch {
			case err != nil:
				t.Fatal(err)
			case b.Progress != nil:
				last = b.Progress.Detail
			case b.Tool != nil:
				if last != "3/3" {
					t.Errorf("got %q before the result, want 3/3", last)
				}
				return
			}
		}
	})
}

func TestProgressIsShownAFewTimesASecond(t *testing.T) {
	scripted(t, pack.Options{}, legacy, func(g *testHub, s *script, _ *running) {
		ada := g.connect("ada")
		to, _ := core.ParseAddress("a")
		task, err := ada.Open(core.Request{To: to, Content: "go"}, hub.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.caller.Report(task.ID(), core.ToolCall{ID: "c", Name: "p.x", Input: "{}"}, nil); err != nil {
			t.Fatal(err)
		}
		g.caller.CallTool("c", "p.x", nil)
		m := s.wants("tools/call")
		for i := range 10 {
			s.write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":10,"message":"step"}}`, m.ID, i+1)
		}
		s.write(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":10}}`, m.ID) // it does not rise
		time.Sleep(time.Second)
		s.answer(m, `{"content":[]}`)
		var details []string
		for len(details) == 0 || details[len(details)-1] != "step (10/10)" {
			b, err := ada.Next(g.t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range b.Events {
				if state, ok := e.Body.(core.ToolState); ok {
					details = append(details, state.Detail)
				}
			}
		}
		if len(details) > 2 {
			t.Errorf("got %q, want the first and the latest", details)
		}
		if err := g.caller.Report(task.ID(), core.Done{}, nil); err != nil {
			t.Error(err)
		}
	})
}
