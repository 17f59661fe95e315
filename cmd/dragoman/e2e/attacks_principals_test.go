package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	nativewire "github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// tokens are the tokens of the requesters of a hub, by its addresses.
var tokens sync.Map

// tokenFor returns the token that requesters send to an address, "" for none.
func tokenFor(addr string) string {
	token, _ := tokens.Load(addr)
	text, _ := token.(string)
	return text
}

// askWith makes the requesters of every dialect that connect from now on send a token.
func (h *testHub) askWith(t *testing.T, token string) {
	t.Helper()
	at := h.service.Addresses()
	for _, addr := range []string{at.HTTP, at.GRPC, at.Pi} {
		tokens.Store(addr, token)
		t.Cleanup(func() { tokens.Delete(addr) })
	}
	t.Setenv("DRAGOMAN_TOKEN", token) // for those that run the program
}

// bearer sends requests with a token.
type bearer struct {
	http.RoundTripper
	token string
}

// RoundTrip implements [http.RoundTripper].
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.RoundTripper.RoundTrip(r)
}

// peerOf returns an id for a requester with a token: its principal's in ACP, where a connection is
// the peer that its token names, and a new one elsewhere.
func (d *clientDialect) peerOf(h *testHub, principal string) string {
	if strings.HasPrefix(d.name, "ACP") {
		return principal
	}
	return principal + "-" + h.key()
}

// startAgentOf connects a Coven agent whose principal has its name, and returns once it has joined.
func (h *testHub) startAgentOf(t *testing.T, token string) {
	t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	var life sync.WaitGroup
	life.Go(func() {
		card := core.Card{ID: core.AgentID(token), MaxConcurrent: 4, Features: core.FeatureStreaming | core.FeatureCancellation}
		_ = h.join(ctx, coven.Name, client.Hub{URL: h.url(), GRPC: h.service.Addresses().GRPC, Token: token}, card) // it is cancelled
	})
	t.Cleanup(func() { leave(); life.Wait() })
	h.await(t, "joined "+token)
}

// An agent that is at work asks itself, over new connections in every dialect, with its own token.
func TestAnAgentCannotAskItselfAgainInAnyDialect(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) {
		c.Auth.Tokens = tokensFile(t, "looper", "root")
		c.Pi.Retries, c.Pi.AgentFailures, c.Pi.Rates = 0, 0, config.PiRates{}
	})
	h.startAgentOf(t, "looper")
	key := h.key()
	h.askWith(t, "root")
	first := overREST().connect(t, h, "root")
	defer first.leave()
	held := first.begin(query{to: "looper", content: "hang " + key, deadline: ample})
	h.await(t, key+" text")
	h.askWith(t, "looper")
	for _, d := range clientDialects() {
		t.Run(d.name, func(t *testing.T) {
			again := d.connect(t, h, d.peerOf(h, "looper"))
			defer again.leave()
			x := h.key()
			got := again.begin(query{to: "looper", content: "say " + x, deadline: ample}).wait(t)
			want := d.refused(core.NewFault(core.CodeLoop, ""))
			if got.End != want.End || !strings.EqualFold(got.Code, want.Code) || !strings.Contains(got.Message, "chain") {
				t.Errorf("got %+v, want %+v that names the chain", got, want)
			}
			if _, opened := h.signalled(x + " begun"); opened {
				t.Error("got the request at the agent, want none")
			}
		})
	}
	cc, err := grpcserver.Dial(t.Context(), h.service.Addresses().GRPC, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	for name, ask := range map[string]func(act string){
		"client of Coven": func(act string) {
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer looper")
			_, _ = wire.NewClientServiceClient(cc).SendMessage(ctx, &wire.ClientSendMessageRequest{ConversationKey: "looper", Content: act, IdempotencyKey: act}) // it is an event of the conversation
		},
		"MCP of the agent": func(act string) {
			post(t, h.service.Addresses().HTTP, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agent_delegate","arguments":{"to":"looper","content":"`+act+`"}}}`, http.Header{"Authorization": {"Bearer looper"}})
		},
	} {
		x, before := h.key(), h.service.Hub().Counters()["refused.loop"]
		ask("say " + x)
		if got := h.service.Hub().Counters()["refused.loop"]; got != before+1 {
			t.Errorf("%s: got %d refusals of a loop counted, want 1", name, got-before)
		}
		if _, opened := h.signalled(x + " begun"); opened {
			t.Errorf("%s: got the request at the agent, want none", name)
		}
	}
	h.signal(key+" released", nil)
	if got := held.wait(t); got.End != "done" {
		t.Errorf("the task that was at work: got %+v, want it done", got)
	}
}

// Who pushes context into a task is who its credential says, whatever the dialect writes there.
func TestTheSourceOfContextIsItsSenderInEveryDialect(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "listener", "alice", "root") })
	h.startAgentOf(t, "listener")
	h.askWith(t, "alice")
	steered := 0
	for _, d := range clientDialects() {
		t.Run(d.name, func(t *testing.T) {
			alice := d.connect(t, h, d.peerOf(h, "alice"))
			defer alice.leave()
			key := h.key()
			x := alice.begin(query{to: "listener", content: "listen " + key, deadline: ample})
			opened := h.await(t, key+" opened").(core.Event).Body.(core.Opened)
			h.await(t, key+" text")
			if x.inject == nil { // this dialect has no such command
				h.signal(key+" injected", nil)
				h.signal(key+" injection_answered", nil)
				x.wait(t)
				return
			}
			steered++
			if err := x.inject(t.Context(), "say "+key); err != nil {
				t.Fatal(err)
			}
			x.wait(t)
			all, err := h.service.Hub().Task(t.Context(), core.Principal{Operator: true}, opened.Task)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, e := range all.Events() {
				if in, ok := e.Body.(core.Injected); ok {
					if n++; in.Source != "alice" {
						t.Errorf("got the source %q (%q), want alice", in.Source, in.Claimed)
					}
				}
			}
			if n != 1 {
				t.Errorf("got %d injections, want 1", n)
			}
		})
	}
	if steered < 6 {
		t.Errorf("got %d dialects that push context, want those of REST, A2A, native, ACP and pi", steered)
	}
}

