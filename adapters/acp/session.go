package acp

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

// message is an envelope to be sent.
type message struct {
	json []byte
	kind wire.Kind
	ref  string
	// sent is called once the peer's transport took the message, lost once it is certain
	// that it never will; either may be nil. Neither may send.
	sent, lost func()
	// result is set in the result of a delegate.
	result *pendingResult
}

// outlet sends messages to the peer, in order. send waits while there is no room, and
// returns an error once sending is pointless.
type outlet interface {
	send(ctx context.Context, m message) error
	// hold keeps messages until flush, which sends them in one write: see
	// [link.Link.Hold].
	hold()
	flush()
	// away reports whether the peer is not listening at the moment.
	away() bool
	// owed returns the results that the peer did not fetch, and reclaim takes back those of some tasks.
	owed() []pendingResult
	reclaim(of func(core.TaskID) bool) []pendingResult
}

// session is the state of one peer on one carrier: its identity, the requests that it
// opened, the tasks that it is assigned. Envelopes of the peer enter through receive or
// handle, news of the hub through deliverAll. mu guards what both touch, and is never held while
// something is sent.
type session struct {
	hub    *hub.Hub
	opts   Options
	peers  *Peers
	out    outlet
	log    *slog.Logger
	number uint64

	// Set before identified is true, and only read after.
	identified atomic.Bool
	peer       peerID
	principal  core.Principal
	self       *hub.Session
	pending    []pendingResult
	// goAsync runs a function that may take long, so that the reader of the connection does
	// not wait for it; ctx ends with the connection.
	goAsync func(ctx context.Context, f func(ctx context.Context))
	// probe checks whether the peer is still there, see [hub.JoinOptions]; nil where the
	// carrier has no way to.
	probe func(ctx context.Context) error
	// startDelivery starts to deliver the news of the hub; it is not called where pump does.
	startDelivery func()
	// mayWait says that whoever hands an envelope to the session may wait for other hubs.
	mayWait bool
	lined   sync.WaitGroup // who serves the line

	mu          sync.Mutex
	joined      bool
	takeover    takeover
	line        line
	progress    bool                   // the peer declared the extension
	traces      bool                   // it declared the extension trace_context
	overloaded  bool                   // it declared itself overloaded, and has ended no task since
	draining    bool                   // its latest capabilities take no tasks: no pong changes that
	requests    map[string]*request    // by the id of its envelope
	assignments map[string]*assignment // by the id of the envelope that it got
	byTask      map[core.TaskID]*assignment
	recent      *lru.Cache[string, *assignment] // of assignments, those that have ended
	cancels     map[string]string               // ids of assignments, by the id of the cancel
	discoverID  string                          // the id of the discover that the hub sent
	closed      bool                            // it has been closed
}

// newSession makes a session whose peer is not identified yet.
func newSession(h *hub.Hub, opts Options, out outlet) *session {
	s := &session{
		hub: h, opts: opts, peers: opts.Peers, out: out, log: opts.Log, number: opts.Peers.numbers.Add(1),
		requests: map[string]*request{}, assignments: map[string]*assignment{}, byTask: map[core.TaskID]*assignment{}, cancels: map[string]string{},
	}
	s.recent = lru.New(lru.Options[string, *assignment]{Count: maxRecent, Evicted: s.forget})
	return s
}

// identify sets the identity of the peer. It is called once, before anything is handled.
func (s *session) identify(id core.AgentID) {
	s.principal = s.opts.Principal
	if s.principal.ID == "" {
		s.principal.ID = string(id)
	}
	if s.principal.Dialect == "" {
		s.principal.Dialect = Dialect
	}
	s.peer = peerID{s.principal.ID, id}
	s.log = s.log.With("peer", id)
	s.self = s.hub.Connect(hub.Identity{Principal: s.principal, Dialect: Dialect, Deadline: s.opts.Deadline, FixedDeadline: true, Keep: s.opts.KeepTasks, Checked: true, Frames: s.opts.Link.Frames, Trace: s.opts.Trace})
	if err := s.self.Join(wire.Capabilities{}.Card(id, strictjson.Value{}), hub.JoinOptions{OnlyByID: true, Probe: s.probe}); err != nil {
		s.log.Info("a peer cannot be addressed by its id", "error", err)
	}
	s.pending = s.peers.add(s)
	s.identified.Store(true)
}

// id returns the id of the peer, or "" before it is identified.
func (s *session) id() core.AgentID {
	if s.identified.Load() {
		return s.peer.id
	}
	return ""
}

// receive handles an envelope of a connection. It is called for one after another.
func (s *session) receive(ctx context.Context, raw []byte) error {
	e, err := wire.Decode(raw, s.opts.MaxEnvelopeBytes)
	if err == nil && s.registers(e) {
		first := e // a copy, since what another goroutine uses is allocated
		return link.Apart(func() error { return s.accept(ctx, first, nil) })
	}
	return s.accept(ctx, e, err)
}

