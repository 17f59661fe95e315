package acp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// testServer is a hub behind a real HTTP server.
type testServer struct {
	*testing.T
	*setup
	url    string
	client *http.Client
	acp    *acp.HTTP
}

func newServer(t *testing.T, opts acp.HTTPOptions) *testServer {
	t.Helper()
	s := &setup{T: t, hub: coretest.NewHub(t, hub.Options{})}
	s.peers = acp.NewPeers(s.hub, acp.PeersOptions{})
	opts.Session.Peers = s.peers
	x := acp.NewHTTP(s.hub, opts)
	server := httptest.NewServer(x)
	t.Cleanup(func() {
		x.Close()
		server.Close()
	})
	return &testServer{t, s, server.URL, server.Client(), x}
}

// post sends an envelope and returns the answer.
func (s *testServer) post(header, envelope string) (status int, answer wire.Envelope) {
	s.T.Helper()
	status, body := s.send(s.T.Context(), header, envelope)
	if len(body) == 0 {
		return status, wire.Envelope{}
	}
	e, err := wire.Decode(body, 1<<30)
	if err == nil {
		err = e.Check()
	}
	if err != nil {
		s.T.Fatalf("POST %s: got %s, want an envelope: %v", envelope, body, err)
	}
	return status, e
}

func (s *testServer) send(ctx context.Context, header, envelope string) (int, []byte) {
	s.T.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(envelope))
	if err != nil {
		s.T.Fatal(err)
	}
	if header != "" {
		req.Header.Set("X-Agent-Id", header)
	}
	res, err := s.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return 0, nil
		}
		s.T.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.T.Fatal(err)
	}
	return res.StatusCode, body
}

// eventStream is the stream of events of a GET.
type eventStream struct {
	s      *testServer
	lines  *bufio.Scanner
	cancel func()
	last   string
}

func (s *testServer) read(agent, lastEventID string) *eventStream {
	s.T.Helper()
	ctx, cancel := context.WithCancel(s.T.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"?agent_id="+agent, nil)
	if err != nil {
		s.T.Fatal(err)
	}
	if lastEventID != "" {
		req.Header.Set("Last-Event-ID", lastEventID)
	}
	res, err := s.client.Do(req)
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() {
		cancel()
		res.Body.Close()
	})
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		s.T.Fatalf("GET: got %d of %s, want 200 of text/event-stream", res.StatusCode, res.Header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 4<<20)
	return &eventStream{s, lines, cancel, ""}
}

// event returns the next event and its data.
func (r *eventStream) event() (name, data string) {
	r.s.T.Helper()
	for r.lines.Scan() {
		key, value, _ := strings.Cut(r.lines.Text(), ": ")
		switch key {
		case "id":
			r.last = value
		case "event":
			name = value
		case "data":
			data = value
		case "":
			if data != "" {
				return name, data
			}
		}
	}
	return "end", ""
}

// expect returns the next envelope, which must be of the kind.
func (r *eventStream) expect(kind wire.Kind) wire.Envelope {
	r.s.T.Helper()
	name, data := r.event()
	e, err := wire.Decode([]byte(data), 1<<30)
	if err == nil {
		err = e.Check()
	}
	if name != "" || err != nil || e.Kind != kind {
		r.s.T.Fatalf("read event %q %s: got error %v, want a %s", name, data, err, kind)
	}
	return e
}

// work connects an agent of another dialect that answers every task with a function.
func (s *testServer) work(id string, features core.Features, do func(*hub.Session, *task.Task)) {
	s.T.Helper()
	p := s.plainAgent(id, core.Card{MaxConcurrent: 8, Features: features})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			b, err := p.Next(ctx)
			if err != nil {
				return
			}
			for _, e := range b.Events {
				switch e.Body.(type) {
				case core.Assigned:
					do(p, b.Task)
				case core.CancelRequested:
					_ = p.Report(b.Task.ID(), core.Cancelled{Reason: "as asked"}, nil)
				}
			}
		}
	})
	s.T.Cleanup(func() {
		cancel()
		wg.Wait()
	})
}

func echo(p *hub.Session, t *task.Task) {
	r := t.Request()
	if r.Intent == core.IntentNotify {
		p.Delivered(t.ID())
		return
	}
	_ = p.Report(t.ID(), core.Text{Text: r.Content}, nil)
	_ = p.Report(t.ID(), core.Done{}, nil)
}

