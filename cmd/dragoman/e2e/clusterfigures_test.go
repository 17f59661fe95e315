package e2e

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	nativeclient "github.com/dragoman-hub/dragoman/adapters/native/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

var clusterFigures = flag.Bool("cluster.figures", false, "measure what a cluster of three hubs costs")

func skipFigures(t *testing.T) {
	t.Helper()
	if !*clusterFigures {
		t.Skip("make bench-cluster measures")
	}
	load, _ := os.ReadFile("/proc/loadavg") // elsewhere it is not known
	t.Logf("the load of the machine: %s", strings.TrimSpace(string(load)))
}

// joinChunks joins a hub as a native agent that answers a number with as many chunks.
func (h *clusterHub) joinChunks(t *testing.T, id string) {
	t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	joined, ended := make(chan struct{}), make(chan error, 1)
	card := core.Card{ID: core.AgentID(id), MaxConcurrent: 256, Features: core.FeatureStreaming}
	go func() {
		ended <- service.Joins()["native"](ctx, client.Hub{URL: h.URL}, card, func(_ context.Context, r core.Request, say func(core.Body) error) error {
			n, err := strconv.Atoi(r.Content)
			for range n {
				if err := say(core.Text{Text: strings.Repeat("x", 60)}); err != nil {
					return err
				}
			}
			return err
		}, func(client.AskFunc) { close(joined) }, slog.New(slog.DiscardHandler))
	}()
	select {
	case <-joined:
	case err := <-ended:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		leave()
		<-ended
	})
}

// askNatively returns a client of the hub.
func (h *clusterHub) askNatively(t *testing.T) *nativeclient.Client {
	t.Helper()
	conn, err := client.DialWebSocket(t.Context(), client.Hub{URL: h.URL}, "/ws/native", nil, client.MaxNativeBytes)
	if err != nil {
		t.Fatal(err)
	}
	c := nativeclient.New(context.Background(), conn, nativeclient.Options{})
	t.Cleanup(c.Close)
	return c
}

// took asks an agent for chunks and returns how long the answer took.
func took(t *testing.T, c *nativeclient.Client, to string, chunks int) time.Duration {
	t.Helper()
	begin := time.Now()
	if _, err := c.Ask(t.Context(), core.Request{To: core.ToAgent(core.AgentID(to)), Content: strconv.Itoa(chunks)}, nil); err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}

// known waits until every hub knows the agents.
func (c hubCluster) known(t *testing.T, agents ...string) {
	t.Helper()
	for _, h := range c {
		for _, id := range agents {
			h.until("hub "+h.name+" knows "+id, func() error {
				var agent struct{ ID string }
				return h.Get(t.Context(), "/v1/agents/"+id, &agent)
			})
		}
	}
}

// roundTrip returns a function that measures a request of 256 bytes between clients of two NATS
// servers.
func roundTrip(t *testing.T) func() time.Duration {
	t.Helper()
	servers := startNATS(t, 3)
	var conns [2]*nats.Conn
	for i := range conns {
		var err error
		if conns[i], err = nats.Connect("nats://" + servers[i].addr); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conns[i].Close)
	}
	if _, err := conns[1].Subscribe("echo", func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		t.Fatal(err)
	}
	if err := conns[1].Flush(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // the interest travels to the other server
	data := make([]byte, 256)
	return func() time.Duration {
		begin := time.Now()
		if _, err := conns[0].Request("echo", data, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		return time.Since(begin)
	}
}

func median(all []time.Duration) time.Duration { return percentile(slices.Clone(all), 0.5) }

// What a question to an agent at another hub takes longer than one to an agent at the own hub,
// beside a NATS round trip; and how fast a long answer comes from there.
func TestFiguresOfQuestionsToAnotherHub(t *testing.T) {
	skipFigures(t)
	oneTrip := roundTrip(t)
	hubs := startCluster(t, 3)
	hubs[0].joinChunks(t, "near")
	hubs[1].joinChunks(t, "far")
	hubs.known(t, "near", "far")
	asker := hubs[0].askNatively(t)
	var added, trips [2][]time.Duration // by the percentile
	percentiles := [2]float64{0.5, 0.1}
	const rounds, questions = 15, 60
	for range rounds {
		var near, far, trip []time.Duration
		for range questions {
			near, far, trip = append(near, took(t, asker, "near", 1)), append(far, took(t, asker, "far", 1)), append(trip, oneTrip())
		}
		for i, p := range percentiles {
			added[i] = append(added[i], percentile(far, p)-percentile(near, p))
			trips[i] = append(trips[i], percentile(trip, p))
		}
	}
	for i, p := range percentiles {
		t.Logf("a question to another hub, p%.0f, median of %d rounds of %d: added %v; a NATS round trip of 256 bytes %v", 100*p, rounds, questions, median(added[i]), median(trips[i]))
	}

	const chunks = 20_000
	var ratios []float64
	for range 5 {
		n, f := took(t, asker, "near", chunks), took(t, asker, "far", chunks)
		t.Logf("%d chunks: here %.0f a second, from another hub %.0f", chunks, chunks/n.Seconds(), chunks/f.Seconds())
		ratios = append(ratios, float64(n)/float64(f))
	}
	slices.Sort(ratios)
	t.Logf("chunks a second from another hub to those from the own one: %.2f (median; %.2f to %.2f)", ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1])
}

