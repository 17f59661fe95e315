package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/dragoman-hub/dragoman/adapters/a2a"
	a2awire "github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/adapters/acp"
	acpclient "github.com/dragoman-hub/dragoman/adapters/acp/client"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	covenclient "github.com/dragoman-hub/dragoman/adapters/coven/client"
	"github.com/dragoman-hub/dragoman/adapters/editor"
	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/adapters/native"
	nativeclient "github.com/dragoman-hub/dragoman/adapters/native/client"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	parallaxclient "github.com/dragoman-hub/dragoman/adapters/parallax/client"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// connect connects a peer. The body of the step has what its connection says, as headers do.
func (p *player) connect(st *step, m []string) error {
	dialect, _, named := strings.Cut(m[0], " ")
	headers, err := settings(st.body)
	switch {
	case err != nil:
		return err
	case !named:
		return fmt.Errorf("want the dialect and a name, such as coven fold")
	case p.peers[m[0]] != nil:
		return fmt.Errorf("%s is connected already", m[0])
	}
	end, serve, err := p.openConn(dialect, headers)
	if err != nil {
		return err
	}
	peer := newPeer(end)
	p.peers[m[0]] = peer
	go func() { peer.setEnd(closeReason(dialect, serve())) }()
	return nil
}

// testLink is the keepalive of a WebSocket, as the program sets it.
var testLink = client.LinkOptions

// openConn opens a connection of a dialect. It returns the peer's end and the function that serves
// the other.
func (p *player) openConn(dialect string, headers map[string]string) (peerEnd, func() link.Reason, error) {
	if dialect == "coven" {
		server, client := covenPipe()
		opts := coven.Options{MCPEndpoint: "http://127.0.0.1:8080/mcp", MCPToken: p.mcp.Issue}
		return protoEnd[*wire.ServerMessage, *wire.AgentMessage]{client, func() *wire.AgentMessage { return new(wire.AgentMessage) }},
			func() link.Reason { return coven.Serve(p.ctx, p.hub, server, &opts) }, nil
	}
	if dialect == "client" {
		end, serve := p.openClient()
		return end, serve, nil
	}
	if dialect == "pack" {
		end, serve := p.openPack()
		return end, serve, nil
	}
	if dialect == "editor-agent" {
		end, serve := p.openEditorAgent(headers)
		return end, serve, nil
	}
	if dialect == "gateway" {
		end, serve := p.openGateway(headers)
		return end, serve, nil
	}
	if dialect == "a2a-agent" {
		return p.openA2AAgent(headers)
	}
	if dialect == "pi-rpc" {
		return p.openPi(headers)
	}
	server, client := coretest.Pipe[[]byte, []byte](0)
	var serve func() link.Reason
	switch dialect {
	case "parallax":
		opts := parallax.Options{AgentID: headers["x-agent-id"], Link: testLink}
		opts.Secret = func(core.AgentID) []byte { return []byte(headers["secret"]) }
		opts.RequireSignature = headers["signatures"] == "required"
		opts.Principal = principalIn(headers)
		for able := range strings.SplitSeq(headers["x-agent-capabilities"], ",") {
			if able = strings.TrimSpace(able); able != "" {
				opts.Capabilities = append(opts.Capabilities, able)
			}
		}
		serve = func() link.Reason { return parallax.Serve(p.ctx, p.hub, server, &opts) }
	case "acp":
		opts := acp.Options{AgentID: core.AgentID(headers["x-agent-id"]), Principal: principalIn(headers), Peers: p.acp, HubName: "dragoman", Link: testLink}
		serve = func() link.Reason { return acp.Serve(p.ctx, p.hub, server, &opts) }
	case "native":
		opts := native.Options{AgentID: core.AgentID(headers["x-agent-id"]), Principal: principalIn(headers), Version: "1.0.0", Link: testLink}
		serve = func() link.Reason { return native.Accept(p.ctx, p.hub, server, opts) }
	case "editor":
		opts := editor.Options{Agent: core.ToAgent(core.AgentID(headers["agent"])), Principal: principalIn(headers), Version: "1.0.0", Link: testLink}
		opts.Principal.Operator = !opts.Principal.Authenticated // as on an open hub
		serve = func() link.Reason { return editor.Serve(p.ctx, p.hub, server, opts) }
	case "pi":
		opts := pi.ConnOptions{Principal: core.Principal{ID: headers["principal"], Operator: true}, Transport: pi.Transport(headers["transport"])}
		var err error
		if opts.Snapshots, err = render.ParseSnapshots(headers["snapshots"]); err != nil {
			return nil, nil, err
		}
		if p.pi == nil {
			opts := p.piOpts
			opts.Version, opts.Commands.QueuePrompts, opts.Link = "1.0.0", true, testLink
			opts.GatherTime = -1 // a conversation has no clock: changes are sent at once
			if p.disk != "" {
				opts.Dir, opts.SessionDir = p.disk+"/home/user/project", p.disk+"/home/user/.pi/agent/sessions"
				opts.ExportDirs = []string{opts.Dir}
				opts.SessionRoots = []string{p.disk + "/path/to/.pi/sessions"}
			}
			p.pi = pi.NewServer(p.hub, opts)
		}
		serve = func() link.Reason { return p.pi.Serve(p.ctx, server, opts) }
	default:
		return nil, nil, fmt.Errorf("unknown dialect %q: want coven, client, pack, parallax, gateway, pi, pi-rpc, acp, native, editor, editor-agent or a2a-agent", dialect)
	}
	if p.disk != "" {
		return diskEnd{jsonEnd{client}, p}, serve, nil
	}
	return jsonEnd{client}, serve, nil
}

