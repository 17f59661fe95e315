package pack_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/adapters/mcp/pack"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// lineServer is the transport of a server of the SDK at its end of a pipe. A legacy one knows
// no server/discover.
type lineServer struct {
	*coretest.End[[]byte, []byte]
	legacy bool
}

func (s lineServer) Connect(context.Context) (sdk.Connection, error) { return s, nil }
func (s lineServer) SessionID() string                               { return "" }
func (s lineServer) Close() error                                    { return s.End.Close(link.Reason{Cause: link.Normal}) }

func (s lineServer) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		b, err := s.Receive(ctx)
		if err != nil {
			return nil, io.EOF
		}
		if s.legacy && bytes.Contains(b, []byte(`"server/discover"`)) {
			if err := s.End.Send(ctx, []byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`)); err != nil {
				return nil, err
			}
			continue
		}
		return jsonrpc.DecodeMessage(b)
	}
}

func (s lineServer) Write(ctx context.Context, m jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return s.Send(ctx, b)
}

// peers are the servers of the SDK that a pack meets.
var peers = []struct {
	name         string
	http, legacy bool
}{{"lines of 2026-07-28", false, false}, {"lines of 2025-11-25", false, true}, {"HTTP of 2026-07-28", true, false}, {"HTTP of 2025-11-25", true, true}}

// withPeers runs a test for each transport and era. setUp adds the tools of the server.
func withPeers(t *testing.T, setUp func(*sdk.Server), test func(g *testHub, p *pack.Pack, s *sdk.Server)) {
	for _, peer := range peers {
		t.Run(peer.name, func(t *testing.T) {
			g := newHub(t)
			s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ServerOptions{Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}}})
			setUp(s)
			if peer.http {
				test(g, g.pack(overHTTP(t, s, peer.legacy)), s)
				return
			}
			test(g, g.pack(pack.Options{Dial: dial(func(end *coretest.End[[]byte, []byte]) {
				if _, err := s.Connect(context.WithoutCancel(t.Context()), lineServer{end, peer.legacy}, nil); err != nil {
					t.Error(err)
				}
			})}), s)
		})
	}
}

// overHTTP serves an SDK server and returns the options to reach it.
func overHTTP(t *testing.T, s *sdk.Server, legacy bool) pack.Options {
	t.Helper()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: !legacy, PropagateRequestCancellation: true})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if legacy {
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), `"server/discover"`) {
				http.Error(w, "no session", http.StatusBadRequest)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return pack.Options{URL: srv.URL, HTTP: srv.Client()}
}

type word struct {
	Word string `json:"word"`
}

// addEcho adds a tool that returns its word.
func addEcho(s *sdk.Server) {
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "returns the word"}, func(_ context.Context, _ *sdk.CallToolRequest, in word) (*sdk.CallToolResult, any, error) {
		if in.Word == "no" {
			return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "I will not say no"}}}, nil, nil
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Word}}}, nil, nil
	})
}

func TestTheToolsOfAServerAreCalledThroughTheHub(t *testing.T) {
	withPeers(t, addEcho, func(g *testHub, p *pack.Pack, _ *sdk.Server) {
		r := g.run(p)
		if got := g.tools(); got != "p.echo" {
			g.t.Errorf("got the tools %q, want p.echo", got)
		}
		g.wantOutput("echo", `{"word":"hello"}`, `{"text":"hello"}`)
		g.wantFault("echo", `{"word":"no"}`, core.CodeInternal, "I will not say no")
		for word, want := range map[string]string{"hello": `{"content":[{"type":"text","text":"hello"}]}`, "no": `{"content":[{"type":"text","text":"I will not say no"}],"isError":true}`} {
			f := g.call("echo", `{"word":"`+word+`"}`).Foreign
			if f == nil || f.Dialect != mcp.Name {
				g.t.Fatalf("echo: got %+v, want the result of the server beside its output", f)
			}
			if plain, _ := strictjson.ParseValid(f.JSON).Without("_meta", "resultType"); string(plain) != want {
				g.t.Errorf("echo: got %s, want %s as the server sent it", f.JSON, want)
			}
		}
		g.wantFault("echo", `{"word":1}`, core.CodeInvalid, "word") // the hub knows the schema
		r.stop()
		if err := r.wait(); err != context.Canceled {
			g.t.Errorf("got the end %v, want that of the context", err)
		}
		g.wantFault("echo", `{"word":"hello"}`, core.CodeUnreachable, "down")
		g.run(p)
		g.wantOutput("echo", `{"word":"again"}`, `{"text":"again"}`)
	})
}

func TestAChangeOfTheToolsIsOfferedDuringACall(t *testing.T) {
	reached, release := make(chan struct{}, 4), make(chan struct{})
	setUp := func(s *sdk.Server) {
		addEcho(s)
		sdk.AddTool(s, &sdk.Tool{Name: "wait"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			reached <- struct{}{}
			<-release
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "waited"}}}, nil, nil
		})
	}
	withPeers(t, setUp, func(g *testHub, p *pack.Pack, s *sdk.Server) {
		g.run(p)
		g.await("p.echo p.wait")
		release = make(chan struct{})
		done := make(chan struct{})
		other := g.connect("b")
		go func() {
			defer close(done)
			r, err := other.Call(g.t.Context(), "p.wait", nil)
			if err != nil || string(r.Output) != `{"text":"waited"}` {
				g.t.Errorf("got %+v and %v, want the call to end as if nothing had changed", r, err)
			}
		}()
		<-reached
		s.RemoveTools("echo")
		sdk.AddTool(s, &sdk.Tool{Name: "shout"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return nil, map[string]any{"n": 9007199254740993}, nil
		})
		g.await("p.shout p.wait")
		close(release)
		<-done
		g.wantOutput("shout", `{}`, `{"data":{"n":9007199254740993}}`)
	})
}

func TestACallThatIsCancelledIsCancelledAtTheServer(t *testing.T) {
	reached, ended := make(chan struct{}, 1), make(chan error, 1)
	setUp := func(s *sdk.Server) {
		sdk.AddTool(s, &sdk.Tool{Name: "wait"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			reached <- struct{}{}
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, nil, ctx.Err()
		})
	}
	withPeers(t, setUp, func(g *testHub, p *pack.Pack, _ *sdk.Server) {
		r := g.run(p)
		go func() { <-reached; r.stop() }()
		g.wantFault("wait", `{}`, core.CodeUnreachable, "down")
		select {
		case <-ended:
		case <-time.After(time.Minute):
			g.t.Error("got no cancel at the server, want one")
		}
	})
}