// registers reports whether an envelope identifies the peer, or has it join.
func (s *session) registers(e wire.Envelope) bool {
	if s.id() == "" {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.Kind == wire.KindCapabilities && !s.joined
}

// accept handles an envelope, or refuses it: for err, if that is not nil.
func (s *session) accept(ctx context.Context, e wire.Envelope, err error) error {
	if err == nil && s.id() == "" {
		err = s.bind(ctx, e)
	}
	if err == nil {
		err = s.admit(e)
	}
	if err != nil {
		return s.refuse(ctx, e, err)
	}
	return s.handle(ctx, e)
}

// bind identifies the peer by its first envelope.
func (s *session) bind(ctx context.Context, e wire.Envelope) error {
	if e.From == "" {
		return wire.Refusef(wire.CodeInvalidEnvelope, "the hub does not know you yet: say who you are: in from, in the header X-Agent-Id, or with --id of dragoman stdio")
	}
	if err := core.CheckAgentID(core.AgentID(e.From)); err != nil {
		return wire.Refusef(wire.CodeInvalidEnvelope, "from: %s", core.AsFault(err).Message)
	}
	s.identify(core.AgentID(e.From))
	return s.welcome(ctx)
}

// welcome asks an identified peer for its capabilities, and takes over from an earlier
// connection of it.
func (s *session) welcome(ctx context.Context) error {
	if err := s.discover(ctx); err != nil {
		return err
	}
	s.startDelivery()
	s.takeOver(ctx)
	return nil
}

// takeOver resumes the subscriptions and the pending results of an earlier connection of
// the peer, which may have been at another hub.
func (s *session) takeOver(ctx context.Context) {
	s.self.Resubscribe()
	s.inherit(s.pending)
	if s.hub.RPC().HasPeers() {
		s.goAsync(ctx, s.fetchPending)
	}
}

// admit checks the sender and the schema of an envelope.
func (s *session) admit(e wire.Envelope) error {
	if e.From != "" && !roster.SameAgent(e.From, s.peer.id) {
		return wire.Refusef(wire.CodeNotAuthorized, "this connection is %q, not %q: send that in from, or leave it out, or connect anew", s.peer.id, e.From)
	}
	return e.Check()
}

// handle acts on an admitted envelope, unless its id was seen before.
func (s *session) handle(ctx context.Context, e wire.Envelope) error {
	s.self.Seen()
	if by, same, fresh := s.peers.seen.add(s.peer, e, s.number); !fresh {
		s.hub.Count("acp.duplicate")
		if by == s.number && same {
			return nil // its sender has an answer, or will get one
		}
		return s.duplicate(ctx, e, same)
	}
	return s.act(ctx, e)
}

// act acts on an admitted envelope that was not seen before.
func (s *session) act(ctx context.Context, e wire.Envelope) error {
	if queued, err := s.enqueue(e); queued {
		return s.refuseIf(ctx, e, err)
	}
	if waits, err := s.lineUp(ctx, e); waits {
		return s.refuseIf(ctx, e, err)
	}
	return s.do(ctx, e)
}

// do acts on an envelope whose turn it is.
func (s *session) do(ctx context.Context, e wire.Envelope) error {
	switch e.Kind {
	case wire.KindQuery, wire.KindDelegate:
		return s.ask(ctx, e)
	case wire.KindNotify:
		return s.notify(ctx, e)
	case wire.KindCancel:
		return s.cancel(ctx, e)
	case wire.KindPing:
		return s.ping(ctx, e)
	case wire.KindDiscover:
		return s.describe(ctx, e)
	case wire.KindHello:
		return s.hello(ctx, e)
	case wire.KindCapabilities:
		return s.declareAgent(ctx, e)
	case wire.KindPong:
		return s.pong(ctx, e)
	case wire.KindSubscribe:
		return s.subscribe(ctx, e)
	case wire.KindUnsubscribe:
		return s.unsubscribe(ctx, e)
	case wire.KindResponse, wire.KindResult, wire.KindAck, wire.KindError, wire.KindProgress:
		return s.handleReply(ctx, e)
	}
	return s.handleUnknown(ctx, e)
}

// duplicate handles an envelope whose id was seen before. The same envelope was sent on an
// earlier connection or by an earlier POST, where its answer was lost: a delegate that
// still runs is acknowledged again. A different envelope is refused.
func (s *session) duplicate(ctx context.Context, e wire.Envelope, same bool) error {
	if same && !e.Kind.Asks() {
		return nil
	}
	if r := s.findRequest(e.ID); same && r != nil && r.kind == wire.KindDelegate {
		return s.answer(ctx, wire.KindAck, e.ID, wire.Ack{Accepted: true})
	}
	return s.refuse(ctx, e, s.peers.seen.conflict(e.ID))
}

// pump delivers the news of the hub until the hub's session ends or sending is pointless,
// and returns why.
func (s *session) pump(ctx context.Context) error {
	for {
		b, err := s.self.Next(ctx)
		if err == nil {
			err = s.deliverAll(ctx, b)
		}
		if err != nil {
			return err
		}
	}
}

// deliverAll delivers a batch of the hub, and those that are ready after it, in one write.
func (s *session) deliverAll(ctx context.Context, b hub.Batch) error {
	s.out.hold()
	defer s.out.flush()
	return s.self.Drain(b, func(b hub.Batch) error { return s.deliver(ctx, b) })
}

// deliver delivers one batch of the hub.
func (s *session) deliver(ctx context.Context, b hub.Batch) error {
	switch {
	case b.Draining != "":
		return s.shutdown(ctx, b.Draining)
	case b.Role == task.Subscriber:
		return s.tellNotice(ctx, b)
	case b.Gap != nil:
		s.hub.Count("acp.gap") // the end is folded from the events that are left
	case b.Role == task.Agent:
		return s.tellAgent(ctx, b)
	case b.Task != nil:
		return s.tellRequester(ctx, b)
	}
	return nil
}

// close ends the hub's session. Pending results, and those in due, which may have been
// lost, go to another connection of the peer or wait for one. A second close does nothing.
func (s *session) close(reason *core.Fault, due ...pendingResult) {
	if s.id() == "" {
		return
	}
	s.peers.remove(s)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	for _, r := range s.requests {
		if r.kind == wire.KindDelegate {
			due = append(due, s.pendingResult(r))
		}
	}
	s.mu.Unlock()
	s.self.Close(reason)
	s.handOver(due)
}

func (s *session) pendingResult(r *request) pendingResult {
	return pendingResult{r.task, r.id, r.reports, r.deadline.Add(s.peers.keep)}
}

// forward hands the result of a delegate to another connection of the peer if the peer is
// not listening on this one, and reports whether it did.
func (s *session) forward(r *request) bool {
	if r.kind != wire.KindDelegate || !r.reports || !s.out.away() {
		return false
	}
	successor := s.peers.listening(s.peer) // s itself if the peer has come back since
	return successor != nil && successor != s && successor.inherit([]pendingResult{s.pendingResult(r)})
}

// handOver gives pending results to another connection of the peer, or keeps them for the
// next.
func (s *session) handOver(due []pendingResult) {
	for len(due) > 0 {
		successor, lost := s.peers.keepPending(s.peer, due)
		if lost > 0 {
			s.log.Warn("results of delegates are lost: too many wait for peers that are away", "results", lost)
			for range lost {
				s.hub.Count("acp.result.lost")
			}
		}
		if successor == nil {
			if s.hub.RPC().HasPeers() {
				_, _ = waitsMatter.AskAll(context.Background(), s.hub, s.principal, s.peer.id) // one that is missing asks when the peer comes
			}
			return
		}
		if successor.inherit(due) {
			return
		}
	}
}

// newEnvelope returns an envelope from the hub to the peer.
func (s *session) newEnvelope(kind wire.Kind, ref string, payload any) wire.Envelope {
	return wire.New(kind, wire.HubID, string(s.id()), ref, payload)
}

// answer sends an envelope from the hub that answers ref.
func (s *session) answer(ctx context.Context, kind wire.Kind, ref string, payload any) error {
	return s.send(ctx, s.newEnvelope(kind, ref, payload))
}

func (s *session) send(ctx context.Context, e wire.Envelope) error {
	return s.out.send(ctx, message{json: e.Encode(), kind: e.Kind, ref: e.Ref})
}

// refuse tells the peer what is wrong with an envelope. An error is never answered with
// another, so that two ends cannot refuse each other for ever. If the envelope would have
// ended a task, the task fails.
func (s *session) refuse(ctx context.Context, e wire.Envelope, err error) error {
	refusal := wire.AsError(err)
	s.hub.Count("acp.error." + string(refusal.Code))
	s.failRefused(e, refusal)
	if e.Kind == wire.KindError {
		s.log.Debug("an error envelope was refused", "id", e.ID, "why", refusal)
		return nil
	}
	return s.answer(ctx, wire.KindError, e.ID, refusal)
}

// retire notes that the peer has ended an assignment. Callers hold mu.
func (s *session) retire(a *assignment) {
	if a.endedByPeer {
		return
	}
	a.endedByPeer = true
	delete(s.byTask, a.task)
	if !a.endedByHub {
		s.remember(a)
	}
}

// maxRecent is how many ended assignments are remembered.
const maxRecent = 256

// remember keeps an ended assignment for a while, so that a late answer is recognized.
// Callers hold mu.
func (s *session) remember(a *assignment) { s.recent.Put(a.id, a) }

// forget drops an ended assignment. Callers hold mu.
func (s *session) forget(id string, a *assignment) {
	delete(s.assignments, id)
	delete(s.byTask, a.task)
	for cancel, ref := range s.cancels {
		if ref == id {
			delete(s.cancels, cancel)
		}
	}
}
