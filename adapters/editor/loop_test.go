package editor_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/editor"
	editorclient "github.com/dragoman-hub/dragoman/adapters/editor/client"
	"github.com/dragoman-hub/dragoman/core"
	coreagent "github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/task"
)

// An agent whose command is dragoman editor may lead back to the hub, directly or by another one.
func TestAnAgentThatIsTheHubItselfEndsInALoop(t *testing.T) {
	withHub(t, func(s *setup) {
		ctx, stop := context.WithCancel(context.Background())
		var running sync.WaitGroup
		defer running.Wait()
		defer stop()
		a := editorclient.New(editorclient.Options{Dir: "/", Dial: func(context.Context, ...string) (link.Conn[[]byte, []byte], error) {
			ours, theirs := coretest.Pipe[[]byte, []byte](0)
			running.Go(func() {
				editor.Serve(ctx, s.hub, theirs, editor.Options{Agent: core.ToAgent("mirror"), Principal: core.Principal{ID: "bridge", Dialect: editor.Dialect}})
			})
			return ours, nil
		}})
		session := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "mirror", Dialect: editor.Dialect}, Dialect: editor.Dialect})
		defer session.Close(nil)
		if err := session.Join(core.Card{ID: "mirror", Dialect: editor.Dialect, MaxConcurrent: 100}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		ready := make(chan struct{})
		running.Go(func() { _ = a.Run(ctx, func(coreagent.Profile) { close(ready) }) })
		<-ready
		running.Go(func() { _ = coretest.Serve(ctx, session, a, nil) })

		user := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "user"}, Dialect: "test"})
		defer user.Close(nil)
		asked, err := user.Open(core.Request{Intent: core.IntentAsk, To: core.ToAgent("mirror"), Content: "hi"}, hub.OpenOptions{Unwatched: true})
		if err != nil {
			t.Fatal(err)
		}
		user.AwaitEnd(asked)
		if _, err := user.Next(ctx); err != nil {
			t.Fatal(err)
		}
		if got := asked.Answer(); got.Fault == nil || got.Fault.Code == core.CodeTimeout {
			t.Errorf("got %+v, want it failed as a loop", got)
		}
		page, err := s.hub.Tasks(ctx, core.Principal{ID: "operator", Operator: true}, task.Filter{Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		var hops []int
		for _, one := range slices.Backward(page.Tasks) {
			hops = append(hops, one.Hops)
		}
		if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(hops, want) {
			t.Errorf("got tasks with %v hops, want %v, of which the last is refused", hops, want)
		}
	})
}
