package link_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

func TestPingReportsWhetherThePeerIsAlive(t *testing.T) {
	for _, c := range []struct {
		name  string
		peer  func(context.Context, *coretest.End[string, string])
		alive bool
	}{
		{"a peer that receives", func(ctx context.Context, p *coretest.End[string, string]) { p.Receive(ctx) }, true},
		{"a peer that sends a message instead", func(ctx context.Context, p *coretest.End[string, string]) {
			<-time.After(time.Second)
			p.Send(ctx, "here")
		}, true},
		{"a peer that does nothing", func(context.Context, *coretest.End[string, string]) {}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := coretest.Pipe[string, string](0)
				l := link.New(near, link.Options{PingEvery: time.Hour})
				go l.Run(t.Context(), func(context.Context, string) error { return nil }, nil)
				go c.peer(t.Context(), far)
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				if err := l.Ping(ctx); (err == nil) != c.alive {
					t.Errorf("got %v, want alive: %v", err, c.alive)
				}
				l.Close(link.Reason{Cause: link.Normal})
				synctest.Wait()
			})
		})
	}
}