// What a requester writes as the source stands beside the one that the hub knows.
func TestAClaimedSourceStandsBesideTheSender(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = tokensFile(t, "listener", "alice") })
	h.startAgentOf(t, "listener")
	h.askWith(t, "alice")
	alice := connectREST(t, h)
	defer alice.leave()
	key := h.key()
	x := alice.open(query{to: "listener", content: "listen " + key, deadline: ample}, true)
	task := "/v1/tasks/" + string(h.await(t, key+" opened").(core.Event).Body.(core.Opened).Task)
	h.await(t, key+" text")
	if err := alice.steer(t.Context(), task+"/inject", map[string]string{"content": "say " + key, "source": "system"}); err != nil {
		t.Fatal(err)
	}
	x.wait(t)
	if _, text := getAs(t, h.url()+task+"/events?follow=false", "alice"); !strings.Contains(text, `"source":"alice"`) || !strings.Contains(text, `"claimed_source":"system"`) {
		t.Errorf("got %s, want alice as the source and what she wrote beside it", text)
	}
}

// Without the right nobody offers tools; with it nobody answers for, or replaces, the pack of
// somebody else.
func TestAPackNeedsTheRightAndBelongsToItsPrincipal(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) {
		ruled(t, "- {who: [alice, carol], may: provide}\n- {who: bob, may: [see, ask], to: \"*\"}\n- {who: asker, may: [see, ask], to: \"pack:shelf\"}\n")(c)
		c.Auth.Tokens = tokensFile(t, "alice", "bob", "carol", "asker", "eve")
	})
	cc, err := grpcserver.Dial(t.Context(), h.service.Addresses().GRPC, grpcserver.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	as := func(who string) context.Context {
		return metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+who)
	}
	packs := wire.NewPackServiceClient(cc)
	register := func(who, id string) (*testPack, error) {
		ctx, cancel := context.WithCancel(as(who))
		t.Cleanup(cancel)
		stream, err := packs.Register(ctx, &wire.PackManifest{PackId: id, Version: "1", Tools: []*wire.ToolDefinition{definition(id + "_find")}})
		if err != nil {
			t.Fatal(err)
		}
		header, err := stream.Header()
		if err == nil && header == nil {
			_, err = stream.Recv()
		}
		return &testPack{t: t, client: packs, stream: stream}, err
	}
	if _, err := register("bob", "mine"); status.Code(err) != codes.PermissionDenied {
		t.Errorf("bob offers a pack over gRPC: got %v, want %v", err, codes.PermissionDenied)
	}
	h.askWith(t, "bob")
	bob := nativeOverWebSocket().connect(t, h, "bob").(*nativePeer)
	defer bob.leave()
	provide := func() error {
		_, err := bob.client.Call(t.Context(), core.Provide{Pack: "mine"}, nativewire.With{})
		return err
	}
	if err := provide(); !strings.Contains(errorText(err), "provide") {
		t.Errorf("bob offers a pack over native: got %v, want the right named", err)
	}
	shelf, err := register("alice", "shelf")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := register("carol", "shelf"); status.Code(err) != codes.AlreadyExists {
		t.Errorf("carol takes the pack of alice: got %v, want %v", err, codes.AlreadyExists)
	}
	agentOf := func(who string) *covenAgent {
		h.askWith(t, who)
		return connectCovenAgent(t, h, who)
	}
	eve := agentOf("eve")
	defer eve.leave()
	if got := eve.call("shelf_find", map[string]int{"n": 1}).wait(t); got.End == "output" {
		t.Errorf("eve, who may not ask the pack: got %+v, want it refused", got)
	}
	asker := agentOf("asker")
	defer asker.leave()
	x := asker.call("shelf_find", map[string]int{"n": 1})
	call := shelf.nextCall()
	forged := &wire.ExecuteToolResponse{RequestId: call.GetRequestId(), Result: &wire.ExecuteToolResponse_OutputJson{OutputJson: `"forged"`}}
	if _, err := packs.ToolResult(as("carol"), forged); err == nil {
		t.Error("carol answers a call of the pack of alice: got no error, want it refused")
	}
	if _, err := packs.ToolResult(as("alice"), &wire.ExecuteToolResponse{RequestId: call.GetRequestId(), Result: &wire.ExecuteToolResponse_OutputJson{OutputJson: `"found"`}}); err != nil {
		t.Errorf("alice answers: got %v, want OK", err)
	}
	if got := x.wait(t); string(got.Data) != `"found"` {
		t.Errorf("got %+v, want what alice answered", got)
	}
}

