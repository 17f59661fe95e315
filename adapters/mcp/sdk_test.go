package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// versions are the protocol versions of the tests, with sessions and without.
var versions = []string{"2025-06-18", "2025-11-25", "2026-07-28"}

// connect connects a client of the SDK; changed receives each change of the tools.
func (g *testServer) connect(t *testing.T, version, path string, changed chan<- struct{}) *sdk.ClientSession {
	t.Helper()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
	})
	cs, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: g.url + path, HTTPClient: g.client, MaxRetries: -1}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("connecting: got %v, want no error", err)
	}
	t.Cleanup(func() { cs.Close() })
	if got := cs.InitializeResult().ProtocolVersion; got != version {
		t.Errorf("got version %s, want %s", got, version)
	}
	return cs
}

// provide offers tools through a session.
func provide(t *testing.T, s *hub.Session, tools ...tool.Definition) {
	t.Helper()
	if err := s.Provide("weather", tools); err != nil {
		t.Fatalf("providing tools: got %v, want no error", err)
	}
}

func packTool(name string, capabilities ...string) tool.Definition {
	return tool.Definition{
		Name: name, Description: "It does " + name, Timeout: time.Minute, Requires: capabilities,
		InputSchema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
	}
}

func namesOf(t *testing.T, cs *sdk.ClientSession) []string {
	t.Helper()
	var names []string
	for tool, err := range cs.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatalf("tools/list: got %v, want no error", err)
		}
		names = append(names, tool.Name)
	}
	return names
}

func TestTheSDKClientIsServedInEveryProtocolVersion(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g := start(t, mcp.Options{})
			ann, bob := g.agent("ann", "meteo"), g.agent("bob")
			pack := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "pack"}, Dialect: "test"})
			t.Cleanup(func() { pack.Close(nil) })
			provide(t, pack, packTool("forecast", "meteo"), packTool("secret", "admin"))
			token, revoke := g.server.Issue(ann.Session)
			defer revoke()
			changed := make(chan struct{}, 100)
			cs := g.connect(t, version, "/"+token, changed)
			if version != "2026-07-28" {
				if err := cs.Ping(t.Context(), nil); err != nil {
					t.Errorf("ping: got %v, want no error", err)
				}
			}
			if names := namesOf(t, cs); !slices.Contains(names, "forecast") || slices.Contains(names, "secret") || !slices.Contains(names, "agent_ask") {
				t.Errorf("got the tools %v, want forecast and agent_ask, and no secret", names)
			}
			anonymous := g.connect(t, version, "", changed)
			if names := namesOf(t, anonymous); slices.Contains(names, "forecast") {
				t.Errorf("without a token: got the tools %v, want no forecast", names)
			}

			done := make(chan *sdk.CallToolResult, 1)
			call := func(name, input string) {
				r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(input)})
				if err != nil {
					t.Errorf("%s: got %v, want no error", name, err)
				}
				done <- r
			}
			go call("agent_ask", askBob)
			bob.report(bob.next(core.KindAssigned), core.Text{Text: "42"}, core.Done{})
			if r := <-done; r.IsError || !strings.Contains(r.Content[0].(*sdk.TextContent).Text, `"text":"42"`) {
				t.Errorf("agent_ask: got %+v, want 42", r)
			}
			go call("forecast", `{"city":"Oslo"}`)
			b, err := pack.Next(t.Context())
			if err != nil || b.Execute == nil || b.Execute.Agent != "ann" {
				t.Fatalf("the pack: got %+v and %v, want an execution for ann", b, err)
			}
			if err := pack.AnswerTool(b.Execute.ID, tool.Result{Output: json.RawMessage(`{"sky":"grey"}`)}); err != nil {
				t.Fatal(err)
			}
			if r := <-done; r.IsError || r.Content[0].(*sdk.TextContent).Text != `{"sky":"grey"}` {
				t.Errorf("forecast: got %+v, want grey", r)
			}
			go call("forecast", `{"city":5}`)
			if r := <-done; !r.IsError || !strings.Contains(r.Content[0].(*sdk.TextContent).Text, "city") {
				t.Errorf("forecast: got %+v, want a failure that names city", r)
			}
			var wire *jsonrpc.Error
			if _, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "secret"}); !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("secret: got %v, want an unknown tool", err)
			}
		})
	}
}

func TestASubscribedClientIsNotifiedOfChangedTools(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g := start(t, mcp.Options{})
			pack := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "pack"}, Dialect: "test"})
			t.Cleanup(func() { pack.Close(nil) })
			changed := make(chan struct{}, 100)
			cs := g.connect(t, version, "", changed)
			provide(t, pack, packTool("forecast"))
			<-changed
			if names := namesOf(t, cs); !slices.Contains(names, "forecast") {
				t.Errorf("got the tools %v, want forecast", names)
			}
			provide(t, pack, packTool("outlook"))
			<-changed
			if names := namesOf(t, cs); slices.Contains(names, "forecast") || !slices.Contains(names, "outlook") {
				t.Errorf("got the tools %v, want outlook in place of forecast", names)
			}
			pack.Close(nil)
			<-changed
			if names := namesOf(t, cs); slices.Contains(names, "outlook") {
				t.Errorf("got the tools %v, want no outlook", names)
			}
		})
	}
}