func TestAPostWaitsForItsAnswer(t *testing.T) {
	s := newServer(t, acp.HTTPOptions{})
	s.work("echo", core.FeatureNotices, echo)
	for _, c := range []struct {
		say    string
		status int
		kind   wire.Kind
		want   string
	}{
		{`{"id":"1","from":"kit","to":"echo","kind":"query","payload":{"question":"hi"}}`, 200, wire.KindResponse, `{"data":null,"summary":"hi","truncated":false}`},
		{`{"id":"2","from":"kit","to":"echo","kind":"delegate","payload":{"task":"hi","report_back":false}}`, 200, wire.KindAck, `{"accepted":true`},
		{`{"id":"3","from":"kit","kind":"ping"}`, 200, wire.KindPong, `"agent_name":"Dragoman"`},
		{`{"id":"4","from":"kit","to":"echo","kind":"discover"}`, 200, wire.KindCapabilities, `"agent_name":"echo"`},
		{`{"id":"5","from":"kit","kind":"hello","payload":{"protocol_versions":[1]}}`, 200, wire.KindHello, `"selected_version":1`},
		{`{"id":"6","from":"kit","kind":"cancel","ref":"1"}`, 200, wire.KindAck, `{"accepted":false}`},
		{`{"id":"7","from":"kit","to":"echo","kind":"notify","payload":{"topic":"a"}}`, 202, "", ""},
		{`{"id":"8","from":"kit","kind":"pong","payload":{"status":"idle"}}`, 202, "", ""},
	} {
		status, e := s.post("", c.say)
		if status != c.status || e.Kind != c.kind || !strings.Contains(string(e.Payload), c.want) {
			t.Errorf("POST %s:\ngot  %d %s\nwant %d %s with %s", c.say, status, e.Raw, c.status, c.kind, c.want)
		}
		if e.Kind != "" && (e.To != "kit" || e.Ref == "") {
			t.Errorf("POST %s: got %s, want it to kit with a ref", c.say, e.Raw)
		}
	}
}

