package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
)

// questioned is what became of the questions of an asker.
type questioned struct {
	mu                sync.Mutex
	answered, refused int
	lost              []string // neither refused when it was asked, nor answered
}

// ask asks at one hub after the other until ctx ends, and goes on at the next one if it is refused.
func (a *questioned) ask(ctx context.Context, at hubCluster) {
	for i := 0; ctx.Err() == nil; {
		h := at[i%len(at)]
		var answer struct {
			ID     core.TaskID
			State  string
			Answer struct {
				Text  string
				Fault *core.Fault
			}
		}
		err := h.Post(context.WithoutCancel(ctx), "/v1/tasks?wait=true", map[string]any{"to": "capability:verse", "content": "hello"}, &answer)
		a.mu.Lock()
		switch {
		case err != nil:
			a.refused++
			i++
		case answer.State == "done" && answer.Answer.Text == "HELLO":
			a.answered++
		default:
			a.lost = append(a.lost, fmt.Sprintf("at %s: %+v", h.name, answer))
		}
		a.mu.Unlock()
	}
}

func (a *questioned) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.answered
}

// serveVerse runs an agent of a capability at a hub until ctx ends.
func serveVerse(ctx context.Context, h *clusterHub) {
	runWith(ctx, "", "agent", "--name", "verse-"+h.name, "--capability", "verse", "--hub", h.URL, "--", "tr", "a-z", "A-Z")
}

func TestHubsOfAClusterAreRefusedDrainedAndForgotten(t *testing.T) {
	all := startCluster(t, 3)
	t.Run("a second hub of a name is refused and told who has it", func(t *testing.T) { refusesASecondOfAName(t, all) })
	t.Run("a drain under load loses nothing", func(t *testing.T) { drainLosesNothing(t, all) })
	t.Run("a hub that is gone for good is forgotten", func(t *testing.T) { forgetsAHub(t, all) })
}

func drainLosesNothing(t *testing.T, all hubCluster) {
	a, b, c := all[0], all[1], all[2]
	var running sync.WaitGroup
	defer running.Wait()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for _, h := range all {
		running.Go(func() { serveVerse(ctx, h) })
	}
	for _, h := range all {
		h.until("three agents are known at "+h.name, func() error {
			var list struct{ Agents []struct{ ID string } }
			if err := h.Get(ctx, "/v1/agents", &list); err != nil || len(list.Agents) < 3 {
				return fmt.Errorf("%d agents, %w", len(list.Agents), err)
			}
			return nil
		})
	}
	load, stopLoad := context.WithCancel(ctx)
	defer stopLoad()
	total := &questioned{}
	var asking sync.WaitGroup
	for i := range 6 {
		at := hubCluster{all[i%3], all[(i+1)%3], all[(i+2)%3]}
		asking.Go(func() { total.ask(load, at) })
	}
	grows := func(by int) {
		t.Helper()
		from := total.count()
		a.until(fmt.Sprintf("%d more questions are answered", by), func() error {
			if n := total.count(); n < from+by {
				return fmt.Errorf("%d were", n-from)
			}
			return nil
		})
	}
	grows(30)
	if code, out, stderr := run(t, "drain", "--hub", b.URL); code != command.ExitDone || !strings.Contains(out, "the hub is empty") {
		t.Errorf("dragoman drain: got %d, %q and %q, want the hub empty", code, out, stderr)
	}
	for _, h := range []*clusterHub{a, c} {
		h.untilHubs(h.name+" sees that b drains", func(hubs []cluster.Hub) bool { return hubs[1].State == cluster.Draining })
	}
	if b.ready() {
		t.Error("the drained hub: got it ready, want it not")
	}
	var hub struct {
		Draining string
		Cluster  struct{ Hubs []cluster.Hub }
	}
	if err := b.Get(ctx, "/v1/hub", &hub); err != nil || hub.Draining == "" || hub.Cluster.Hubs[1].Tasks != 0 || hub.Cluster.Hubs[1].Agents != 0 {
		t.Errorf("the drained hub says %+v and %v of itself, want that it drains and has no tasks and no agents", hub, err)
	}
	grows(30)
	stopLoad()
	asking.Wait()
	if len(total.lost) > 0 {
		t.Errorf("of %d questions were lost: %q, want none", total.answered, total.lost)
	}
	t.Logf("answered: %d, refused and asked elsewhere: %d", total.answered, total.refused)
	if code := b.interrupt(); code != 0 {
		t.Errorf("stopping the drained hub: got the exit code %d, want 0", code)
	}
	b.start()
	all.untilAllUp()
}

func TestAHubAloneDrains(t *testing.T) {
	p := startHub(t)
	url := "http://" + p.http
	if code, out, stderr := run(t, "drain", "--hub", url, "--json"); code != command.ExitDone || !strings.Contains(out, `"id"`) {
		t.Errorf("dragoman drain: got %d, %q and %q, want the id of the hub", code, out, stderr)
	}
	resp, err := http.Get(url + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("/readyz: got %s, want 503", resp.Status)
	}
	if code, _, stderr := run(t, "ask", "x", "hello", "--hub", url); code != command.ExitFailed || !strings.Contains(stderr, "an operator drains it") {
		t.Errorf("a question: got %d and %q, want it refused with the reason", code, stderr)
	}
}

func forgetsAHub(t *testing.T, all hubCluster) {
	a, b, c := all[0], all[1], all[2]
	if code, _, stderr := run(t, "hubs", "forget", "c", "--hub", a.URL); code != command.ExitFailed || !strings.Contains(stderr, "the hub c is up") {
		t.Errorf("forgetting a hub that is up: got %d and %q, want it refused", code, stderr)
	}
	c.kill()
	a.untilHubs("c is taken over", func(hubs []cluster.Hub) bool { return hubs[2].TakenBy != nil })
	if code, out, stderr := run(t, "hubs", "forget", "c", "--hub", a.URL); code != command.ExitDone || !strings.Contains(out, "c no longer counts") {
		t.Errorf("forgetting it: got %d, %q and %q, want that it no longer counts", code, out, stderr)
	}
	two := func(hubs []cluster.Hub) bool { return len(hubs) == 2 }
	b.untilHubs("b has forgotten it, too", two)
	a.interrupt()
	a.start()
	a.untilReady()
	a.untilHubs("a remembers it after a restart", two)
	c.start()
	all.untilAllUp()
}

func refusesASecondOfAName(t *testing.T, all hubCluster) {
	second := &clusterHub{t: t, name: "a", dir: t.TempDir()}
	second.args = append(second.args, all[0].args...)
	second.args = append(second.args, "--data-dir", second.dir+"/data", "--http-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--pi-addr", "127.0.0.1:0", "--cluster-listen", fixedAddr(t))
	t.Cleanup(second.kill)
	second.start()
	if code := second.wait(); code != 1 {
		t.Errorf("got the exit code %d, want 1", code)
	}
	if log := second.log(); !strings.Contains(log, "another hub named a is running ("+all[0].route+")") {
		t.Errorf("got the log\n%swant it to say who has the name", log)
	}
	all.untilAllUp()
}
