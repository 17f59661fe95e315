package acp_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/acp/acptest"
	acpclient "github.com/dragoman-hub/dragoman/adapters/acp/client"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// setup is a hub and its connections, under a fake clock.
type setup struct {
	*testing.T
	hub   *hub.Hub
	peers *acp.Peers
}

// withHub runs a test with a hub. The promises of the hub are checked at the end.
func withHub(t *testing.T, test func(t *testing.T, s *setup)) { withHubOptions(t, hub.Options{}, test) }

func withHubOptions(t *testing.T, opts hub.Options, test func(t *testing.T, s *setup)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &setup{T: t, hub: coretest.NewHub(t, opts)}
		s.peers = acp.NewPeers(s.hub, acp.PeersOptions{})
		test(t, s)
	})
}

// connect connects a peer to the hub.
func (s *setup) connect(opts acp.Options) (conn *coretest.End[[]byte, []byte], reason <-chan link.Reason) {
	s.Helper()
	ours, theirs := coretest.Pipe[[]byte, []byte](4096)
	if opts.Peers == nil {
		opts.Peers = s.peers
	}
	ended := make(chan link.Reason, 1)
	var wg sync.WaitGroup
	wg.Go(func() { ended <- acp.Serve(context.Background(), s.hub, ours, &opts) })
	s.Cleanup(func() {
		_ = theirs.Close(link.Reason{Cause: link.PeerGone})
		wg.Wait()
	})
	return theirs, ended
}

// peer is an ACP peer whose envelopes the test writes.
type peer struct {
	*setup
	conn  *coretest.End[[]byte, []byte]
	ended <-chan link.Reason
	name  string
}

// peer connects a peer and receives the initial discover.
func (s *setup) peer(name string) *peer {
	s.Helper()
	a := s.silentPeer(name)
	a.send(`{"v":1,"id":"%s","from":"%s","kind":"hello","ref":"none","payload":{"protocol_versions":[1]}}`, core.NewID(), name)
	a.expect(wire.KindDiscover)
	return a
}

// silentPeer connects a peer that sends nothing.
func (s *setup) silentPeer(name string) *peer {
	s.Helper()
	conn, ended := s.connect(acp.Options{})
	return &peer{setup: s, conn: conn, ended: ended, name: name}
}

// agent connects a peer that has sent its capabilities.
func (s *setup) agent(name, capabilities string) *peer {
	s.Helper()
	a := s.peer(name)
	a.send(`{"v":1,"id":"%s","from":"%s","kind":"capabilities","payload":%s}`, core.NewID(), name, capabilities)
	a.until(func() bool { _, ok := s.hub.Agent(core.Principal{Operator: true}, core.AgentID(name)); return ok }, "it is an agent")
	return a
}

// send sends an envelope verbatim.
func (a *peer) send(format string, args ...any) {
	a.Helper()
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	if err := a.conn.Send(a.Context(), []byte(text)); err != nil {
		a.Fatalf("%s sends %s: got %v, want no error", a.name, text, err)
	}
}

// next returns the next envelope.
func (a *peer) next() wire.Envelope {
	a.Helper()
	ctx, cancel := context.WithTimeout(a.Context(), time.Hour)
	defer cancel()
	raw, err := a.conn.Receive(ctx)
	if err != nil {
		a.Fatalf("%s waits for an envelope: got %v, want one", a.name, err)
	}
	e, err := wire.Decode(raw, 1<<30)
	if err == nil {
		err = e.Check()
	}
	if err != nil {
		a.Fatalf("%s received %s: got %v, want an envelope that matches its schema", a.name, raw, err)
	}
	return e
}

// expect returns the next envelope, which must be of the kind.
func (a *peer) expect(kind wire.Kind) wire.Envelope {
	a.Helper()
	e := a.next()
	if e.Kind != kind {
		a.Fatalf("%s received %s, want a %s", a.name, e.Raw, kind)
	}
	return e
}