// principalIn returns the principal that a connection authenticated as.
func principalIn(headers map[string]string) (p core.Principal) {
	if id := headers["principal"]; id != "" {
		p = core.Principal{ID: id, Authenticated: true}
		if agents := headers["agents"]; agents != "" {
			p.Credential = &core.Credential{Agents: strings.Fields(agents)}
		}
		if good, err := time.ParseDuration(headers["token good for"]); err == nil {
			p.Until = time.Now().Add(good)
		}
	}
	return p
}

// startAgent connects an agent of this project to a gateway that the conversation plays. It answers
// in capitals; "wait" makes it wait until it is stopped, "fail" makes it fail.
func (p *player) startAgent(st *step, m []string) error {
	dialect, name, _ := strings.Cut(strings.TrimPrefix(m[0], "our "), " ")
	headers, err := settings(st.body)
	if err != nil {
		return err
	}
	card := core.Card{ID: core.AgentID(name), Name: name, Dialect: dialect, Capabilities: []string{"shouting"}, MaxConcurrent: 1}
	if most := headers["tasks at once"]; most != "" {
		if card.MaxConcurrent, err = strconv.Atoi(most); err != nil {
			return err
		}
	}
	var end peerEnd
	var work func() error
	switch dialect {
	case "coven":
		far, near := covenPipe()
		end = protoEnd[*wire.AgentMessage, *wire.ServerMessage]{far, func() *wire.ServerMessage { return new(wire.ServerMessage) }}
		work = func() error { return covenclient.Work(p.ctx, near, card, shout, covenclient.WorkOptions{}) }
	case "parallax":
		far, near := coretest.Pipe[[]byte, []byte](0)
		end = jsonEnd{far}
		work = func() error {
			return parallaxclient.Work(p.ctx, near, card, shout, parallaxclient.WorkOptions{Plain: headers["extensions"] == "none"})
		}
	case "acp":
		far, near := coretest.Pipe[[]byte, []byte](0)
		end = jsonEnd{far}
		work = func() error { return acpclient.Work(p.ctx, near, card, shout, acpclient.WorkOptions{}) }
	case "native":
		far, near := coretest.Pipe[[]byte, []byte](0)
		end = jsonEnd{far}
		work = func() error { return nativeclient.Work(p.ctx, near, card, shout, nativeclient.WorkOptions{}) }
	default:
		return fmt.Errorf("this project has no agent for %q", dialect)
	}
	peer := newPeer(end)
	p.peers[m[0]] = peer
	go func() { peer.setEnd(errorValue(work())) }()
	return nil
}

func shout(ctx context.Context, r core.Request, say func(core.Body) error) error {
	switch r.Content {
	case "wait":
		<-ctx.Done()
		return context.Cause(ctx)
	case "fail":
		return core.NewFault(core.CodeInternal, "it was asked to")
	}
	return say(core.Text{Text: strings.ToUpper(r.Content)})
}

// httpCall is an HTTP request that may not have been answered yet.
type httpCall struct {
	stream   bool // the answer has no end
	cancel   context.CancelFunc
	done     chan struct{}
	writing  sync.Mutex                 // held while the answer is written
	recorder *httptest.ResponseRecorder // once done is closed, or while all goroutines are idle
	shown    int                        // how many bytes of the body a step has shown
}

// request sends an HTTP request.
func (p *player) request(st *step, m []string) error {
	name, method, path := m[0], m[1], m[2]
	path, err := p.bindings.fillText(path)
	if err != nil {
		return err
	}
	var body string
	if vs := st.values(); len(vs) > 1 {
		return fmt.Errorf("want one JSON value as the body of the request, got %d", len(vs))
	} else if len(vs) == 1 {
		filled, err := p.bindings.fill(vs[0])
		if err != nil {
			return err
		}
		body = filled.line()
	}
	return p.startCall(name, method, path, body)
}