func TestAnErrorOverHTTPIsAnEnvelopeWithAFittingStatus(t *testing.T) {
	s := newServer(t, acp.HTTPOptions{})
	s.work("echo", 0, echo)
	for _, c := range []struct {
		header, say string
		status      int
		code        wire.Code
		ref         string
	}{
		{"", `{"id":"1","from":"kit","to":"nobody","kind":"query","payload":{"question":"hi"}}`, 404, wire.CodePeerNotFound, "1"},
		{"", `{"id":"2","from":"kit","kind":"query","payload":{"question":"hi","domain":"d"}}`, 404, wire.CodeUnknownDomain, "2"},
		{"", `{"id":"3","from":"kit","to":"echo","kind":"notify","payload":{"topic":"t"}}`, 422, wire.CodeUnsupported, "3"},
		{"", `{"id":"4","from":"kit","to":"echo","kind":"frobnicate"}`, 400, wire.CodeUnknownKind, "4"},
		{"", `{"id":"5","from":"kit","kind":"query","payload":{}}`, 400, wire.CodeInvalidEnvelope, "5"},
		{"", `{"id":"6","kind":"ping"}`, 400, wire.CodeInvalidEnvelope, "6"},
		{"", `{"v":2,"id":"7","from":"kit","kind":"ping"}`, 400, wire.CodeIncompatibleVersion, "7"},
		{"", `nonsense`, 400, wire.CodeInvalidEnvelope, ""},
		{"", strings.Repeat("x", wire.DefaultMaxEnvelopeBytes+1), 413, wire.CodeTooLarge, ""},
		{"eve", `{"id":"8","from":"kit","kind":"ping"}`, 403, wire.CodeNotAuthorized, "8"},
		{"", `{"id":"9","from":"*","kind":"ping"}`, 400, wire.CodeInvalidEnvelope, "9"},
		{"", `{"id":"10","from":"kit","kind":"response","ref":"x","payload":{"summary":"y"}}`, 403, wire.CodeNotAuthorized, "10"},
	} {
		status, e := s.post(c.header, c.say)
		var got wire.Error
		if e.Kind == wire.KindError {
			if err := e.Read(&got); err != nil {
				t.Fatal(err)
			}
		}
		if status != c.status || got.Code != c.code || e.Ref != c.ref {
			t.Errorf("POST %.80s: got %d %s, want %d %s with ref %q", c.say, status, e.Raw, c.status, c.code, c.ref)
		}
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		req, _ := http.NewRequest(method, s.url, nil)
		res, err := s.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 405 || res.Header.Get("Allow") != "GET, POST" {
			t.Errorf("%s: got %d allowing %q, want 405 allowing GET, POST", method, res.StatusCode, res.Header.Get("Allow"))
		}
	}
	res, err := s.client.Get(s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	said, _ := io.ReadAll(res.Body)
	if want := "say who you are: in the header X-Agent-Id, by ?agent_id=, or in the from of a POST"; res.StatusCode != 400 || !strings.Contains(string(said), want) {
		t.Errorf("GET without an identity: got %d %s, want 400 and %q", res.StatusCode, said, want)
	}
}

func TestTheFailureOfAQueryOverHTTPHasItsStatus(t *testing.T) {
	s := newServer(t, acp.HTTPOptions{})
	s.work("sick", 0, func(p *hub.Session, t *task.Task) {
		_ = p.Report(t.ID(), core.Failed{Fault: core.NewFault(core.Code(t.Request().Content), "because")}, nil)
	})
	for _, code := range core.Codes() {
		status, e := s.post("", fmt.Sprintf(`{"id":"%s","from":"kit","to":"sick","kind":"query","payload":{"question":"%s"}}`, core.NewID(), code))
		want, said := wire.HTTPStatus(code), wire.ErrorOf(core.NewFault(code, "")).Code
		switch code {
		case core.CodeUnauthenticated:
			want = wire.HTTPStatus(core.CodeNotAuthorized) // ACP has one code for both
		case core.CodeUnknownTask:
			want = wire.HTTPStatus(core.CodeUnknownAgent)
		}
		if status != want || !strings.Contains(string(e.Payload), string(said)) {
			t.Errorf("%s: got %d %s, want %d %s", code, status, e.Raw, want, said)
		}
	}
}

func TestEnvelopesForAnHTTPPeerAreResumableEvents(t *testing.T) {
	s := newServer(t, acp.HTTPOptions{})
	release := make(chan struct{})
	s.work("doer", 0, func(p *hub.Session, t *task.Task) {
		<-release
		echo(p, t)
	})
	status, _ := s.post("", `{"id":"d1","from":"kit","to":"doer","kind":"delegate","payload":{"task":"one"}}`)
	if status != 200 {
		t.Fatalf("delegate: got %d, want 200", status)
	}
	r := s.read("kit", "")
	r.expect(wire.KindDiscover)
	release <- struct{}{}
	if e := r.expect(wire.KindResult); e.Ref != "d1" {
		t.Errorf("got %s, want the result of d1", e.Raw)
	}
	last := r.last
	r.cancel()
	s.post("", `{"id":"d2","from":"kit","to":"doer","kind":"delegate","payload":{"task":"two"}}`)
	s.post("", `{"id":"d3","from":"kit","to":"doer","kind":"delegate","payload":{"task":"three"}}`)
	release <- struct{}{}
	release <- struct{}{}
	for range 2 { // events can be read again
		r = s.read("kit", last)
		if e := r.expect(wire.KindResult); e.Ref != "d2" {
			t.Errorf("got %s, want the result of d2", e.Raw)
		}
		if e := r.expect(wire.KindResult); e.Ref != "d3" {
			t.Errorf("got %s, want the result of d3", e.Raw)
		}
		r.cancel()
	}
	r = s.read("kit", "other-7")
	if name, data := r.event(); name != "gap" || data != `{"missed":0}` {
		t.Errorf("after an outdated id: got %s %s, want a gap of unknown size", name, data)
	}
}

// After a restart nothing is kept for a peer until it posts again: that its earlier id is unknown is said at once.
func TestAStreamOfAnUnknownPeerThatContinuesBeginsWithAGap(t *testing.T) {
	s := newServer(t, acp.HTTPOptions{})
	r := s.read("kit", "another-hub-7")
	if name, data := r.event(); name != "gap" || data != `{"missed":0}` {
		t.Errorf("got %s %s, want a gap of unknown size", name, data)
	}
	s.post("kit", `{"id":"p1","kind":"ping","payload":{}}`)
	r.expect(wire.KindDiscover) // and no second gap
}

func TestAnHTTPPeerAnswersAsAnAgent(t *testing.T) {
	s := newServer(t, acp.HTTPOptions{})
	r := s.read("fam", "") // a GET makes no peer
	if status, _ := s.post("fam", `{"id":"c1","kind":"capabilities","payload":{"domains":["family"]}}`); status != 202 {
		t.Fatalf("capabilities: got %d, want 202", status)
	}
	r.expect(wire.KindDiscover)
	answer := make(chan wire.Envelope)
	go func() {
		_, e := s.post("", `{"id":"q1","from":"kit","to":"domain:family","kind":"query","payload":{"question":"when?","x":1}}`)
		answer <- e
	}()
	if got, want := string(r.expect(wire.KindQuery).Raw), `{"id":"q1","from":"kit","to":"fam","kind":"query","payload":{"question":"when?","x":1}}`; got != want {
		t.Errorf("the query:\ngot  %s\nwant %s", got, want)
	}
	if status, _ := s.post("", `{"id":"r1","from":"fam","kind":"response","ref":"q1","payload":{"summary":"Mon","y":2}}`); status != 202 {
		t.Fatalf("response: got %d, want 202", status)
	}
	if got, want := string((<-answer).Raw), `{"id":"r1","from":"fam","kind":"response","ref":"q1","payload":{"summary":"Mon","y":2},"to":"kit"}`; got != want {
		t.Errorf("the response:\ngot  %s\nwant %s", got, want)
	}
}

func TestAGETMakesNoPeer(t *testing.T) {
	s := newServer(t, acp.HTTPOptions{MaxPeers: 1})
	for range 3 {
		s.read("nobody", "").cancel()
	}
	reader := s.read("kit", "")
	if status, _ := s.post("kit", `{"id":"c1","kind":"capabilities","payload":{}}`); status != 202 {
		t.Errorf("the one peer: got %d, want 202", status)
	}
	reader.expect(wire.KindDiscover)
	s.read("another", "").cancel()
	if status, _ := s.post("kit", `{"id":"c2","kind":"capabilities","payload":{}}`); status != 202 {
		t.Errorf("the one peer, later: got %d, want 202", status)
	}
}

func TestAClosedPostCancelsItsQuery(t *testing.T) {
	s := newServer(t, acp.HTTPOptions{})
	taken := make(chan *task.Task, 1)
	s.work("slow", core.FeatureCancellation, func(_ *hub.Session, t *task.Task) { taken <- t })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.send(ctx, "", `{"id":"q1","from":"kit","to":"slow","kind":"query","payload":{"question":"?"}}`)
	}()
	task := <-taken
	watcher := s.plainSession("kit")
	if err := watcher.Watch(task, core.Cursor{}, nil); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-done
	for {
		b := s.nextBatch(watcher)
		if last := b.Events[len(b.Events)-1].Body; last.Kind().Ends() {
			if last.Kind() != core.KindCancelled {
				t.Errorf("the query: got %s, want cancelled", last.Kind())
			}
			break
		}
	}
	if status, e := s.post("", `{"id":"q1","from":"kit","to":"slow","kind":"query","payload":{"question":"?"}}`); status != 409 {
		t.Errorf("the same id again: got %d %s, want 409", status, e.Raw)
	}
}