// How many questions a second three hubs answer, each for agents of its own, and how many one hub
// alone, on the same machine and with the same number of askers.
func TestFiguresOfThreeHubsOverOne(t *testing.T) {
	skipFigures(t)
	alone := newHubs(t, 1)
	alone[0].args = slices.DeleteFunc(alone[0].args, func(a string) bool { return a == "--hub-name" || a == alone[0].name })
	alone[0].start()
	alone[0].untilReady()
	alone[0].joinChunks(t, "own-a")
	three := startCluster(t, 3)
	for _, h := range three {
		h.joinChunks(t, "own-"+h.name)
	}
	for _, askers := range []int{12, 96} {
		var ratios []float64
		for range 3 {
			one, all := alone.rate(t, askers), three.rate(t, askers)
			t.Logf("%d askers: one hub %.0f questions a second, three hubs %.0f", askers, one, all)
			ratios = append(ratios, all/one)
		}
		slices.Sort(ratios)
		t.Logf("%d askers: three hubs to one: %.2f (median)", askers, ratios[1])
	}
}

// rate returns how many questions a second the hubs answer to askers that are shared out to them.
func (c hubCluster) rate(t *testing.T, askers int) float64 {
	t.Helper()
	const span = 2 * time.Second
	var asking sync.WaitGroup
	counts := make([]int, askers)
	begin := time.Now()
	for i := range askers {
		h := c[i%len(c)]
		asker := h.askNatively(t)
		asking.Go(func() {
			for time.Since(begin) < span {
				if _, err := asker.Ask(t.Context(), core.Request{To: core.ToAgent(core.AgentID("own-" + h.name)), Content: "1"}, nil); err != nil {
					t.Error(err)
					return
				}
				counts[i]++
			}
		})
	}
	asking.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return float64(total) / time.Since(begin).Seconds()
}

// How long one more agent needs to join three hubs that have 10,000, and what the hubs tell each
// other at rest.
func TestFiguresOfManyAgentsOverThreeHubs(t *testing.T) {
	skipFigures(t)
	const agents, more = 9_900, 300
	hubs, between := startCountedCluster(t)
	var streams []wire.CovenControlClient
	for _, h := range hubs {
		for range 40 {
			cc, err := grpc.NewClient(h.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cc.Close() })
			streams = append(streams, wire.NewCovenControlClient(cc))
		}
	}
	ctx, leave := context.WithCancel(context.Background())
	t.Cleanup(leave)
	join := func(n int) error {
		at := streams[n%len(streams)]
		stream, err := at.AgentStream(ctx)
		if err == nil {
			err = stream.Send(&wire.AgentMessage{Payload: &wire.AgentMessage_Register{Register: &wire.RegisterAgent{
				AgentId: fmt.Sprintf("agent-%05d", n), Name: fmt.Sprintf("The agent %d", n), Capabilities: []string{"chat", "code"},
			}}})
		}
		if err != nil {
			return err
		}
		m, err := stream.Recv()
		if err == nil && m.GetWelcome() == nil {
			err = fmt.Errorf("got %v, want a welcome", m)
		}
		return err
	}
	const span = 10 * time.Second
	rest := func() float64 {
		before := between()
		time.Sleep(span)
		return float64(between()-before) / span.Seconds() / 1000
	}
	empty := rest()
	begin := time.Now()
	var joining sync.WaitGroup
	for w := range 60 {
		joining.Go(func() {
			for n := w; n < agents; n += 60 {
				if err := join(n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	joining.Wait()
	t.Logf("%d agents joined within %v", agents, time.Since(begin).Round(time.Millisecond))
	var all []time.Duration
	for n := range more {
		begin := time.Now()
		if err := join(agents + n); err != nil {
			t.Fatal(err)
		}
		all = append(all, time.Since(begin))
	}
	t.Logf("one more joins: p50 %v, p99 %v", percentile(all, 0.5), percentile(all, 0.99))
	for _, h := range hubs {
		h.until("hub "+h.name+" knows all", func() error {
			var agent struct{ ID string }
			return h.Get(t.Context(), fmt.Sprintf("/v1/agents/agent-%05d", agents+more-1), &agent)
		})
	}
	time.Sleep(2 * time.Second)
	full := rest()
	t.Logf("between the hubs at rest, of all six directions: %.1f KB/s without agents, %.1f KB/s with %d", empty, full, agents+more)
}

// startCountedCluster starts three hubs, and returns how many bytes went between them.
func startCountedCluster(t *testing.T) (hubCluster, func() int64) {
	t.Helper()
	hubs := newCluster(t, 3)
	proxies := hubs.throughProxies(t)
	hubs.start()
	return hubs, func() (n int64) {
		for _, p := range proxies {
			n += p.bytes.Load()
		}
		return n
	}
}
