//go:build unix

package nats_test

import (
	"context"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// The hub a leads the bucket of names and has a copy, and stands still: what goes to it is lost.
func TestNamesAreClaimedWhileAHubStandsStill(t *testing.T) {
	tier.Full(t, "it runs three servers")
	at := addresses(t, 3)
	a := startPlayed(t, player{Dir: t.TempDir(), At: at, Task: core.TaskID(core.NewID())})
	hubs := startOthers(t, at)
	go func() { // else it waits until somebody reads what it prints
		for a.out.Scan() {
		}
	}()
	leads(t, hubs["b"], "a", "KV_test-claims")
	if err := a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	var all sync.WaitGroup
	for hub, j := range hubs {
		for i := range 8 { // some of their requests go to a
			name := "agent." + hub + strconv.Itoa(i)
			all.Go(func() {
				never := func(string) bool { return false }
				if holder, err := j.Claims().Claim(ctx, name, hub, never); err != nil || holder != hub {
					t.Errorf("claiming %s: got the holder %q and %v, want %s", name, holder, err, hub)
				}
				if holder, err := j.Claims().Holder(ctx, name); err != nil || holder != hub && holder != "" {
					t.Errorf("reading who has %s: got %q and %v, want %s, or nobody yet", name, holder, err, hub)
				}
				if err := j.Claims().Release(ctx, name, hub); err != nil {
					t.Errorf("releasing %s: got %v, want no error", name, err)
				}
			})
		}
		all.Go(func() { othersElected(ctx, t, j, "a") })
	}
	all.Wait()
	t.Logf("claimed, read and released after %s", time.Since(stopped))
}
