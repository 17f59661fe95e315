package e2e

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	corehub "github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// hubAgent is an agent connected within the process. The test decides what it does.
type hubAgent struct {
	*corehub.Session
	*testing.T
}

func (h *testHub) joinAgent(t *testing.T, id core.AgentID, change ...func(*core.Card)) hubAgent {
	t.Helper()
	a := h.service.Hub().Connect(corehub.Identity{Principal: core.Principal{ID: "host"}})
	t.Cleanup(func() { a.Close(nil) })
	card := core.Card{
		ID: id, MaxConcurrent: 8, Capabilities: []string{"ui"}, Features: core.FeatureApprovals | core.FeatureInjection | core.FeatureCancellation | core.FeatureStreaming,
	}
	for _, c := range change {
		c(&card)
	}
	if err := a.Join(card, corehub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	return hubAgent{a, t}
}

// next waits for a batch that is accepted by is.
func (w hubAgent) next(is func(corehub.Batch) bool) corehub.Batch {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), watchdog)
	defer cancel()
	for {
		b, err := w.Next(ctx)
		if err != nil {
			w.Fatal(err)
		}
		if is(b) {
			return b
		}
	}
}

// nextTask waits for the next assigned task.
func (w hubAgent) nextTask() *task.Task {
	w.Helper()
	return w.next(func(b corehub.Batch) bool { return has[core.Assigned](b) }).Task
}

func has[B core.Body](b corehub.Batch) bool {
	for _, e := range b.Events {
		if _, ok := e.Body.(B); ok {
			return true
		}
	}
	return false
}

func (w hubAgent) report(task *task.Task, bodies ...core.Body) {
	w.Helper()
	for _, b := range bodies {
		if err := w.Report(task.ID(), b, nil); err != nil {
			w.Fatal(err)
		}
	}
}

// A conversation of ClientService has the agent's name, so all clients use the same one. Only its
// sender and operators see a message in it.
func TestAConversationIsItsPrincipalsAndOperators(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "alice", "bob", "root") })
	agent := h.joinAgent(t, "a")
	cc, err := grpcserver.Dial(t.Context(), h.service.Addresses().GRPC, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cc.Close() })
	as := func(token string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
	}
	clients := wire.NewClientServiceClient(cc)
	send := func(token, content string) string {
		t.Helper()
		r, err := clients.SendMessage(as(token), &wire.ClientSendMessageRequest{ConversationKey: "a", Content: content, IdempotencyKey: "1"})
		if err != nil || r.GetStatus() != "accepted" {
			t.Fatalf("%s: got %v and %v, want it accepted", token, r, err)
		}
		return r.GetMessageId()
	}
	listen := func(token string) func(content string) *wire.ClientStreamEvent {
		t.Helper()
		stream, err := clients.StreamEvents(as(token), &wire.StreamEventsRequest{ConversationKey: "a"})
		if err != nil {
			t.Fatal(err)
		}
		return func(until string) *wire.ClientStreamEvent {
			t.Helper()
			for {
				m, err := stream.Recv()
				switch {
				case err != nil:
					t.Fatal(err)
				case token == "bob" && strings.Contains(m.String(), "hers"):
					t.Errorf("bob received %v", m)
				case strings.Contains(m.String(), until):
					return m
				}
			}
		}
	}
	hers := send("alice", "hers")
	task := agent.nextTask()
	alice, bob := listen("alice"), listen("bob")
	alice("hers")
	agent.report(task, core.Text{Text: "hers too"}, core.ApprovalRequested{ID: "k", Name: "rm hers", Input: "{}"})
	agent.CallTool("c", "ask_user", json.RawMessage(`{"question":"hers?","options":[{"label":"yes"}]}`))
	question := alice("hers?").GetUserQuestion().GetQuestionId()
	if his := send("bob", "his"); his == hers {
		t.Errorf("got the message %s for the same key of another, want one of his own", his)
	}
	own := agent.nextTask()
	if got := own.Request().History; len(got) != 0 {
		t.Errorf("got the history %v for bob's task, want none", got)
	}
	agent.report(own, core.Text{Text: "his own"}, core.Done{})
	bob("his own")

	for token, sees := range map[string]bool{"bob": false, "alice": true, "root": true} {
		got, err := clients.GetEvents(as(token), &wire.GetEventsRequest{ConversationKey: "a"})
		if err != nil || strings.Contains(got.String(), "hers") != sees {
			t.Errorf("%s reads the events: got %v and %v, want hers among them %v", token, got, err, sees)
		}
	}
	approve := func(token string) bool {
		t.Helper()
		r, err := clients.ApproveTool(as(token), &wire.ApproveToolRequest{AgentId: "a", ToolId: "k", Approved: true})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetSuccess()
	}
	reply := func(token string) bool {
		t.Helper()
		r, err := clients.AnswerQuestion(as(token), &wire.AnswerQuestionRequest{AgentId: "a", QuestionId: question, Selected: []string{"yes"}})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetSuccess()
	}
	if approve("bob") || reply("bob") {
		t.Error("got bob's decision or answer taken, want both refused")
	}
	if !approve("alice") || !reply("root") {
		t.Error("got the decision of alice or the answer of the operator refused, want both taken")
	}
	agent.report(task, core.Done{})
}

