package e2e

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// soakTasks is small in the ordinary run; "make soak" asks for 20,000.
var soakTasks = flag.Int("soak.tasks", 1000, "how many tasks the soak has")

// The soak asks agents that vanish, answer late, end twice, lose their session or
// never end, over real sockets, while others that do as they should are asked too.
// Behind it nothing is left: no task that runs, no slot that is taken, no agent that
// went, no goroutine.
func TestSoakLeavesNothingBehind(t *testing.T) {
	s := newStage(t, func(c *config.Config) {
		c.Limits.CancelGrace, c.Limits.SlotGrace, c.Coven.OrphanGrace = soakGrace, soakGrace, soakGrace/2
	})
	before := goleak.IgnoreCurrent()
	cc, err := grpc.NewClient(s.service.Addresses().GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	client := wire.NewCovenControlClient(cc)

	ctx, cancel := context.WithCancel(context.Background())
	var agents sync.WaitGroup
	to := []string{"capability:soaking"}
	for _, a := range soakAgents() {
		agents.Go(func() { a.live(ctx, client) })
		to = append(to, a.id)
	}
	leave := sync.OnceFunc(func() {
		cancel()
		agents.Wait()
		cc.Close()
	})
	defer leave()
	for _, a := range to[1:] {
		s.await(t, "joined "+a)
	}

	const askers, atOnce = 8, 16
	came := map[string]int{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for i := range askers {
		asking.Go(func() {
			mine, err := soakAsker(ctx, client, fmt.Sprintf("asker %d", i), to, *soakTasks/askers, atOnce)
			mu.Lock()
			defer mu.Unlock()
			for code, n := range mine {
				came[code] += n
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	t.Logf("what became of the tasks: %v", came)
	total := 0
	for code, n := range came {
		total += n
		if want := []string{"", "internal", "timeout", "unreachable", "unknown_agent", "overloaded"}; !slices.Contains(want, code) {
			t.Errorf("%d came to %q, want one of %q", n, code, want)
		}
	}
	if want := *soakTasks / askers * askers; total != want || came[""] == 0 || came["timeout"] == 0 || came["unreachable"] == 0 {
		t.Errorf("got %d results, want all %d, answers, timeouts and lost agents among them", total, want)
	}

	// A result comes when its task has ended: no task runs any more. Its agent may
	// hold on to it for a while.
	eventually(t, "every slot is free", func() error {
		for _, a := range s.service.Hub().Agents() {
			if a.Load.Active+a.Load.Queued > 0 {
				return fmt.Errorf("agent %s has %d tasks and %d wait for it", a.ID, a.Load.Active, a.Load.Queued)
			}
		}
		return nil
	})
	leave()
	eventually(t, "every agent has left", func() error {
		if all := s.service.Hub().Agents(); len(all) > 0 {
			return fmt.Errorf("%d are here, such as %s", len(all), all[0].ID)
		}
		return nil
	})
	eventually(t, "every goroutine has ended", func() error { return goleak.Find(before) })
}

// toolErrorCode is the code at the beginning of the error of a tool; "" of no error.
func toolErrorCode(text string) string {
	code, _, _ := strings.Cut(text, ": ")
	if text != "" && !slices.Contains(core.Codes(), core.Code(code)) {
		return text
	}
	return code
}

// eventually waits until something holds that nothing tells of.
func eventually(t *testing.T, what string, holds func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := holds()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited in vain until %s: %v", what, err)
		}
	}
}
