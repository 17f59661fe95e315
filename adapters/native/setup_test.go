package native_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/adapters/native/client"
	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// setup is a hub with peers in memory.
type setup struct {
	*testing.T
	hub *hub.Hub
}

// withHub runs a test with a hub under a fake clock.
func withHub(t *testing.T, f func(s *setup)) {
	t.Helper()
	withHubOf(t, hub.Options{Auditor: ledger{}}, f)
}

func withHubOf(t *testing.T, opts hub.Options, f func(s *setup)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(&setup{t, coretest.NewHub(t, opts)}) })
}

// connect connects a peer, and returns its end. The connection ends with the test.
func (s *setup) connect(opts native.Options) (end *coretest.End[[]byte, []byte], reason <-chan link.Reason) {
	s.Helper()
	server, end := coretest.Pipe[[]byte, []byte](0)
	ended := make(chan link.Reason, 1)
	var served sync.WaitGroup
	served.Go(func() { ended <- native.Accept(s.Context(), s.hub, server, opts) })
	s.Cleanup(func() {
		_ = end.Close(link.Reason{Cause: link.Normal})
		served.Wait()
	})
	return end, ended
}

// peer is a client, and all that it is told.
type peer struct {
	*setup
	*client.Client

	mu     sync.Mutex
	events []wire.Told
	told   []string // frames of other kinds
}

// peer connects a client with an id.
func (s *setup) peer(id string) *peer { return s.peerWith(native.Options{AgentID: core.AgentID(id)}) }

func (s *setup) peerWith(opts native.Options) *peer {
	s.Helper()
	end, _ := s.connect(opts)
	return s.peerOn(end)
}

// peerOn makes a client of the end of a connection.
func (s *setup) peerOn(end link.Conn[[]byte, []byte]) *peer {
	p := &peer{setup: s}
	p.Client = client.New(s.Context(), end, client.Options{
		Event: func(t wire.Told) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.events = append(p.events, t)
		},
		Told: func(kind string, v strictjson.Value) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.told = append(p.told, fmt.Sprintf("%s %s", kind, v.Raw()))
		},
	})
	s.Cleanup(p.Client.Close)
	return p
}

// agent connects an agent that does what the test says.
func (s *setup) agent(card core.Card) *peer {
	s.Helper()
	p := s.peer(string(card.ID))
	p.call(core.Join{Card: card}, wire.With{})
	return p
}

// able is a card with every feature.
func able(id string) core.Card {
	const all = core.FeatureStreaming | core.FeatureUsage | core.FeatureToolStates | core.FeatureInjection | core.FeatureCancellation |
		core.FeatureApprovals | core.FeatureNotices | core.FeatureSessions | core.FeatureFiles
	return core.Card{ID: core.AgentID(id), Features: all, MaxConcurrent: 4}
}

// call gives a command that the hub executes.
func (p *peer) call(c core.Command, with wire.With) strictjson.Value {
	p.Helper()
	v, err := p.Call(p.Context(), c, with)
	if err != nil {
		p.Fatalf("%s: got %v, want no error", c.Act(), err)
	}
	return v
}

// refused gives a command that the hub refuses with the code.
func (p *peer) refused(c core.Command, with wire.With, want core.Code) {
	p.Helper()
	if v, err := p.Call(p.Context(), c, with); core.AsFault(err) == nil || core.AsFault(err).Code != want {
		p.Errorf("%s: got %s and %v, want %s", c.Act(), v.Raw(), err, want)
	}
}

// open opens a task.
func (p *peer) open(r core.Request) core.TaskID {
	p.Helper()
	task, _ := p.call(&core.Open{Request: &r}, wire.With{}).Get("task").Text()
	return core.TaskID(task)
}

// take waits until everything is delivered, and returns the events since the last call.
func (p *peer) take() []wire.Told {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.events
	p.events = nil
	return all
}

// others waits until everything is delivered, and returns the other frames since the last call.
func (p *peer) others() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.told
	p.told = nil
	return all
}

// report reports events that the hub accepts.
func (p *peer) report(id core.TaskID, bodies ...core.Body) {
	p.Helper()
	for _, b := range bodies {
		if err := p.ReportConfirmed(p.Context(), id, b, nil); err != nil {
			p.Fatalf("%s: got %v, want no error", b.Kind(), err)
		}
	}
}

// stop ends a task, if that runs, and forgets what came of it.
func (p *peer) stop(id core.TaskID) {
	_ = p.ReportConfirmed(p.Context(), id, core.Cancelled{}, nil) // it may have ended
	p.take()
}

// kinds returns the kinds of events.
func kinds(all []wire.Told) (names []string) {
	for _, t := range all {
		names = append(names, t.Event.Body.Kind().String())
	}
	return names
}

func ask(to, content string) core.Request {
	return core.Request{Intent: core.IntentAsk, To: core.ToAgent(core.AgentID(to)), Content: content}
}

func text(v strictjson.Value) string {
	s, _ := v.Text()
	return s
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// ledger is an audit of three lines.
type ledger struct{}

func (ledger) Audit(policy.Entry) {}

func (ledger) Read(_ context.Context, after uint64, yield func([]byte) bool) error {
	for seq := after + 1; seq <= 3; seq++ {
		if !yield(fmt.Appendf(nil, `{"seq":%d,"object":"\u003c"}`, seq)) {
			break
		}
	}
	return nil
}
