package acp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	acpclient "github.com/dragoman-hub/dragoman/adapters/acp/client"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// readAll sends all further envelopes to the channel, as a live peer reads them.
func (a *peer) readAll() <-chan wire.Envelope {
	came := make(chan wire.Envelope, 64)
	go func() {
		defer close(came)
		for {
			raw, err := a.conn.Receive(context.Background())
			if err != nil {
				return
			}
			e, _ := wire.Decode(raw, 1<<30) // other tests check the envelopes
			came <- e
		}
	}()
	return came
}

// authenticated connects an authenticated peer, whose credential names the id.
func (s *setup) authenticated(p core.Principal, id core.AgentID) *peer {
	s.Helper()
	p.Authenticated, p.Credential = true, &core.Credential{Agents: []string{string(id)}}
	conn, ended := s.connect(acp.Options{Principal: p, AgentID: id})
	a := &peer{setup: s, conn: conn, ended: ended, name: p.ID}
	a.expect(wire.KindDiscover)
	return a
}

// declare sends capabilities.
func (a *peer) declare(id string) {
	a.Helper()
	a.send(`{"id":"%s","kind":"capabilities","payload":{"agent_name":"%s"}}`, id, id)
}

// replaced checks that the peer is informed of a newer connection.
func (a *peer) replaced() {
	a.Helper()
	a.refused("", wire.CodeConflict, "newer connection")
	if r := <-a.ended; r.Cause != link.Replaced {
		a.Errorf("%s: got %v, want that it was replaced", a.name, &r)
	}
}

func TestASecondConnectionOfALiveAgentDoesNotReplaceIt(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		fam := s.agent("fam", `{}`)
		came := fam.readAll()
		also := s.peer("fam")
		also.declare("c9")
		also.refused("c9", wire.CodeConflict, "fam")
		also.send(`{"id":"p","kind":"ping"}`)
		expect[wire.Pong](also, wire.KindPong, "p")
		task := s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("fam"), Content: "?"})
		fam.send(`{"id":"r1","kind":"response","ref":"%s","payload":{"summary":"here"}}`, (<-came).ID)
		s.ended(task)
	})
}

func TestASilentAgentIsReplacedByTheNextConnection(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		old := s.agent("fam", `{"agent_name":"old"}`)
		task := s.ask(s.plainSession("rest"), core.Request{To: core.ToAgent("fam"), Content: "?"})
		fresh := s.peer("fam")
		fresh.declare("new")
		// The pong of a ping after the capabilities proves that they were accepted.
		fresh.send(`{"id":"p","kind":"ping"}`)
		fresh.send(`{"id":"newer","kind":"capabilities","payload":{"agent_name":"newer"}}`)
		// The reader does not wait.
		fresh.send(`{"id":"d","kind":"discover"}`)
		if got := expect[wire.Capabilities](fresh, wire.KindCapabilities, "d"); got.Agents[0].AgentName != "old" {
			t.Errorf("meanwhile: got %+v, want the old one", got.Agents)
		}
		start := time.Now()
		expect[wire.Pong](fresh, wire.KindPong, "p")
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("the pong came after %v, want 2s", took)
		}
		s.until(func() bool { a, _ := s.hub.Agent(core.Principal{Operator: true}, "fam"); return a.Name == "newer" }, "the last capabilities count")
		if got := s.ended(task); got.Fault == nil || got.Fault.Code != core.CodeUnreachable {
			t.Errorf("its task: got %+v, want a failure", got)
		}
		old.expect(wire.KindQuery)
		old.expect(wire.KindCancel)
		old.replaced()
	})
}

func TestTheQueueOfATakeoverIsBounded(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		s.agent("fam", `{}`)
		fresh := s.peer("fam")
		fresh.declare("new")
		synctest.Wait() // it has left the queue
		for range 16 {
			fresh.send(`{"id":"%s","kind":"ping"}`, core.NewID())
		}
		fresh.send(`{"id":"more","kind":"ping"}`)
		fresh.refused("more", wire.CodeOverloaded, "still there")
		for range 16 {
			fresh.expect(wire.KindPong)
		}
		fresh.send(`{"id":"more","kind":"ping"}`)
		expect[wire.Pong](fresh, wire.KindPong, "more")
	})
}

func TestAnAuthenticatedPeerReplacesItsOlderConnectionAtOnce(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		alice := core.Principal{ID: "alice"}
		old := s.authenticated(alice, "fam")
		old.declare("old")
		s.until(func() bool { _, here := s.hub.Agent(core.Principal{Operator: true}, "fam"); return here }, "it is an agent")
		start := time.Now()
		fresh := s.authenticated(alice, "fam")
		fresh.declare("new")
		fresh.send(`{"id":"p","kind":"ping"}`)
		expect[wire.Pong](fresh, wire.KindPong, "p")
		if took := time.Since(start); took != 0 {
			t.Errorf("the takeover took %v, want no time", took)
		}
		old.replaced()
		bob := s.authenticated(core.Principal{ID: "bob"}, "fam")
		bob.declare("c")
		bob.refused("c", wire.CodeConflict, "fam")
		if a, _ := s.hub.Agent(core.Principal{Operator: true}, "fam"); a.Name != "new" {
			t.Errorf("got %q, want the newer one of alice", a.Name)
		}
	})
}