func TestAnEventStreamGetsCommentsAndEndsWithItsToken(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{KeepAlive: time.Millisecond, MaxStreams: 1})
	token, revoke := g.server.Issue(g.agent("ann").Session)
	resp, err := g.send(t.Context(), http.MethodGet, "", "", "Accept: text/event-stream", "Authorization: Bearer "+token)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for range 6 {
		if lines.Scan(); lines.Text() != ": alive" && lines.Text() != "" {
			t.Errorf("got %q, want comments", lines.Text())
		}
	}
	for _, accept := range []string{"Accept: text/event-stream", "Accept: application/json"} {
		full, err := g.send(t.Context(), http.MethodGet, "/"+token, "", accept)
		if err != nil {
			t.Fatal(err)
		}
		full.Body.Close()
		if want := map[bool]int{true: http.StatusTooManyRequests, false: http.StatusNotAcceptable}[strings.Contains(accept, "event")]; full.StatusCode != want {
			t.Errorf("%s: got %d, want %d", accept, full.StatusCode, want)
		}
	}
	revoke()
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil {
		t.Errorf("got %v, want a clean end", err)
	}
	dead, err := g.send(t.Context(), http.MethodGet, "/"+token, "", "Accept: text/event-stream")
	if err != nil {
		t.Fatal(err)
	}
	dead.Body.Close()
	if dead.StatusCode != http.StatusUnauthorized {
		t.Errorf("got %d, want 401", dead.StatusCode)
	}
}

// Official clients start OAuth on 401 if they can, which this server has not: what they say then comes
// from where they would register.
func TestAnExpiredTokenIsReportedToClientsWithAndWithoutOAuth(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g := start(t, mcp.Options{})
			mux := http.NewServeMux()
			mux.Handle(mcp.Path+"/", g.server)
			for _, path := range []string{mcp.MetadataPath, mcp.MetadataPath + "/", mcp.RegisterPath} {
				mux.Handle(path, g.server.OAuth())
			}
			srv := httptest.NewServer(mux)
			defer srv.Close()
			login, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
				DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{
					Metadata: &oauthex.ClientRegistrationMetadata{ClientName: "test", RedirectURIs: []string{"http://127.0.0.1/callback"}},
				},
				AuthorizationCodeFetcher: func(context.Context, *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
					return nil, errors.New("a user was asked to log in")
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			for name, c := range map[string]struct {
				handler auth.OAuthHandler
				want    string
			}{"without OAuth": {nil, "Unauthorized"}, "with OAuth": {login, "this hub has no OAuth: ask its operator for a token"}} {
				token, revoke := g.server.Issue(g.agent(strings.ReplaceAll(name, " ", "-")).Session)
				connect := func() (*sdk.ClientSession, error) {
					client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
					return client.Connect(t.Context(), &sdk.StreamableClientTransport{
						Endpoint: srv.URL + mcp.Path + "/" + token, HTTPClient: srv.Client(), OAuthHandler: c.handler,
					}, &sdk.ClientSessionOptions{ProtocolVersion: version})
				}
				cs, err := connect()
				if err != nil {
					t.Fatal(err)
				}
				defer cs.Close()
				revoke()
				if _, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "agents_list"}); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("a call %s: got %v, want %q", name, err, c.want)
				}
				if _, err := connect(); err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("another client %s: got %v, want %q", name, err, c.want)
				}
			}
		})
	}
}

func TestTheSDKClientAsksItsUserInEveryProtocolVersion(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g := start(t, mcp.Options{})
			bob := g.agent("bob")
			answers := make(chan *sdk.ElicitResult, 1)
			client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
				ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					if !strings.Contains(r.Params.Message, "bob asks to run rm") {
						t.Errorf("got %q, want what bob asks", r.Params.Message)
					}
					return <-answers, nil
				},
			})
			cs, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: g.url, HTTPClient: g.client, MaxRetries: -1}, &sdk.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { cs.Close() })
			for _, tt := range []struct {
				answer *sdk.ElicitResult
				want   bool
			}{{&sdk.ElicitResult{Action: "accept", Content: map[string]any{"allow": true}}, true}, {&sdk.ElicitResult{Action: "decline"}, false}, {&sdk.ElicitResult{Action: "cancel"}, false}} {
				done := make(chan *sdk.CallToolResult, 1)
				go func() {
					r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "agent_ask", Arguments: json.RawMessage(askBob)})
					if err != nil {
						t.Errorf("got %v, want no error", err)
					}
					done <- r
				}()
				task := bob.next(core.KindAssigned)
				bob.report(task, approval)
				answers <- tt.answer
				if d := bob.decision(); d.Approved != tt.want {
					t.Errorf("%s: got %+v, want approved %t", tt.answer.Action, d, tt.want)
				}
				bob.report(task, core.Done{Text: "42"})
				if r := <-done; r == nil || !strings.Contains(r.Content[0].(*sdk.TextContent).Text, "42") {
					t.Errorf("got %+v, want 42", r)
				}
			}
		})
	}
}

func TestTheSDKClientCancelsACallInEveryProtocolVersion(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			g := start(t, mcp.Options{})
			bob := g.agent("bob")
			changed := make(chan struct{}, 100)
			cs := g.connect(t, version, "", changed)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				_, err := cs.CallTool(ctx, &sdk.CallToolParams{Name: "agent_ask", Arguments: json.RawMessage(askBob)})
				done <- err
			}()
			task := bob.next(core.KindAssigned)
			provide(t, bob.Session, packTool("forecast")) // the tools change during the call
			<-changed
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want the error of the context", err)
			}
			if got := bob.next(core.KindCancelRequested); got != task {
				t.Errorf("got a cancel of %s, want one of %s", got.ID(), task.ID())
			}
			bob.report(task, core.Cancelled{})
		})
	}
}
