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
	acpclient "github.com/dragoman-hub/dragoman/adapters/acp/client"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// stage is a hub and what connects to it, within a bubble of fake time.
type stage struct {
	*testing.T
	hub   *hub.Hub
	peers *acp.Peers
}

// onStage runs a test on a stage. The promises of the hub are checked in the end.
func onStage(t *testing.T, play func(t *testing.T, s *stage)) { onStageWith(t, hub.Options{}, play) }

func onStageWith(t *testing.T, opts hub.Options, play func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{T: t, hub: coretest.NewHub(t, opts), peers: acp.NewPeers(acp.PeersOptions{})}
		play(t, s)
	})
}

// plug connects an end to the hub.
func (s *stage) plug(opts acp.Options) (conn *coretest.End[[]byte, []byte], reason <-chan link.Reason) {
	s.Helper()
	ours, theirs := coretest.Pipe[[]byte, []byte](4096)
	if opts.Peers == nil {
		opts.Peers = s.peers
	}
	ended := make(chan link.Reason, 1)
	var wg sync.WaitGroup
	wg.Go(func() { ended <- acp.Serve(context.Background(), s.hub, ours, opts) })
	s.Cleanup(func() {
		_ = theirs.Close(link.Reason{Cause: link.PeerGone})
		wg.Wait()
	})
	return theirs, ended
}

// actor is a peer whose envelopes the test writes itself.
type actor struct {
	*stage
	conn  *coretest.End[[]byte, []byte]
	ended <-chan link.Reason
	name  string
}

// enter connects an actor. The discover that greets it is taken off.
func (s *stage) enter(name string) *actor {
	s.Helper()
	a := s.stranger(name)
	a.say(`{"v":1,"id":"%s","from":"%s","kind":"hello","ref":"none","payload":{"protocol_versions":[1]}}`, core.NewID(), name)
	a.expect(wire.KindDiscover)
	return a
}

// stranger connects an actor that says nothing.
func (s *stage) stranger(name string) *actor {
	s.Helper()
	conn, ended := s.plug(acp.Options{})
	return &actor{stage: s, conn: conn, ended: ended, name: name}
}

// agent connects an actor that has said what it can do.
func (s *stage) agent(name, capabilities string) *actor {
	s.Helper()
	a := s.enter(name)
	a.say(`{"v":1,"id":"%s","from":"%s","kind":"capabilities","payload":%s}`, core.NewID(), name, capabilities)
	a.until(func() bool { _, ok := s.hub.Agent(core.AgentID(name)); return ok }, "it is an agent")
	return a
}

// say sends an envelope as it is written.
func (a *actor) say(format string, args ...any) {
	a.Helper()
	text := format
	if len(args) > 0 {
		text = fmt.Sprintf(format, args...)
	}
	if err := a.conn.Send(a.Context(), []byte(text)); err != nil {
		a.Fatalf("%s says %s: got %v, want no error", a.name, text, err)
	}
}

// next returns what comes next.
func (a *actor) next() wire.Envelope {
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
		a.Fatalf("%s received %s: got %v, want an envelope that obeys its schema", a.name, raw, err)
	}
	return e
}

// expect returns what comes next, which is of a kind.
func (a *actor) expect(kind wire.Kind) wire.Envelope {
	a.Helper()
	e := a.next()
	if e.Kind != kind {
		a.Fatalf("%s received %s, want a %s", a.name, e.Raw, kind)
	}
	return e
}

// read reads the payload of what comes next, which is of a kind and answers ref.
func expect[P any](a *actor, kind wire.Kind, ref string) P {
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

// refused checks that what comes next is an error that answers ref.
func (a *actor) refused(ref string, code wire.Code, about string) {
	a.Helper()
	got := expect[wire.Error](a, wire.KindError, ref)
	if got.Code != code || !strings.Contains(got.Message, about) {
		a.Errorf("%s: got %v, want %s with a message about %q", a.name, &got, code, about)
	}
}

// silent checks that nothing comes, however long one waits for what is under way.
func (a *actor) silent() {
	a.Helper()
	synctest.Wait()
	ctx, cancel := context.WithTimeout(a.Context(), time.Nanosecond)
	defer cancel()
	if raw, err := a.conn.Receive(ctx); err == nil {
		a.Fatalf("%s received %s, want nothing", a.name, raw)
	}
}

// leave cuts the connection.
func (a *actor) leave() {
	a.Helper()
	_ = a.conn.Close(link.Reason{Cause: link.PeerGone})
	<-a.ended
}

// until waits for what is under way and checks that something is so.
func (s *stage) until(so func() bool, what string) {
	s.Helper()
	synctest.Wait()
	if !so() {
		s.Fatalf("waited until %s: got false, want true", what)
	}
}

// counted checks a counter of the hub.
func (s *stage) counted(name string, want int64) {
	s.Helper()
	synctest.Wait()
	if got := s.hub.Counters()[name]; got != want {
		s.Errorf("counter %s: got %d, want %d", name, got, want)
	}
}

// employ connects an agent that answers with a handler.
func (s *stage) employ(card core.Card, opts acpclient.WorkOptions, handle core.Handler) {
	s.Helper()
	conn, _ := s.plug(acp.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = acpclient.Work(ctx, conn, card, handle, opts) })
	s.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	s.until(func() bool { _, ok := s.hub.Agent(card.ID); return ok }, "the agent is here")
}

// client connects a client.
func (s *stage) client(opts acpclient.Options) *acpclient.Client {
	s.Helper()
	conn, _ := s.plug(acp.Options{})
	c := acpclient.New(conn, opts)
	s.Cleanup(c.Close)
	return c
}

// plain opens a session of the hub itself, of no dialect that translates.
func (s *stage) plain(id string) *hub.Session {
	s.Helper()
	p := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: id, Dialect: "plain"}, Dialect: "plain"})
	s.Cleanup(func() { p.Close(nil) })
	return p
}

// news returns the next batch of a session of the hub.
func (s *stage) news(p *hub.Session) hub.Batch {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Hour)
	defer cancel()
	b, err := p.Next(ctx)
	if err != nil {
		s.Fatalf("waiting for news: got %v, want some", err)
	}
	return b
}

// pong is the payload of a pong.
func pong(status string, uptime, active int64, name string) wire.Pong {
	return wire.Pong{Status: status, UptimeSecs: uptime, ActiveTasks: active, AgentName: name}
}

// sameMeaning compares requests and answers.
var sameMeaning = cmp.Options{cmpopts.EquateEmpty(), cmp.AllowUnexported(core.Address{}, core.Fault{})}

var nilReason = link.Reason{Cause: link.Normal}

// pipe is a connection between a test that plays the hub and an agent's end.
func pipe() (ours, theirs *coretest.End[[]byte, []byte]) {
	return coretest.Pipe[[]byte, []byte](64)
}

// alias is the hex id of an agent as text.
func alias(id core.AgentID) string { return string(roster.Alias(id)) }