// expect returns the payload of the next envelope, which must be of the kind and answer ref.
func expect[P any](a *peer, kind wire.Kind, ref string) P {
	a.Helper()
	e := a.expect(kind)
	if e.Ref != ref {
		a.Fatalf("%s received %s, want ref %q", a.name, e.Raw, ref)
	}
	var p P
	if err := e.Read(&p); err != nil {
		a.Fatalf("%s received %s: got %v, want a payload of %s", a.name, e.Raw, err, kind)
	}
	return p
}

// refused checks that the next envelope is an error that answers ref.
func (a *peer) refused(ref string, code wire.Code, about string) {
	a.Helper()
	got := expect[wire.Error](a, wire.KindError, ref)
	if got.Code != code || !strings.Contains(got.Message, about) {
		a.Errorf("%s: got %v, want %s with a message about %q", a.name, &got, code, about)
	}
}

// expectNothing checks that no envelope comes once all goroutines are idle.
func (a *peer) expectNothing() {
	a.Helper()
	synctest.Wait()
	ctx, cancel := context.WithTimeout(a.Context(), time.Nanosecond)
	defer cancel()
	if raw, err := a.conn.Receive(ctx); err == nil {
		a.Fatalf("%s received %s, want nothing", a.name, raw)
	}
}

// disconnect breaks the connection.
func (a *peer) disconnect() {
	a.Helper()
	synctest.Wait() // the hub knows by now that what was received was sent
	_ = a.conn.Close(link.Reason{Cause: link.PeerGone})
	<-a.ended
}

// until checks a condition once all goroutines are idle.
func (s *setup) until(so func() bool, what string) {
	s.Helper()
	synctest.Wait()
	if !so() {
		s.Fatalf("waited until %s: got false, want true", what)
	}
}

// counted checks a counter of the hub.
func (s *setup) counted(name string, want int64) {
	s.Helper()
	synctest.Wait()
	if got := s.hub.Counters()[name]; got != want {
		s.Errorf("counter %s: got %d, want %d", name, got, want)
	}
}

// work connects an agent that answers with a handler.
func (s *setup) work(card core.Card, opts acpclient.WorkOptions, handle core.Handler) {
	s.Helper()
	conn, _ := s.connect(acp.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = acpclient.Work(ctx, conn, card, handle, opts) })
	s.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	s.until(func() bool { _, ok := s.hub.Agent(core.Principal{Operator: true}, card.ID); return ok }, "the agent is here")
}

// client connects a client.
func (s *setup) client(opts acptest.Options) *acptest.Client {
	s.Helper()
	conn, _ := s.connect(acp.Options{})
	c := acptest.New(conn, opts)
	s.Cleanup(c.Close)
	return c
}

// plainSession opens a session of the hub without a dialect.
func (s *setup) plainSession(id string) *hub.Session {
	s.Helper()
	p := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: id, Dialect: "plain"}, Dialect: "plain"})
	s.Cleanup(func() { p.Close(nil) })
	return p
}

// nextBatch returns the next batch of a session of the hub.
func (s *setup) nextBatch(p *hub.Session) hub.Batch {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Hour)
	defer cancel()
	b, err := p.Next(ctx)
	if err != nil {
		s.Fatalf("waiting for a batch: got %v, want one", err)
	}
	return b
}

// pong returns the payload of a pong.
func pong(status string, uptime, active int64, name string) wire.Pong {
	return wire.Pong{Status: status, UptimeSecs: uptime, ActiveTasks: active, AgentName: name}
}

// sameMeaning compares requests and answers.
var sameMeaning = cmp.Options{cmpopts.EquateEmpty(), cmp.AllowUnexported(core.Address{}, core.Fault{})}

var nilReason = link.Reason{Cause: link.Normal}

// pipe connects a client with a test that acts as the hub.
func pipe() (ours, theirs *coretest.End[[]byte, []byte]) {
	return coretest.Pipe[[]byte, []byte](64)
}

// alias returns the hex id of an agent as text.
func alias(id core.AgentID) string { return string(roster.Alias(id)) }
