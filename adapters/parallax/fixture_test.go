package parallax_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/task"
)

// setup is a hub under a fake clock.
type setup struct {
	*testing.T
	hub *hub.Hub
}

// withHub runs a test with a hub whose promises are checked at the end.
func withHub(t *testing.T, test func(*setup)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(&setup{t, coretest.NewHub(t, hub.Options{ID: "hub1"})})
	})
}

type pipeEnd = coretest.End[[]byte, []byte]

// serve serves one end of a pipe. It returns the other end, and the reason of its end.
func (s *setup) serve(opts parallax.Options) (*pipeEnd, <-chan link.Reason) {
	s.Helper()
	agent, conn := coretest.Pipe[[]byte, []byte](4)
	ended := make(chan link.Reason, 1)
	go func() { ended <- parallax.Serve(context.Background(), s.hub, conn, &opts) }()
	s.Cleanup(func() {
		_ = agent.Close(link.Reason{Cause: link.Normal})
		synctest.Wait()
	})
	return agent, ended
}

// peer is an agent whose frames the test sends and receives.
type peer struct {
	*setup
	conn  *pipeEnd
	ended <-chan link.Reason
}

func (s *setup) connect(opts parallax.Options) *peer {
	s.Helper()
	conn, ended := s.serve(opts)
	return &peer{s, conn, ended}
}

// registered returns a peer that has registered.
func (s *setup) registered(opts parallax.Options, register string) *peer {
	s.Helper()
	p := s.connect(opts)
	p.send(`{"type":"register","id":"r1","payload":` + register + `}`)
	p.receive("registered")
	return p
}

func (p *peer) send(frame string) {
	p.Helper()
	if err := p.conn.Send(p.Context(), []byte(frame)); err != nil {
		p.Fatalf("send %s: %v", frame, err)
	}
}

// receive returns the next message, which must be of the kind.
func (p *peer) receive(kind string) wire.Message {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), time.Hour)
	defer cancel()
	frame, err := p.conn.Receive(ctx)
	if err != nil {
		p.Fatalf("got %v, want a %s", err, kind)
	}
	m, err := wire.Decode(frame)
	if err != nil {
		p.Fatalf("decode %s: %v", frame, err)
	}
	if m.Type != kind {
		p.Fatalf("got %s, want a %s", frame, kind)
	}
	return m
}

// expectError returns the next message, which must be an error with the code.
func (p *peer) expectError(code string) (wire.Message, wire.Refusal) {
	p.Helper()
	m := p.receive(wire.TypeError)
	r := decode[wire.Refusal](p, m)
	if r.Code != code {
		p.Fatalf("got %+v, want the code %s", r, code)
	}
	return m, r
}

// discard reads all messages, so that pings are answered. Nothing else may read.
func (p *peer) discard() {
	go func() {
		for {
			if _, err := p.conn.Receive(context.Background()); err != nil {
				return
			}
		}
	}()
}

// expectNothing checks that no message was sent.
func (p *peer) expectNothing() {
	p.Helper()
	synctest.Wait()
	ctx, cancel := context.WithCancel(p.Context())
	cancel()
	if frame, err := p.conn.Receive(ctx); err == nil {
		p.Fatalf("got %s, want nothing", frame)
	}
}

// waitClosed returns the reason for the end of the connection.
func (p *peer) waitClosed() link.Reason {
	p.Helper()
	for {
		frame, err := p.conn.Receive(p.Context())
		if err != nil {
			return <-p.ended
		}
		p.Logf("received before the end: %s", frame)
	}
}

func decode[P any](t testing.TB, m wire.Message) P {
	t.Helper()
	v, err := wire.ReadPayload[P](m)
	if err != nil {
		t.Fatalf("payload %s: %v", m.Payload, err)
	}
	return v
}

// requester opens tasks, in no dialect.
type requester struct {
	*setup
	session *hub.Session
}

func (s *setup) requester() *requester {
	a := &requester{s, s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "asker"}, Deadline: time.Minute})}
	s.Cleanup(func() { a.session.Close(nil) })
	return a
}

func (a *requester) open(r core.Request) *task.Task {
	a.Helper()
	t, err := a.session.Open(r, hub.OpenOptions{})
	if err != nil {
		a.Fatalf("open: %v", err)
	}
	return t
}

func (a *requester) ask(to core.AgentID, content string) *task.Task {
	a.Helper()
	return a.open(core.Request{To: core.ToAgent(to), Content: content})
}

// events returns all events of the task until it has ended.
func (a *requester) events(t *task.Task) []core.Event {
	a.Helper()
	var all []core.Event
	for {
		b, err := a.session.Next(a.Context())
		if err != nil {
			a.Fatalf("next: %v", err)
		}
		if b.Task != t {
			continue
		}
		all = append(all, b.Events...)
		if len(all) > 0 && all[len(all)-1].Body.Kind().Ends() {
			return all
		}
	}
}

func (a *requester) answer(t *task.Task) core.Answer {
	a.Helper()
	return core.Fold(a.events(t))
}

// kinds returns the kinds of events, with blanks between.
func kinds(events []core.Event) string {
	names := make([]string, len(events))
	for i, e := range events {
		names[i] = e.Body.Kind().String()
	}
	return strings.Join(names, " ")
}

// withIDs replaces TASK and EXEC in a frame by the ids of a task.
func withIDs(frame string, t wire.Task) string {
	return strings.NewReplacer("TASK", t.TaskID, "EXEC", t.ExecutionID).Replace(frame)
}

func (s *setup) expectCount(name string, want int64) {
	s.Helper()
	if got := s.hub.Counters()[name]; got != want {
		s.Errorf("counter %s: got %d, want %d", name, got, want)
	}
}

func toJSON(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// pageSamples returns the messages of the protocol's page, and those of the extensions.
func pageSamples(t testing.TB) map[string][]byte {
	t.Helper()
	return coretest.ReadFiles(t, "../../schemas/parallax/samples/*.json")
}

// fromJSON decodes JSON into values of any type.
func fromJSON(t testing.TB, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}
