package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/core"
	corehub "github.com/dragoman-hub/dragoman/core/hub"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	registry "github.com/dragoman-hub/dragoman/proto/parallax/registry"
)

// joinLargest joins agents with the largest cards that the hub takes.
func joinLargest(t *testing.T, h *testHub, agents int) {
	t.Helper()
	for i := range agents {
		a := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "host"}})
		t.Cleanup(func() { a.Close(nil) })
		card := core.Card{ID: core.AgentID(fmt.Sprintf("agent-%04d", i)), Dialect: []string{coven.Name, "parallax"}[i%2], Domains: []string{"work"}, Capabilities: []string{"chat"}, Metadata: map[string]json.RawMessage{"working_directory": []byte(`"` + strings.Repeat("x", 62<<10) + `"`)}}
		if err := a.Join(card, corehub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// A thousand agents have the largest cards that the hub takes. A list of them is bounded in every
// dialect, and says or shows that there are more.
func TestAListOfTheLargestCardsIsBoundedInEveryDialect(t *testing.T) {
	const agents, most = 1000, 9 << 20 // the list of Parallax has each agent twice
	h := newTestHub(t, nil)
	joinLargest(t, h, agents)
	addr := h.service.Addresses()
	get := func(path string) func() int {
		return func() int {
			resp, err := http.Get(h.url() + path) //nolint:noctx // it answers at once
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			n, err := io.Copy(io.Discard, resp.Body)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Errorf("%s: got %d and %v, want 200", path, resp.StatusCode, err)
			}
			return int(n)
		}
	}
	frame := func(addr, path, wants string, send ...string) func() int {
		return func() int {
			conn := dialFrames(t, addr, path, 64<<20)
			defer conn.cut()
			for _, one := range send {
				if err := conn.Send(t.Context(), []byte(one)); err != nil {
					t.Fatal(err)
				}
			}
			for {
				got, err := conn.Receive(t.Context())
				if err != nil {
					t.Errorf("%s: got %v, want %s", path, err, wants)
					return 0
				}
				if strings.Contains(string(got), wants) {
					return len(got)
				}
			}
		}
	}
	for name, list := range map[string]func() int{
		"REST":       get("/v1/agents"),
		"REST, many": get("/v1/agents?limit=500"),
		"A2A":        get("/.well-known/agent-card.json"),
		"metrics":    get("/metrics"),
		"MCP": func() int {
			_, body := askMCP(t, h.url()+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agents_list","arguments":{"limit":500}}}`)
			return len(body)
		},
		"Coven": func() int {
			list, err := connectCovenClient(t, addr.GRPC).ListAgents(t.Context(), &wire.ListAgentsRequest{})
			if err != nil {
				t.Errorf("Coven: got %v, want a list", err)
			}
			if n := len(list.GetAgents()); n != agents {
				t.Errorf("Coven: got %d agents, want all %d by their ids", n, agents)
			}
			return proto.Size(list)
		},
		"registry": func() int {
			list, err := registryOf(t, h).ListAgents(t.Context(), &registry.ListAgentsRequest{})
			if err != nil {
				t.Errorf("registry: got %v, want a list", err)
			}
			return proto.Size(list)
		},
		"ACP":    frame(addr.HTTP, "/ws/acp?agent_id=visitor", `"kind":"capabilities"`, `{"id":"1","from":"visitor","kind":"discover","payload":{}}`),
		"pi":     frame(addr.Pi, "/", `"command":"get_available_models"`, `{"id":"1","type":"create_session","sessionId":"s"}`, `{"id":"2","type":"get_available_models","sessionId":"s"}`),
		"native": frame(addr.HTTP, "/ws/native", `"agent-0000"`, `{"call":{"id":"1","act":"list","command":{"what":"agents"}}}`),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			size := list()
			runtime.ReadMemStats(&after)
			t.Logf("%d bytes, %d allocated", size, after.TotalAlloc-before.TotalAlloc)
			if size == 0 || size > most {
				t.Errorf("got a list of %d bytes for %d agents with %d KiB each, want at most %d", size, agents, 62, most)
			}
		})
	}
}

// Those who watch the registry hold no copies of the cards.
func TestAWatchOfTheRegistryHoldsNoCopiesOfTheCards(t *testing.T) {
	const agents, watches = 500, 4
	h := newTestHub(t, nil)
	joinLargest(t, h, agents)
	held := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	for range watches {
		stream, err := registryOf(t, h).Watch(t.Context(), &registry.WatchRequest{IncludeInitial: true})
		if err != nil {
			t.Fatal(err)
		}
		for range agents {
			if _, err := stream.Recv(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if after := held(); after > before+16<<20 {
		t.Errorf("got %d bytes held for %d watches of %d agents with 62 KiB each, want far less than one copy", after-before, watches, agents)
	}
}
