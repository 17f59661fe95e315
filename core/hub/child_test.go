package hub_test

import (
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// The race detector shows whether the two are apart.
func TestASessionMayBeExpelledWhileItMakesChildren(t *testing.T) {
	g := &testHub{t, hub.New(hub.Options{})}
	t.Cleanup(func() {
		if err := g.hub.Close(t.Context(), "over"); err != nil {
			t.Error(err)
		}
	})
	for range 300 {
		g.hub.Expel(func(core.Principal) bool { return true })
		parent := g.as("alice")
		var expelling sync.WaitGroup
		expelling.Go(func() {
			for range 3 {
				g.hub.Expel(func(core.Principal) bool { return false })
			}
		})
		for range 3 {
			parent.Child().Close(nil)
		}
		expelling.Wait()
	}
}