// The id of an ACP peer belongs to its principal: another principal with the same id has a mailbox
// of its own, and cannot affect the tasks of the first.
func TestAnACPMailboxBelongsToItsPrincipal(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "alice", "bob", "root") })
	agent := h.joinAgent(t, "a")
	at := h.url() + "/acp"
	wantGet := "family" // the id that all of them claim
	do := func(token, method, url, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "X-Agent-Id": {wantGet}}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp
	}
	post := func(token, body string) string {
		t.Helper()
		text, err := io.ReadAll(do(token, http.MethodPost, at, body).Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	ack := post("alice", `{"id":"d1","from":"family","to":"a","kind":"delegate","payload":{"task":"hers","report_back":true}}`)
	if !strings.Contains(ack, `"accepted":true`) {
		t.Fatalf("got %s, want it accepted", ack)
	}
	asked := agent.nextTask()
	for _, token := range []string{"bob", "root"} {
		for _, c := range []struct{ body, want string }{
			{`{"id":"c-` + token + `","from":"family","kind":"cancel","ref":"d1","payload":{"reason":"x"}}`, `"accepted":false`},
			{`{"id":"r-` + token + `","from":"family","kind":"result","ref":"d1","payload":{"status":"success","output":"forged"}}`, ""},
			{`{"id":"p-` + token + `","from":"family","kind":"progress","ref":"d1","payload":{"text":"forged"}}`, ""},
		} {
			if got := post(token, c.body); !strings.Contains(got, c.want) {
				t.Errorf("%s: %s: got %s, want %q", token, c.body, got, c.want)
			}
		}
		if got := post(token, `{"id":"d1","from":"family","to":"a","kind":"delegate","payload":{"task":"again"}}`); !strings.Contains(got, `"accepted":true`) {
			t.Errorf("%s: an id that alice used: got %s, want it taken", token, got)
		}
		agent.report(agent.nextTask(), core.Done{Text: "done for " + token})
	}
	mailbox := func(token string) func(want string) {
		t.Helper()
		resp := do(token, http.MethodGet, at, "")
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: got %s, want a mailbox of his own", token, resp.Status)
		}
		buf := make([]byte, 64<<10)
		var read string
		return func(want string) {
			t.Helper()
			for !strings.Contains(read, want) {
				n, err := resp.Body.Read(buf)
				if err != nil {
					t.Fatalf("%s: got %q and %v, want %q", token, read, err, want)
				}
				read += string(buf[:n])
			}
			if token != "alice" && strings.Contains(read, "the secret") || strings.Contains(read, "forged") {
				t.Errorf("%s read %q, want nothing of the others", token, read)
			}
		}
	}
	if end := asked.State(); end == task.Ended {
		t.Errorf("got alice's task ended by another principal")
	}
	alice, bob, root := mailbox("alice"), mailbox("bob"), mailbox("root")
	agent.report(asked, core.Done{Text: "the secret"})
	alice("the secret")
	bob("done for bob")
	root("done for root")
	// The id of a connected agent belongs to its principal.
	wantGet = "a"
	got := post("bob", `{"id":"x","from":"a","kind":"capabilities","payload":{"name":"a"}}`)
	if a, _ := h.service.Hub().Agent(core.Principal{Operator: true}, "a"); a.Principal.ID != "host" || !strings.Contains(got, `"kind":"error"`) {
		t.Errorf("bob claims the agent of another: got %s and %+v, want it refused", got, a.Principal)
	}
}