func TestCloseEndsTheRequestsThatWait(t *testing.T) {
	s := newServer(t, acp.HTTPOptions{})
	taken := make(chan struct{}, 1)
	s.work("slow", 0, func(*hub.Session, *task.Task) { taken <- struct{}{} })
	unknown, r := s.read("nobody", ""), s.read("kit", "")
	if status, _ := s.post("kit", `{"id":"p","kind":"ping"}`); status != 200 {
		t.Fatalf("ping: got %d, want 200", status)
	}
	r.expect(wire.KindDiscover)
	status := make(chan int, 1)
	go func() {
		got, _ := s.post("", `{"id":"q1","from":"kit","to":"slow","kind":"query","payload":{"question":"?"}}`)
		status <- got
	}()
	<-taken
	s.acp.Close()
	if got := <-status; got != 502 && got != 409 {
		t.Errorf("the query that was held: got %d, want 502 or 409", got)
	}
	for _, stream := range []*eventStream{r, unknown} {
		for name := ""; name != "end"; {
			name, _ = stream.event()
		}
	}
	if got, _ := s.post("", `{"id":"p1","from":"kit","kind":"ping"}`); got != 502 {
		t.Errorf("a ping after the end: got %d, want 502", got)
	}
}

func TestTheErrorForAnotherAgentIDNamesTheSetting(t *testing.T) {
	s := newServer(t, acp.HTTPOptions{Identify: func(*http.Request) (core.Principal, core.AgentID, error) {
		return core.Principal{ID: "bob", Authenticated: true}, "", nil
	}})
	for header, want := range map[string]string{
		"":    `your token makes you \"bob\", not \"zed\": leave from out, or say in the header X-Agent-Id which agent you are`,
		"kit": `you are \"kit\" and \"zed\" at once: send one identity`,
	} {
		status, e := s.post(header, `{"id":"1","from":"zed","kind":"ping"}`)
		if status != 403 || !strings.Contains(string(e.Raw), want) {
			t.Errorf("X-Agent-Id %q: got %d %s, want 403 and %s", header, status, e.Raw, want)
		}
	}
	if status, e := s.post("zed", `{"id":"2","from":"zed","kind":"ping"}`); status != 200 || e.Kind != wire.KindPong {
		t.Errorf("got %d %s, want a pong for zed", status, e.Raw)
	}
}
