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

// listening has an actor read from now on, as a peer does that is there; what comes
// to it is in the channel.
func (a *actor) listening() <-chan wire.Envelope {
	came := make(chan wire.Envelope, 64)
	go func() {
		defer close(came)
		for {
			raw, err := a.conn.Receive(context.Background())
			if err != nil {
				return
			}
			e, _ := wire.Decode(raw, 1<<30) // what the hub sends; the other tests read it closely
			came <- e
		}
	}()
	return came
}

// knownAs connects an actor that authenticated.
func (s *stage) knownAs(p core.Principal, id core.AgentID) *actor {
	s.Helper()
	p.Authenticated = true
	conn, ended := s.plug(acp.Options{Principal: p, AgentID: id})
	a := &actor{stage: s, conn: conn, ended: ended, name: p.ID}
	a.expect(wire.KindDiscover)
	return a
}

// introduces has an actor say what it can do.
func (a *actor) introduces(id string) {
	a.Helper()
	a.say(`{"id":"%s","kind":"capabilities","payload":{"agent_name":"%s"}}`, id, id)
}

// replaced checks that an actor learns that a newer connection has its place.
func (a *actor) replaced() {
	a.Helper()
	a.refused("", wire.CodeConflict, "newer connection")
	if r := <-a.ended; r.Cause != link.Replaced {
		a.Errorf("%s: got %v, want it replaced", a.name, &r)
	}
}

func TestASecondConnectionOfAnAgentThatIsThereAsksButDoesNotTakeItsPlace(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		fam := s.agent("fam", `{}`)
		came := fam.listening()
		also := s.enter("fam")
		also.introduces("c9")
		also.refused("c9", wire.CodeConflict, "fam")
		also.say(`{"id":"p","kind":"ping"}`)
		expect[wire.Pong](also, wire.KindPong, "p")
		task := s.ask(s.plain("rest"), core.Request{To: core.ToAgent("fam"), Content: "?"})
		fam.say(`{"id":"r1","kind":"response","ref":"%s","payload":{"summary":"here"}}`, (<-came).ID)
		s.ended(task)
	})
}

func TestAnAgentThatIsSilentLosesItsPlaceToTheNextConnection(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		old := s.agent("fam", `{"agent_name":"old"}`)
		task := s.ask(s.plain("rest"), core.Request{To: core.ToAgent("fam"), Content: "?"})
		fresh := s.enter("fam")
		fresh.introduces("new")
		// A ping behind the capabilities is what tells that they were taken.
		fresh.say(`{"id":"p","kind":"ping"}`)
		fresh.say(`{"id":"newer","kind":"capabilities","payload":{"agent_name":"newer"}}`)
		// The reader waits for nothing.
		fresh.say(`{"id":"d","kind":"discover"}`)
		if got := expect[wire.Capabilities](fresh, wire.KindCapabilities, "d"); got.Agents[0].AgentName != "old" {
			t.Errorf("meanwhile: got %+v, want the old one", got.Agents)
		}
		start := time.Now()
		expect[wire.Pong](fresh, wire.KindPong, "p")
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("the pong came after %v, want 2s", took)
		}
		s.until(func() bool { a, _ := s.hub.Agent("fam"); return a.Name == "newer" }, "the last capabilities count")
		if got := s.ended(task); got.Fault == nil || got.Fault.Code != core.CodeUnreachable {
			t.Errorf("its task: got %+v, want it failed", got)
		}
		old.expect(wire.KindQuery)
		old.expect(wire.KindCancel)
		old.replaced()
	})
}

func TestWhatWaitsForAContestIsBounded(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.agent("fam", `{}`)
		fresh := s.enter("fam")
		fresh.introduces("new")
		synctest.Wait() // it is being settled, and in line no more
		for range 16 {
			fresh.say(`{"id":"%s","kind":"ping"}`, core.NewID())
		}
		fresh.say(`{"id":"more","kind":"ping"}`)
		fresh.refused("more", wire.CodeOverloaded, "still there")
		for range 16 {
			fresh.expect(wire.KindPong)
		}
		fresh.say(`{"id":"more","kind":"ping"}`)
		expect[wire.Pong](fresh, wire.KindPong, "more")
	})
}

func TestWhoAuthenticatedTakesThePlaceOfHisOlderConnectionAtOnce(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		alice := core.Principal{ID: "alice"}
		old := s.knownAs(alice, "fam")
		old.introduces("old")
		s.until(func() bool { _, here := s.hub.Agent("fam"); return here }, "it is an agent")
		start := time.Now()
		fresh := s.knownAs(alice, "fam")
		fresh.introduces("new")
		fresh.say(`{"id":"p","kind":"ping"}`)
		expect[wire.Pong](fresh, wire.KindPong, "p")
		if took := time.Since(start); took != 0 {
			t.Errorf("it took %v, want no time", took)
		}
		old.replaced()
		bob := s.knownAs(core.Principal{ID: "bob"}, "fam")
		bob.introduces("c")
		bob.refused("c", wire.CodeConflict, "fam")
		if a, _ := s.hub.Agent("fam"); a.Name != "new" {
			t.Errorf("got %q, want the newer one of alice", a.Name)
		}
	})
}

