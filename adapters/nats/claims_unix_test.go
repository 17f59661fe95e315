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
)

// joining is how long an agent that joins waits until its name is claimed.
const joining = 10 * time.Second

// The hub a leads the bucket of names and has a copy, and stands still: what goes to it is lost.
func TestNamesAreClaimedWhileAHubStandsStill(t *testing.T) {
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
	var claiming, electing sync.WaitGroup
	for hub, j := range hubs {
		for i := range 8 { // some of their requests go to a
			name := "agent." + hub + strconv.Itoa(i)
			claiming.Go(func() {
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
		electing.Go(func() { othersElected(ctx, t, j, "a") })
	}
	claiming.Wait()
	if took := time.Since(stopped); took > joining {
		t.Errorf("got all names claimed, read and released after %s, want it within %s", took, joining)
	}
	electing.Wait()
}
