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

// soakTasks is small in an ordinary run; "make soak" sets 20,000.
var soakTasks = flag.Int("soak.tasks", 1000, "how many tasks the soak has")

// The soak asks agents over real sockets that disconnect, answer late, end twice, lose their
// session or never end, while others behave well. Afterwards nothing is left: no running task, no
// used slot, no agent, no goroutine.
func TestSoakLeavesNothingBehind(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) {
		c.Limits.CancelGrace, c.Limits.SlotGrace, c.Coven.OrphanGrace = soakGrace, soakGrace, soakGrace/2
	})
	before := goleak.IgnoreCurrent()
	cc, err := grpc.NewClient(h.service.Addresses().GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	client := wire.NewCovenControlClient(cc)

	ctx, cancel := context.WithCancel(context.Background())
	var agents sync.WaitGroup
	to := []string{"capability:soaking"}
	for _, a := range soakAgents() {
		agents.Go(func() { a.run(ctx, client) })
		to = append(to, a.id)
	}
	leave := sync.OnceFunc(func() {
		cancel()
		agents.Wait()
		cc.Close()
	})
	defer leave()
	for _, a := range to[1:] {
		h.await(t, "joined "+a)
	}

	const askers, atOnce = 8, 16
	received := map[string]int{}
	var mu sync.Mutex
	var asking sync.WaitGroup
	for i := range askers {
		asking.Go(func() {
			mine, err := soakAsker(ctx, client, fmt.Sprintf("asker %d", i), to, *soakTasks/askers, atOnce)
			mu.Lock()
			defer mu.Unlock()
			for code, n := range mine {
				received[code] += n
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	t.Logf("outcomes of the tasks: %v", received)
	total := 0
	for code, n := range received {
		total += n
		if want := []string{"", "internal", "timeout", "unreachable", "unknown_agent", "overloaded"}; !slices.Contains(want, code) {
			t.Errorf("%d outcomes %q, want one of %q", n, code, want)
		}
	}
	if want := *soakTasks / askers * askers; total != want || received[""] == 0 || received["timeout"] == 0 || received["unreachable"] == 0 {
		t.Errorf("got %d results, want all %d, answers, timeouts and lost agents among them", total, want)
	}

	// A result comes after the end of its task: no task is running. Its agent may take longer.
	eventually(t, "every slot is free", func() error {
		for _, a := range h.service.Hub().Agents(core.Principal{Operator: true}) {
			if a.Load.Active+a.Load.Queued > 0 {
				return fmt.Errorf("agent %s has %d tasks and %d wait for it", a.ID, a.Load.Active, a.Load.Queued)
			}
		}
		return nil
	})
	leave()
	eventually(t, "every agent has left", func() error {
		if all := h.service.Hub().Agents(core.Principal{Operator: true}); len(all) > 0 {
			return fmt.Errorf("%d are here, such as %s", len(all), all[0].ID)
		}
		return nil
	})
	eventually(t, "every goroutine has ended", func() error { return goleak.Find(before) })
}

// toolErrorCode returns the code at the beginning of a tool's error; "" for no error.
func toolErrorCode(text string) string {
	code, _, _ := strings.Cut(text, ": ")
	if text != "" && !slices.Contains(core.Codes(), core.Code(code)) {
		return text
	}
	return code
}

// eventually polls until a condition holds that has no signal.
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
			t.Fatalf("waited until %s: %v", what, err)
		}
	}
}