// startCall sends an HTTP request, whose name no other has that waits for an answer.
func (p *player) startCall(name, method, path, body string) error {
	ctx, cancel := context.WithCancel(p.ctx)
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if strings.Contains(path, "/events") {
		r.Header.Set("Accept", "application/x-ndjson")
	}
	switch {
	case path == mcp.Path:
		mcpHeaders(r.Header, body)
	case strings.HasPrefix(path, a2a.Path) && !r.URL.Query().Has(a2awire.VersionHeader):
		r.Header.Set(a2awire.VersionHeader, a2awire.Version)
		r.Header.Set(a2awire.ExtensionsHeader, a2awire.CursorExtension)
	}
	if p.calls[name] != nil {
		cancel()
		return fmt.Errorf("http %s already waits for an answer", name)
	}
	call := &httpCall{stream: method == http.MethodGet && strings.HasPrefix(path, "/acp"), cancel: cancel, done: make(chan struct{}), recorder: httptest.NewRecorder()}
	p.calls[name] = call
	router := p.router()
	go func() {
		defer close(call.done)
		router.ServeHTTP(lockedRecorder{call.recorder, &call.writing}, r)
	}()
	return nil
}

// lockedRecorder records an answer that is read while it is written.
type lockedRecorder struct {
	*httptest.ResponseRecorder
	mu *sync.Mutex
}

func (l lockedRecorder) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ResponseRecorder.Write(b)
}

// router returns the HTTP endpoints of the hub.
func (p *player) router() http.Handler {
	if p.http == nil {
		r := chi.NewRouter()
		p.http = r
		p.acpHTTP = acp.NewHTTP(p.hub, acp.HTTPOptions{Session: acp.Options{Peers: p.acp, HubName: "dragoman"}})
		r.Method(http.MethodPost, "/acp", p.acpHTTP)
		r.Method(http.MethodGet, "/acp", p.acpHTTP)
		r.Handle("/mcp", p.mcp)
		r.Handle("/mcp/*", p.mcp)
		r.Handle(a2a.Path, p.a2a)
		r.Handle(a2a.Path+"/*", p.a2a)
		r.Handle(a2awire.CardPath, p.a2a)
		r.Mount("/v1", rest.New(p.hub, rest.Options{
			Principal: func(*http.Request) (core.Principal, error) {
				return core.Principal{ID: "local", Dialect: "rest", Operator: true}, nil
			},
		}))
	}
	return p.http
}

// checkAnswer compares the answer to an HTTP request with the step: the status, and the body if
// there is one. It then closes a stream of events.
func (p *player) checkAnswer(st *step, m []string) error {
	call := p.calls[m[0]]
	if call == nil {
		return fmt.Errorf("http %s has sent no request", m[0])
	}
	if call.stream {
		call.cancel()
		<-call.done
	}
	select {
	case <-call.done:
	default:
		return fmt.Errorf("there is no answer yet")
	}
	call.cancel()
	delete(p.calls, m[0])
	received := []*jsonValue{{text: strconv.Itoa(call.recorder.Code)}}
	body := call.recorder.Body.String()[call.shown:]
	if call.stream || call.recorder.Header().Get("Content-Type") == "text/event-stream" {
		body = eventLines(body)
	}
	for line := range strings.Lines(body) {
		v, err := parseJSON([]byte(line))
		if err != nil {
			return fmt.Errorf("the body is not JSON: %w:\n%s", err, call.recorder.Body)
		}
		received = append(received, v)
	}
	return p.check(st, received, false)
}

// checkStream compares what has come of an answer that is a stream, and has not been shown, with
// the step.
func (p *player) checkStream(st *step, m []string) error {
	call := p.calls[m[0]]
	if call == nil {
		return fmt.Errorf("http %s has sent no request", m[0])
	}
	call.writing.Lock()
	body := call.recorder.Body.String()
	call.writing.Unlock()
	var received []*jsonValue
	for line := range strings.Lines(eventLines(body[call.shown:])) {
		v, err := parseJSON([]byte(line))
		if err != nil {
			return err
		}
		received = append(received, v)
	}
	call.shown = len(body)
	return p.check(st, received, false)
}

// eventLines renders each server-sent event as a JSON object on a line: its id, its name if it has
// one, and its data.
func eventLines(stream string) string {
	var b strings.Builder
	for event := range strings.SplitSeq(stream, "\n\n") {
		var members []string
		for line := range strings.Lines(event) {
			key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			switch key {
			case "id", "event":
				members = append(members, fmt.Sprintf("%q:%q", key, value))
			case "data":
				members = append(members, `"data":`+value)
			}
		}
		if members != nil {
			b.WriteString("{" + strings.Join(members, ",") + "}\n")
		}
	}
	return b.String()
}
