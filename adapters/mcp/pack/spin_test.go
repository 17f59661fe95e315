package pack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/pack"
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
