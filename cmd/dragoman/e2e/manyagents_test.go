package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/core"
	corehub "github.com/dragoman-hub/dragoman/core/hub"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// manyAgents is the number of agents whose lists are tested.
const manyAgents = 9000

// joinManyAgents joins manyAgents agents with cards of ordinary size.
func (h *testHub) joinManyAgents(t *testing.T) {
	t.Helper()
	for i := range manyAgents {
		a := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "host"}})
		t.Cleanup(func() { a.Close(nil) })
		card := core.Card{
			ID: core.AgentID(fmt.Sprintf("agent-%04d", i)), Name: fmt.Sprintf("The agent with the number %d", i), Dialect: coven.Name,
			Capabilities: []string{"chat", "code", fmt.Sprintf("skill-%d", i)}, Domains: []string{fmt.Sprintf("family.calendar.n%d", i)},
			Model: "a-model-of-some-name", MaxConcurrent: 2,
			Metadata: map[string]json.RawMessage{"working_directory": []byte(`"/home/user/project"`), "workspaces": []byte(`["docs"]`), "os": []byte(`"` + strings.Repeat("x", 400) + `"`)},
		}
		if err := a.Join(card, corehub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 999 { // the audit has to have them: it drops what comes faster than it can be written
			if err := h.service.Hub().Audit(t.Context(), core.Principal{ID: "op", Operator: true}, "", 0, func([]byte) bool { return false }); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestListsOfManyAgentsStayWithinTheMessageLimits(t *testing.T) {
	h := newTestHub(t, nil)
	h.joinManyAgents(t)
	// exchange sends frames over a WebSocket and returns the first that has what it wants.
	exchange := func(path, wants string, most int64, frames ...string) []byte {
		t.Helper()
		conn, _, err := websocket.Dial(t.Context(), "ws://"+h.service.Addresses().HTTP+path, &websocket.DialOptions{HTTPHeader: http.Header{"X-Agent-Id": {"visitor"}}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.CloseNow()
		conn.SetReadLimit(most)
		for _, frame := range frames {
			if err := conn.Write(t.Context(), websocket.MessageText, []byte(frame)); err != nil {
				t.Fatal(err)
			}
		}
		for {
			_, got, err := conn.Read(t.Context())
			if err != nil {
				t.Fatalf("%s: got %v, want %s within %d bytes", path, err, wants, most)
			}
			if strings.Contains(string(got), wants) {
				t.Logf("%s: %d bytes", path, len(got))
				return got
			}
		}
	}

	list, err := connectCovenClient(t, h.service.Addresses().GRPC).ListAgents(t.Context(), &wire.ListAgentsRequest{})
	if err != nil || len(list.GetAgents()) != manyAgents || list.GetAgents()[0].GetWorkingDir() == "" {
		t.Errorf("Coven: got %d agents and %v, want all", len(list.GetAgents()), err)
	}

	var models struct{ Data struct{ Models []any } }
	got := exchange("/ws/pi", `"command":"get_available_models"`, 10<<20,
		`{"id":"1","type":"create_session","sessionId":"s"}`, `{"id":"2","type":"get_available_models","sessionId":"s"}`)
	if err := json.Unmarshal(got, &models); err != nil || len(models.Data.Models) != 1000 {
		t.Errorf("pi: got %d models and %v, want the first thousand", len(models.Data.Models), err)
	}

	var all struct {
		Payload struct {
			Agents []struct{ ID core.AgentID }
			More   int `json:"more_agents"`
		}
	}
	got = exchange("/ws/acp", `"kind":"capabilities"`, 1_000_000, `{"id":"1","from":"visitor","kind":"discover","payload":{}}`)
	if err := json.Unmarshal(got, &all); err != nil || len(all.Payload.Agents) == 0 || len(all.Payload.Agents)+all.Payload.More != manyAgents {
		t.Errorf("ACP: got %d agents, %d more and %v, want as many as there is room for", len(all.Payload.Agents), all.Payload.More, err)
	}

	// The output of a tool is read by a model: it is paged.
	input, found := `{}`, 0
	for pages := 0; ; pages++ {
		_, body := askMCP(t, h.url()+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agents_list","arguments":`+input+`}}`)
		var answer struct {
			Result struct {
				Content []struct{ Text string }
			}
		}
		var page struct {
			Agents []struct{ ID core.AgentID }
			More   int
			After  core.AgentID
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil || len(answer.Result.Content) != 1 {
			t.Fatalf("agents_list: got %.300s", body)
		}
		text := answer.Result.Content[0].Text
		if err := json.Unmarshal([]byte(text), &page); err != nil || len(text) > 300<<10 {
			t.Fatalf("agents_list: got %d bytes and %v, want a page", len(text), err)
		}
		if pages == 0 && (len(page.Agents) != 100 || page.More != manyAgents-100) {
			t.Errorf("agents_list: got %d agents and %d more, want 100 and the rest", len(page.Agents), page.More)
		}
		if found += len(page.Agents); page.More != manyAgents-found {
			t.Errorf("agents_list: got %d more behind %d, want the rest", page.More, found)
		}
		if page.More == 0 {
			break
		}
		input = fmt.Sprintf(`{"limit":500,"after":%q}`, page.After)
	}
	if found != manyAgents {
		t.Errorf("agents_list: got %d agents in all, want %d", found, manyAgents)
	}
}
