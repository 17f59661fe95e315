package pack_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/adapters/mcp/pack"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// mcp serves the tools of the hub over MCP, and returns its address.
func (g *testHub) mcp() string {
	g.t.Helper()
	s := mcp.New(g.hub, mcp.Options{Anonymous: core.Principal{ID: "anybody"}})
	server := httptest.NewServer(s)
	g.t.Cleanup(func() {
		s.Close()
		server.Close()
	})
	return server.URL + mcp.Path
}

// A hub would offer each of its own tools again under a longer name, and a call would start at zero
// hops.
func TestAHubIsNoPackOfItself(t *testing.T) {
	g := newHub(t)
	err := g.packOf(g.mcp()).Run(t.Context(), g.session, func() { t.Error("got it ready, want it refused") })
	if f := core.AsFault(err); f == nil || f.Code != core.CodeUnsupported || !strings.Contains(f.Message, "is this hub, which would call itself") {
		t.Errorf("got %v, want an error that says that it is this hub", err)
	}
	if got := g.tools(); got != "" {
		t.Errorf("got the tools %s, want none", got)
	}
}

// Two hubs may use the tools of each other, but none gets its own back.
func TestToolsDoNotComeBackToTheirHub(t *testing.T) {
	here, there := newHub(t), newHub(t)
	var names []string
	for _, d := range here.hub.Tools() {
		names = append(names, "p."+d.Name)
	}
	slices.Sort(names)
	own := strings.Join(names, " ")
	url := there.mcp()
	there.run(there.packOf(here.mcp()))
	if got := there.tools(); got != own {
		t.Errorf("got the tools %s there, want %s", got, own)
	}
	here.run(here.packOf(url)) // which lists its own, those of here, and what it has from here
	if got := here.tools(); got != own {
		t.Errorf("got the tools %s here, want %s", got, own)
	}
	if got := here.counts.of("refused.tool"); got == 0 || got%len(names) != 0 { // it may have listed them again
		t.Errorf("got %d refused tools here, want its own %d each time", got, len(names))
	}
}

// What an agent asks of another hub is below what it works on here, so that a loop over hubs ends.
func TestACallOfAnotherHubHasTheHopsOfItsCaller(t *testing.T) {
	here, there := newHub(t), newHub(t)
	url := there.mcp()
	here.run(here.packOf(url))
	ask := core.Request{Intent: core.IntentAsk, To: core.ToAgent("a"), Content: "go"}
	if _, err := here.connect("user").Open(ask, hub.OpenOptions{MinHops: 3, Unwatched: true}); err != nil {
		t.Fatal(err)
	}
	here.given()
	for _, name := range []string{"agent_ask", "agent_delegate"} {
		done := make(chan *tool.Result, 1)
		go func() { done <- here.call(name, `{"to":"a","content":"go on"}`) }()
		given := there.given()
		if given.Hops() != 4 {
			t.Errorf("%s: got %d hops there, want 4", name, given.Hops())
		}
		if err := there.caller.Report(given.ID(), core.Done{Text: "done"}, nil); err != nil {
			t.Error(err)
		}
		if r := <-done; r.Fault != nil {
			t.Errorf("%s: got %v, want its result", name, r.Fault)
		}
	}
}

// A call carries on the trace of the task that its caller works on (SEP-414).
func TestACallCarriesTheTraceOfItsCaller(t *testing.T) {
	here, there := newHub(t), newHub(t)
	here.run(here.packOf(there.mcp()))
	in := core.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"}
	ask := core.Request{Intent: core.IntentAsk, To: core.ToAgent("a"), Content: "go"}
	if _, err := here.connect("user").Open(ask, hub.OpenOptions{Trace: in, Unwatched: true}); err != nil {
		t.Fatal(err)
	}
	here.given()
	done := make(chan *tool.Result, 1)
	go func() { done <- here.call("agent_ask", `{"to":"a","content":"go on"}`) }()
	given := there.given()
	want := in
	want.Above = in.Parent // neither hub traces: the span above the task is the caller's
	if got := given.Trace(); got != want {
		t.Errorf("got the trace %+v there, want %+v", got, want)
	}
	if err := there.caller.Report(given.ID(), core.Done{Text: "done"}, nil); err != nil {
		t.Error(err)
	}
	if r := <-done; r.Fault != nil {
		t.Errorf("got %v, want its result", r.Fault)
	}
}

// given waits for a task for the agent.
func (g *testHub) given() *task.Task {
	g.t.Helper()
	for {
		b, err := g.caller.Next(g.t.Context())
		if err != nil {
			g.t.Fatal(err)
		}
		for _, e := range b.Events {
			if e.Body.Kind() == core.KindAssigned {
				return b.Task
			}
		}
	}
}

// packOf returns a pack of this hub.
func (g *testHub) packOf(url string) *pack.Pack {
	transport := &http.Transport{}
	g.t.Cleanup(transport.CloseIdleConnections)
	return g.pack(pack.Options{Hub: g.hub.ID(), URL: url, HTTP: &http.Client{Transport: transport}})
}
