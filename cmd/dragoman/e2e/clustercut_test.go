package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
)

// startCutCluster starts three hubs between which all connections lead through proxies. cut takes
// the hub c away from the others, and heal brings it back.
func startCutCluster(t *testing.T) (hubs hubCluster, cut, heal func()) {
	t.Helper()
	hubs = newCluster(t, 3)
	var toAndFrom []*proxy // of c
	for way, p := range hubs.throughProxies(t) {
		if strings.Contains(way, "c") || strings.HasPrefix(way, "to ") {
			toAndFrom = append(toAndFrom, p)
		}
	}
	hubs.start()
	return hubs, func() {
			for _, p := range toAndFrom {
				p.refuse(true)
			}
		}, func() {
			for _, p := range toAndFrom {
				p.refuse(false)
			}
		}
}

// throughProxies leads all connections between hubs that have not started yet through proxies: "ab"
// is the way from a to b, and "to a" that to the address that the hubs tell each other.
func (c hubCluster) throughProxies(t testing.TB) map[string]*proxy {
	t.Helper()
	all := map[string]*proxy{}
	for _, h := range c {
		var peers []string
		for _, other := range c {
			if other != h {
				p := newProxy(t, other.route)
				all[h.name+other.name] = p
				peers = append(peers, p.addr())
			}
		}
		advertised := newProxy(t, h.route)
		all["to "+h.name] = advertised
		h.args[slices.Index(h.args, "--cluster-peers")+1] = strings.Join(peers, ",")
		h.addConfig("  advertise: " + advertised.addr() + "\n")
	}
	return all
}

// A hub that is cut off from the others takes nothing new and shows no ends. Its tasks end once, at
// the others, and once it hears them again it shows those ends.
func TestRoutesBetweenHubsAreCut(t *testing.T) {
	t.Parallel()
	hubs, cut, heal := startCutCluster(t)
	load := startLoad(hubs)
	t.Cleanup(func() { load.stop() })
	hubs.untilAgents(t)
	load.untilTold(t, 10)
	c := hubs[2]

	// A task of c, with a reader at c that sees text and no end.
	var task struct{ ID core.TaskID }
	if err := c.Post(t.Context(), "/v1/tasks", map[string]string{"to": "probe-c", "content": "long"}, &task); err != nil {
		t.Fatal(err)
	}
	there := &clusterReader{task: task.ID}
	read := make(chan error, 1)
	go func() { read <- there.read(t.Context(), c) }()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	elsewhere, readElsewhere, begun := &clusterReader{task: task.ID}, make(chan error, 1), make(chan string, 1)
	elsewhere.each = sync.OnceFunc(func() { begun <- "" })
	go func() { readElsewhere <- elsewhere.readToEnd(ctx, hubs[0]) }()
	wait(ctx, t, begun)

	cut()
	c.until("c takes nothing new", func() error {
		err := c.Post(t.Context(), "/v1/tasks", map[string]string{"to": "probe-c", "content": "now"}, &struct{}{})
		if f := (*core.Fault)(nil); !errors.As(err, &f) || f.Code != core.CodeOverloaded {
			return fmt.Errorf("got %w, want it overloaded", err)
		}
		return nil
	})
	if resp, err := c.HTTP.Get(c.URL + "/readyz"); err != nil || resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("/readyz of a hub that is cut off: got %v and %v, want 503", resp, err)
	} else {
		resp.Body.Close()
	}
	for _, h := range hubs[:2] {
		h.untilHubs(h.name+" knows who has taken c over", func(all []cluster.Hub) bool { return stateOf(all, "c").TakenBy != nil })
	}
	load.untilTold(t, 10) // the majority goes on
	if err := <-readElsewhere; err != nil || !strings.Contains(elsewhere.end, `"unreachable"`) {
		t.Errorf("the task at a: got %q and %v, want that it is unreachable", elsewhere.end, err)
	}
	select {
	case err := <-read:
		t.Errorf("the reader at c: got %q and %v, want no end before c hears the others", there.end, err)
	default:
	}

	heal()
	hubs.untilAllUp()
	<-read
	if there.end != "" && there.end != elsewhere.end {
		t.Errorf("the reader at c was told %q, the one at a %q", there.end, elsewhere.end)
	}
	hubs.untilAgents(t)
	load.settle(t)
}
