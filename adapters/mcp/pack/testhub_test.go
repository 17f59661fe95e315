package pack_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/pack"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/tool"
	"github.com/dragoman-hub/dragoman/schemas"
)

// testHub is a hub with a pack under test, and an agent that calls its tools.
type testHub struct {
	t       *testing.T
	hub     *hub.Hub
	session *hub.Session // of the pack
	caller  *hub.Session // an agent
	counts  counts
}

func newHub(t *testing.T) *testHub {
	t.Helper()
	h := coretest.NewHub(t, hub.Options{Schema: schemas.Compile})
	g := &testHub{t: t, hub: h}
	g.session = g.connect("the pack")
	g.caller = g.connect("a")
	card := core.Card{ID: "a", Dialect: "test", Features: core.FeatureStreaming | core.FeatureCancellation | core.FeatureToolStates, MaxConcurrent: 8}
	if err := g.caller.Join(card, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *testHub) connect(id string) *hub.Session {
	s := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: id}, Dialect: "test"})
	g.t.Cleanup(func() { s.Close(nil) })
	return s
}

// counts are the counters of a pack.
type counts struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counts) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[name]++
}

func (c *counts) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n["mcp.pack."+name]
}

// pack returns a pack named p. It answers no calls after the test.
func (g *testHub) pack(opts pack.Options) *pack.Pack {
	g.t.Helper()
	opts.Name, opts.Version, opts.Count = "p", "1.2.3", g.counts.add
	p, err := pack.New(opts)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(p.Stop)
	return p
}

// running is a pack that runs.
type running struct {
	t    *testing.T
	stop context.CancelFunc
	end  chan error
}

// run runs the pack until it is ready.
func (g *testHub) run(p *pack.Pack) *running {
	g.t.Helper()
	ctx, cancel := context.WithCancel(g.t.Context())
	r := &running{g.t, cancel, make(chan error, 1)}
	ready := make(chan struct{})
	go func() { r.end <- p.Run(ctx, g.session, func() { close(ready) }) }()
	g.t.Cleanup(func() { cancel(); <-r.end; r.end <- nil })
	select {
	case <-ready:
	case err := <-r.end:
		r.end <- err
		g.t.Fatalf("got the end of the run: %v, want it ready", err)
	}
	return r
}

// wait returns why the run ended.
func (r *running) wait() error {
	err := <-r.end
	r.end <- err
	return err
}

// call calls a tool of the pack and returns its result.
func (g *testHub) call(name, input string) *tool.Result {
	g.t.Helper()
	r, err := g.caller.Call(g.t.Context(), "p."+name, json.RawMessage(input))
	if err != nil {
		g.t.Fatalf("calling %s: got %v, want a result", name, err)
	}
	return r
}

func (g *testHub) wantOutput(name, input, want string) {
	g.t.Helper()
	r := g.call(name, input)
	if r.Fault != nil || string(r.Output) != want {
		g.t.Errorf("%s %s: got %s and %v, want %s", name, input, r.Output, r.Fault, want)
	}
}

func (g *testHub) wantFault(name, input string, code core.Code, words ...string) {
	g.t.Helper()
	wantFault(g.t, name, g.call(name, input), code, words...)
}

func wantFault(t *testing.T, name string, r *tool.Result, code core.Code, words ...string) {
	t.Helper()
	if r.Fault == nil || r.Fault.Code != code {
		t.Errorf("%s: got %s and %v, want the fault %s", name, r.Output, r.Fault, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(r.Fault.Message, w) {
			t.Errorf("%s: got %q, want it to say %q", name, r.Fault.Message, w)
		}
	}
}

// tools returns the names of the tools of packs, in order.
func (g *testHub) tools() string {
	var names []string
	for _, d := range g.caller.Tools()[len(g.hub.Tools()):] {
		names = append(names, d.Name)
	}
	return strings.Join(names, " ")
}

// await waits until the tools of packs are those.
func (g *testHub) await(want string) {
	g.t.Helper()
	g.caller.WatchTools()
	for g.tools() != want {
		ctx, cancel := context.WithTimeout(g.t.Context(), time.Minute)
		_, err := g.caller.Next(ctx)
		cancel()
		if err != nil {
			g.t.Fatalf("got the tools %q, want %q", g.tools(), want)
		}
	}
}

// dial returns an Options.Dial that gives each connection to a new server.
func dial(serve func(conn *coretest.End[[]byte, []byte])) func(context.Context, ...string) (link.Conn[[]byte, []byte], error) {
	return func(context.Context, ...string) (link.Conn[[]byte, []byte], error) {
		hubEnd, serverEnd := coretest.Pipe[[]byte, []byte](0)
		serve(serverEnd)
		return hubEnd, nil
	}
}