// ownTokens writes a tokens file: each principal has the token that is its name and may register its
// own id alone.
func ownTokens(t *testing.T, principals ...string) string {
	t.Helper()
	path, text := filepath.Join(t.TempDir(), "tokens.yaml"), "tokens:\n"
	for _, p := range principals {
		text += fmt.Sprintf("- {principal: %s, sha256: \"%x\"}\n", p, auth.HashOf(p))
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A POST in the name of an agent of somebody else is refused, and does not keep its id.
func TestAPostKeepsNoIDFromItsOwner(t *testing.T) {
	h := newTestHub(t, func(c *config.Config) { c.Auth.Tokens = ownTokens(t, "bob", "kit") })
	for _, header := range []http.Header{{"Authorization": {"Bearer bob"}, "X-Agent-Id": {"kit"}}, {"Authorization": {"Bearer bob"}}} {
		for _, kind := range []string{"ping", "capabilities", "discover"} {
			status, text := post(t, h.service.Addresses().HTTP, service.ACPPath, `{"id":"`+h.key()+`","from":"kit","kind":"`+kind+`","payload":{}}`, header.Clone())
			if (kind == "capabilities" || header.Get("X-Agent-Id") == "") && status != http.StatusForbidden {
				t.Errorf("bob says %s as kit with %v: got %d and %s, want 403", kind, header, status, text)
			}
		}
	}
	for dialect, join := range service.Joins() {
		ctx, leave := context.WithCancel(t.Context())
		joined, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- join(ctx, client.Hub{URL: h.url(), GRPC: h.service.Addresses().GRPC, Token: "kit"}, core.Card{ID: "kit", MaxConcurrent: 1}, shout, func(client.AskFunc) { close(joined) }, h.log)
		}()
		select {
		case <-joined:
			leave()
			<-ended
			h.await(t, "left kit")
		case err := <-ended:
			leave()
			t.Errorf("kit joins by %s: got %v, want its id free", dialect, err)
		}
	}
}
