package pack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/pack"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// A server whose every answer makes the hub ask again must not keep the hub, or its clients, busy.

func TestAServerWhoseEveryListIsFollowedByAChangeIsListedAFewTimesASecond(t *testing.T) {
	for name, tools := range map[string]func(n int64) string{
		"the same tools": func(int64) string { return oneTool },
		"other tools":    func(n int64) string { return fmt.Sprintf(`{"tools":[{"name":"x%d"}]}`, n) },
	} {
		t.Run(name, func(t *testing.T) {
			const spell = time.Minute
			const least, most = 5, 3 * int64(spell/time.Second)
			var lists atomic.Int64
			begin := func(s *script) {
				s.begin(tools(0))
				for lists.Load() <= most { // else the time would never pass
					s.write(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
					line, err := s.end.Receive(context.Background())
					if err != nil {
						return
					}
					var m message
					if err := json.Unmarshal(line, &m); err != nil || m.Method != "tools/list" {
						s.t.Errorf("got %s, want tools/list", line)
						return
					}
					s.answer(m, tools(lists.Add(1)))
				}
			}
			scripted(t, pack.Options{}, begin, func(g *testHub, s *script, r *running) {
				told := 0
				g.caller.WatchTools()
				ctx, cancel := context.WithTimeout(g.t.Context(), spell)
				defer cancel()
				for {
					b, err := g.caller.Next(ctx)
					if err != nil {
						break
					}
					if b.ToolsChanged {
						told++
					}
				}
				synctest.Wait()
				n := lists.Load()
				if n < least || n > most {
					t.Errorf("got %d lists in %v, want %d to %d", n, spell, least, most)
				}
				if name == "the same tools" && told > 0 || told > int(n) {
					t.Errorf("got a client told %d times of %d lists with %s, want it told only of what changed", told, n, name)
				}
				r.stop()
				_ = r.wait() // before the server ends
			})
		})
	}
}

func TestAServerThatAsksAgainAtEachAnswerIsAnsweredAFewTimesASecond(t *testing.T) {
	const spell = time.Minute
	const least, most = 5, 3 * int(spell/time.Second)
	scripted(t, pack.Options{Timeout: spell, MaxTime: spell}, legacy, func(g *testHub, s *script, _ *running) {
		began := time.Now()
		got := g.start("x", `{}`)
		s.wants("tools/call")
		asked := 0
		for over := false; asked <= most && !over; asked++ {
			s.write(`{"jsonrpc":"2.0","id":%d,"method":"elicitation/create","params":{"message":"Who?"}}`, asked)
			m := s.read()
			over = time.Since(began) >= spell // what is asked from then on is answered at once, until the server hears of it
			for over && m.Method != "notifications/cancelled" {
				m = s.read()
			}
		}
		if took := time.Since(began); asked < least || asked > most {
			t.Errorf("got %d questions answered in %v, want %d to %d", asked, took, least, most)
		}
		<-got
	})
}

// Over HTTP the changes come on a stream, and a call may be a stream that is cut again and again.
func TestAServerOverHTTPThatMakesTheHubAskAgainIsAskedMoreAndMoreSeldom(t *testing.T) {
	tier.Full(t, "waits for real pauses")
	const times = 6
	lists, resumes := make(chan time.Time, 64), make(chan time.Time, 64)
	var id json.RawMessage
	n := 0
	e := &endpoint{answer: func(w http.ResponseWriter, _ *http.Request, m message) {
		id = m.ID
		stream(w)("id: 0\nretry: 0\ndata:\n\n")
	}}
	e.resume = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Last-Event-ID") != "" { // each time with a new place to go on from
			resumes <- time.Now()
			if n++; n == times {
				stream(w)("data: "+textResult+"\n\n", id, "done")
				return
			}
			stream(w)("id: %d\nretry: 0\ndata:\n\n", n)
			return
		}
		write := stream(w)
		write(": begins\n\n")
		for {
			e.mu.Lock()
			listed := len(e.requests)
			for _, request := range e.requests {
				if request != "POST tools/list" {
					listed--
				}
			}
			e.mu.Unlock()
			if listed > len(lists) {
				lists <- time.Now()
				write("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
			}
			select {
			case <-time.After(time.Millisecond):
			case <-r.Context().Done():
				return
			}
		}
	}
	g, r := e.serve(t, pack.Options{})
	g.wantOutput("x", `{}`, `{"text":"done"}`)
	for len(lists) < times {
		<-time.After(10 * time.Millisecond)
	}
	r.stop()
	_ = r.wait()
	for what, c := range map[string]struct {
		at    chan time.Time
		least time.Duration
	}{"lists": {lists, 1500 * time.Millisecond}, "resumed streams": {resumes, 1500 * time.Millisecond}} {
		first := <-c.at
		last := first
		for range times - 1 {
			last = <-c.at
		}
		if took := last.Sub(first); took < c.least {
			t.Errorf("got %d %s within %v, want at least %v between the first and the last", times, what, took, c.least)
		}
	}
}