func TestAPeerThatLeavesDuringAContestLeavesNothingBehind(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		s.agent("fam", `{"agent_name":"old"}`)
		fresh := s.enter("fam")
		fresh.introduces("new")
		fresh.leave()
		<-time.After(3 * time.Second)
		if a, here := s.hub.Agent("fam"); !here || a.Name != "old" {
			t.Errorf("got %q, want the old one kept", a.Name)
		}
	})
}

func TestAPeerWhoseTokenRunsOutIsTold(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		a := s.knownAs(core.Principal{ID: "alice", Until: time.Now().Add(time.Minute)}, "")
		a.refused("", wire.CodeNotAuthorized, "Token has expired")
		if r := <-a.ended; r.Cause != link.Unauthorized || r.Code != 4401 {
			t.Errorf("got %v with code %d, want unauthorized with %d", &r, r.Code, 4401)
		}
	})
}

func TestTheWorkingEndComesToAnEndOnceItIsReplacedOrKnownNoLonger(t *testing.T) {
	for _, c := range []struct {
		code wire.Code
		want core.Fault
	}{
		{wire.CodeConflict, core.Fault{Code: core.CodeConflict, Message: "why", Peer: acpclient.Replaced}},
		{wire.CodeNotAuthorized, core.Fault{Code: core.CodeNotAuthorized, Message: "why"}},
	} {
		onStage(t, func(t *testing.T, s *stage) {
			hubEnd, agentEnd := pipe()
			done := make(chan error, 1)
			go func() {
				done <- acpclient.Work(context.Background(), agentEnd, core.Card{ID: "kit"}, nil, acpclient.WorkOptions{})
			}()
			a := &actor{stage: s, conn: hubEnd, name: "the hub"}
			a.expect(wire.KindCapabilities)
			a.say(`{"id":"1","from":"hub","kind":"error","ref":null,"payload":{"code":"%s","message":"why"}}`, c.code)
			var got *core.Fault
			if err := <-done; !errors.As(err, &got) || got.Code != c.want.Code || got.Message != c.want.Message || got.Peer != c.want.Peer {
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

func TestAPeerOfHTTPIsThereAsLongAsItReadsOrAsks(t *testing.T) {
	for _, c := range []struct {
		name string
		// comes is what the peer does while it is waited for, and after how long.
		comes   func(ctx context.Context, x *acp.HTTP)
		replace bool
		after   time.Duration
	}{
		{"it does nothing", func(context.Context, *acp.HTTP) {}, true, 2 * time.Second},
		{"it reads what arrives", func(ctx context.Context, x *acp.HTTP) { requestOf(ctx, x, http.MethodGet, "") }, false, 0},
		{"it comes back in time", func(ctx context.Context, x *acp.HTTP) {
			<-time.After(1500 * time.Millisecond)
			requestOf(ctx, x, http.MethodPost, `{"id":"p","kind":"ping"}`)
		}, false, 1500 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			onStage(t, func(t *testing.T, s *stage) {
				x := acp.NewHTTP(s.hub, acp.HTTPOptions{Session: acp.Options{Peers: s.peers}})
				if got := requestOf(t.Context(), x, http.MethodPost, `{"id":"c","kind":"capabilities","payload":{}}`); got != http.StatusAccepted {
					t.Fatalf("capabilities: got %d, want 202", got)
				}
				ctx, cancel := context.WithCancel(t.Context())
				var reading sync.WaitGroup
				reading.Go(func() { c.comes(ctx, x) })
				fresh := s.enter("fam")
				synctest.Wait()
				start := time.Now()
				fresh.introduces("new")
				if c.replace {
					fresh.say(`{"id":"p2","kind":"ping"}`)
					expect[wire.Pong](fresh, wire.KindPong, "p2")
				} else {
					fresh.refused("new", wire.CodeConflict, "fam")
				}
				if took := time.Since(start); took != c.after {
					t.Errorf("it took %v, want %v", took, c.after)
				}
				cancel()
				reading.Wait()
				x.Close()
			})
		})
	}
}

func TestAPostOfCapabilitiesWaitsUntilItIsKnownWhoHasTheID(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		x := acp.NewHTTP(s.hub, acp.HTTPOptions{Session: acp.Options{Peers: s.peers}})
		defer x.Close()
		old := s.agent("fam", `{"agent_name":"old"}`)
		start := time.Now()
		if got := requestOf(t.Context(), x, http.MethodPost, `{"id":"c","kind":"capabilities","payload":{}}`); got != http.StatusAccepted {
			t.Errorf("while the old one is silent: got %d, want 202", got)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("it took %v, want 2s", took)
		}
		old.replaced()
		alive := s.agent("gus", `{}`)
		alive.listening()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/acp", strings.NewReader(`{"id":"c","from":"gus","kind":"capabilities","payload":{}}`))
		w := httptest.NewRecorder()
		x.ServeHTTP(w, r)
		if w.Code != http.StatusConflict {
			t.Errorf("while another one is there: got %d, want 409", w.Code)
		}
	})
}
