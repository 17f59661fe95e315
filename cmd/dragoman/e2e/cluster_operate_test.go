package e2e

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core/cluster"
)

func TestHubsOfAClusterAreRefusedAndForgotten(t *testing.T) {
	t.Parallel()
	all := startCluster(t, 3)
	t.Run("a second hub of a name is refused and told who has it", func(t *testing.T) { refusesASecondOfAName(t, all) })
	t.Run("a hub that is gone for good is forgotten", func(t *testing.T) { forgetsAHub(t, all) })
}

func TestAHubAloneDrains(t *testing.T) {
	t.Parallel()
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

func TestADrainIsNotAwaitedForLongerThanItsTimeout(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, nil)
	h.startAgentOf(t, "worker")
	key := h.key()
	h.delegate(t, "worker", "hang "+key)
	h.await(t, key+" begun")
	h.wantOutput(t, command.ExitUsage, "want at least 1ms", "drain", "--timeout", "0")
	h.wantOutput(t, command.ExitTimeout, "the hub was not empty within 50ms", "drain", "--timeout", "50ms")
	h.wantOutput(t, command.ExitFailed, "an operator drains it", "ask", "worker", "say "+h.key())
	h.signal(key+" released", nil)
	h.wantOutput(t, command.ExitDone, "the hub is empty", "drain", "--timeout", "1m")
}

func TestAHubThatWaitsForOthersCanBeStopped(t *testing.T) {
	t.Parallel()
	h := newCluster(t, 3)[0]
	h.start()
	h.until("it waits", func() error { return notYet(strings.Contains(h.log(), "waiting for the first start"), "it does not") })
	if code := h.interrupt(); code != 0 {
		t.Errorf("got the exit code %d, want 0", code)
	}
	if log := h.log(); strings.Contains(log, "Waiting for routing") {
		t.Errorf("got the log\n%swant it to say once what it waits for", log)
	}
}

func TestHubsOfDifferentClustersSayThatTheyAre(t *testing.T) {
	t.Parallel()
	all := newCluster(t, 3)
	a, b := all[0], all[1]
	b.addConfig("  name: other\n")
	a.start()
	b.start()
	a.untilLogged(`hub b at ` + b.route + ` is in the cluster \"other\", but this hub is in \"dragoman\"`)
	b.untilLogged(`hub a at ` + a.route + ` is in the cluster \"dragoman\", but this hub is in \"other\"`)
}

func TestAllHubsAreStoppedAtOnce(t *testing.T) {
	t.Parallel()
	all := startCluster(t, 3)
	for _, h := range all { // reading the audit waits until every entry so far is stored
		if code, _, stderr := run(t, "audit", "--hub", h.URL); code != command.ExitDone {
			t.Fatalf("reading the audit of hub %s: got %d and %q, want its entries", h.name, code, stderr)
		}
	}
	for _, h := range all {
		h.signal(syscall.SIGTERM)
	}
	for _, h := range all {
		if code := h.wait(); code != 0 {
			t.Errorf("hub %s: got the exit code %d, want 0", h.name, code)
		}
		if log := h.log(); strings.Contains(log, "entries that are lost") || !strings.Contains(log, "the hub has stopped") {
			t.Errorf("hub %s: got the log\n%swant it stopped with nothing of value lost", h.name, log)
		}
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
