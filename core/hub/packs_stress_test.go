package hub_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// TestEveryCallIsAnsweredOnce runs packs that connect, answer, stay silent, change and
// disconnect while callers call and leave.
func TestEveryCallIsAnsweredOnce(t *testing.T) {
	const callers, calls, packs = 8, 300, 3
	h := coretest.NewHub(t, hub.Options{Limits: hub.Limits{PackCalls: 16, ToolTimeout: 5 * time.Millisecond}})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var playing sync.WaitGroup
	for i := range packs {
		playing.Go(func() {
			for round := 0; ctx.Err() == nil; round++ {
				playPack(ctx, t, h, fmt.Sprint("p", i), round)
			}
		})
	}
	watcher := h.Connect(hub.Identity{Principal: core.Principal{ID: "watcher"}})
	watcher.WatchTools()
	var calling sync.WaitGroup
	for i := range callers {
		calling.Go(func() {
			s := h.Connect(hub.Identity{Principal: core.Principal{ID: fmt.Sprint("c", i)}})
			defer s.Close(nil)
			outstanding := map[string]bool{}
			for n := range calls {
				call := fmt.Sprint(n)
				outstanding[call] = true
				s.CallTool(call, fmt.Sprintf("p%d_tool", n%packs), []byte(`{"n":1}`))
				for len(outstanding) > 4 || n == calls-1 && len(outstanding) > 0 {
					b, err := s.Next(t.Context())
					if err != nil || b.Tool == nil || !outstanding[b.Tool.Call] || (b.Tool.Fault == nil) == (b.Tool.Output == nil) {
						t.Errorf("got %+v and %v, want the one answer to a call", b.Tool, err)
						return
					}
					delete(outstanding, b.Tool.Call)
				}
			}
		})
	}
	calling.Wait()
	stop()
	playing.Wait()
	if b, err := watcher.Next(t.Context()); err != nil || !b.ToolsChanged {
		t.Errorf("got %+v and %v, want ToolsChanged", b, err)
	}
	if got := watcher.Tools(); len(got) != len(h.Tools()) {
		t.Errorf("got %d tools, want the hub's own after all packs left", len(got))
	}
	watcher.Close(nil)
}

// playPack runs a pack that answers most of its calls.
func playPack(ctx context.Context, t *testing.T, h *hub.Hub, id string, round int) {
	s := h.Connect(hub.Identity{Principal: core.Principal{ID: id}})
	defer s.Close(nil)
	tools := []tool.Definition{packTool(id + "_tool")}
	if err := s.Provide(id, tools); err != nil {
		t.Errorf("providing %s: got %v, want no error", id, err)
	}
	for n := range 10 + round%20 {
		b, err := s.Next(ctx)
		switch {
		case err != nil:
			return
		case n%7 == 3 || b.Execute == nil: // silence
		case n%7 == 5:
			_ = s.AnswerTool(b.Execute.ID, tool.Result{Fault: core.NewFault(core.CodeInternal, "no")})
		case n%11 == 6:
			if err := s.Provide(id, append(tools, packTool(id+"_more"))); err != nil {
				t.Errorf("changing %s: got %v, want no error", id, err)
			}
		default:
			_ = s.AnswerTool(b.Execute.ID, tool.Result{Output: b.Execute.Input}) // it may be too late
		}
	}
}