func TestAPeerThatLeavesDuringATakeoverLeavesNoAgent(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		s.agent("fam", `{"agent_name":"old"}`)
		fresh := s.peer("fam")
		fresh.declare("new")
		fresh.disconnect()
		<-time.After(3 * time.Second)
		if a, here := s.hub.Agent(core.Principal{Operator: true}, "fam"); !here || a.Name != "old" {
			t.Errorf("got %q, want the old one kept", a.Name)
		}
	})
}

func TestAPeerIsInformedThatItsTokenExpired(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		a := s.authenticated(core.Principal{ID: "alice", Until: time.Now().Add(time.Minute)}, "")
		a.refused("", wire.CodeNotAuthorized, "Token has expired")
		if r := <-a.ended; r.Cause != link.Unauthorized || r.Code != 4401 {
			t.Errorf("got %v with code %d, want unauthorized with %d", &r, r.Code, 4401)
		}
	})
}

func TestTheClientReturnsOnceItIsReplacedOrUnknown(t *testing.T) {
	for _, c := range []struct {
		code wire.Code
		want core.Fault
	}{
		{wire.CodeConflict, core.Fault{Code: core.CodeConflict, Message: "why", PeerCode: acpclient.Replaced}},
		{wire.CodeNotAuthorized, core.Fault{Code: core.CodeNotAuthorized, Message: "why"}},
	} {
		withHub(t, func(t *testing.T, s *setup) {
			hubEnd, agentEnd := pipe()
			done := make(chan error, 1)
			go func() {
				done <- acpclient.Work(context.Background(), agentEnd, core.Card{ID: "kit"}, nil, acpclient.WorkOptions{})
			}()
			a := &peer{setup: s, conn: hubEnd, name: "the hub"}
			a.expect(wire.KindCapabilities)
			a.send(`{"id":"1","from":"hub","kind":"error","ref":null,"payload":{"code":"%s","message":"why"}}`, c.code)
			var got *core.Fault
			if err := <-done; !errors.As(err, &got) || got.Code != c.want.Code || got.Message != c.want.Message || got.PeerCode != c.want.PeerCode {
				t.Errorf("%s: got %v, want %+v", c.code, err, c.want)
			}
		})
	}
}

// requestOf sends an HTTP request of fam and returns the status of the answer.
func requestOf(ctx context.Context, x *acp.HTTP, method, body string) int {
	r := httptest.NewRequestWithContext(ctx, method, "/acp", strings.NewReader(body))
	r.Header.Set("X-Agent-Id", "fam")
	w := httptest.NewRecorder()
	x.ServeHTTP(w, r)
	return w.Code
}

func TestAnHTTPPeerIsPresentWhileARequestIsOpen(t *testing.T) {
	for _, c := range []struct {
		name string
		// comes is what the peer does during the probe.
		comes   func(ctx context.Context, x *acp.HTTP)
		replace bool
		after   time.Duration
	}{
		{"silent", func(context.Context, *acp.HTTP) {}, true, 2 * time.Second},
		{"a GET is open", func(ctx context.Context, x *acp.HTTP) { requestOf(ctx, x, http.MethodGet, "") }, false, 0},
		{"reconnects in time", func(ctx context.Context, x *acp.HTTP) {
			<-time.After(1500 * time.Millisecond)
			requestOf(ctx, x, http.MethodPost, `{"id":"p","kind":"ping"}`)
		}, false, 1500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			withHub(t, func(t *testing.T, s *setup) {
				x := acp.NewHTTP(s.hub, acp.HTTPOptions{Session: acp.Options{Peers: s.peers}})
				if got := requestOf(t.Context(), x, http.MethodPost, `{"id":"c","kind":"capabilities","payload":{}}`); got != http.StatusAccepted {
					t.Fatalf("capabilities: got %d, want 202", got)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var reading sync.WaitGroup
				reading.Go(func() { c.comes(ctx, x) })
				fresh := s.peer("fam")
				synctest.Wait()
				start := time.Now()
				fresh.declare("new")
				if c.replace {
					fresh.send(`{"id":"p2","kind":"ping"}`)
					expect[wire.Pong](fresh, wire.KindPong, "p2")
				} else {
					fresh.refused("new", wire.CodeConflict, "fam")
				}
				if took := time.Since(start); took != c.after {
					t.Errorf("the takeover took %v, want %v", took, c.after)
				}
				cancel()
				reading.Wait()
				x.Close()
			})
		})
	}
}

func TestAPostOfCapabilitiesWaitsForTheTakeover(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		x := acp.NewHTTP(s.hub, acp.HTTPOptions{Session: acp.Options{Peers: s.peers}})
		defer x.Close()
		old := s.agent("fam", `{"agent_name":"old"}`)
		start := time.Now()
		if got := requestOf(t.Context(), x, http.MethodPost, `{"id":"c","kind":"capabilities","payload":{}}`); got != http.StatusAccepted {
			t.Errorf("with a silent old connection: got %d, want 202", got)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("the takeover took %v, want 2s", took)
		}
		old.replaced()
		alive := s.agent("gus", `{}`)
		alive.readAll()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/acp", strings.NewReader(`{"id":"c","from":"gus","kind":"capabilities","payload":{}}`))
		w := httptest.NewRecorder()
		x.ServeHTTP(w, r)
		if w.Code != http.StatusConflict {
			t.Errorf("with a live old connection: got %d, want 409", w.Code)
		}
	})
}
