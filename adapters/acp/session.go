package acp

import (
	"context"
	"log/slog"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

// message is an envelope on its way out.
type message struct {
	json []byte
	kind wire.Kind
	ref  string
	// sent is called once the peer's transport took it, lost once it is certain
	// that it never will; either may be nil. Neither may send.
	sent, lost func()
	// owed is what a result is for.
	owed *owing
}

// outlet takes messages to the peer, in order. send waits while there is no room, and
// returns an error once sending is pointless.
type outlet interface {
	send(ctx context.Context, m message) error
	// hold keeps what is sent until flush, so that it goes in one write: see
	// [link.Link.Hold].
	hold()
	flush()
	// away reports whether the peer is not listening at the moment.
	away() bool
	// reclaim takes back the results that the peer did not fetch.
	reclaim() []owing
}

// session is the state of one peer on one carrier: its identity, what it asked, what it
// works on. Envelopes enter through receive or handle, and what the hub has for the peer
// through pump. mu guards what both touch, and is never held while something is sent.
type session struct {
	hub    *hub.Hub
	opts   Options
	peers  *Peers
	out    outlet
	log    *slog.Logger
	number uint64

	// Set before bound is closed, and read after.
	bound     chan struct{}
	peer      peerID
	principal core.Principal
	self      *hub.Session
	inherited []owing
	// beside runs what may take long, so that the reader of the connection does not wait
	// for it; ctx ends with the connection.
	beside func(ctx context.Context, f func(ctx context.Context))
	// alive probes whether the peer is still there, see [hub.JoinOptions]; nil where the
	// carrier cannot.
	alive func(ctx context.Context) error

	mu       sync.Mutex
	joined   bool
	takeover takeover
	progress bool              // the peer declared the extension
	full     bool              // it said that it is overloaded, and has ended no task since
	asked    map[string]*asked // by the id of its envelope
	jobs     map[string]*job   // by the id of the envelope that it got
	byTask   map[core.TaskID]*job
	past     *lru.Cache[string, *job] // of jobs, those that have ended
	cancels  map[string]string        // ids of jobs, by the id of the cancel
	probe    string                   // the id of our discover
	finish   func()                   // closes the connection once nothing is asked any more
	gone     bool                     // it has been closed
}

// newSession makes a session whose peer is not known yet.
func newSession(h *hub.Hub, opts Options, out outlet) *session {
	s := &session{
		hub: h, opts: opts, peers: opts.Peers, out: out, log: opts.Log, number: opts.Peers.numbers.Add(1),
		bound: make(chan struct{}),
		asked: map[string]*asked{}, jobs: map[string]*job{}, byTask: map[core.TaskID]*job{}, cancels: map[string]string{},
	}
	s.past = lru.New(lru.Options[string, *job]{Count: maxPastJobs, Evicted: s.forget})
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
	s.self = s.hub.Connect(hub.Identity{Principal: s.principal, Dialect: Dialect, Deadline: s.opts.Deadline, Keep: s.opts.KeepTasks, Checked: true})
	if err := s.self.Join(wire.Capabilities{}.Card(id, strictjson.Value{}), hub.JoinOptions{OnlyByID: true, Probe: s.alive}); err != nil {
		s.log.Info("a peer that cannot be addressed by its id", "error", err)
	}
	s.inherited = s.peers.arrive(s)
	close(s.bound)
}

// id returns the id of the peer; "" before it is known.
func (s *session) id() core.AgentID {
	select {
	case <-s.bound:
		return s.peer.id
	default:
		return ""
	}
}

// receive handles an envelope of a connection that carries one after another.
func (s *session) receive(ctx context.Context, raw []byte) error {
	e, err := wire.Decode(raw, s.opts.MaxEnvelopeBytes)
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
		return wire.Refusef(wire.CodeInvalidEnvelope, "the hub does not know you yet: say who you are in from, or in the header X-Agent-Id")
	}
	if err := core.CheckAgentID(core.AgentID(e.From)); err != nil {
		return wire.Refusef(wire.CodeInvalidEnvelope, "from: %s", core.AsFault(err).Message)
	}
	s.identify(core.AgentID(e.From))
	return s.welcome(ctx)
}

// welcome asks a peer that was identified what it can do, and continues what an earlier
// connection of it left.
func (s *session) welcome(ctx context.Context) error {
	if err := s.discover(ctx); err != nil {
		return err
	}
	s.takeOver()
	return nil
}

// takeOver continues what an earlier connection of the peer left.
func (s *session) takeOver() {
	s.self.Resubscribe()
	s.inherit(s.inherited)
}

// admit checks the sender and the schema of an envelope.
func (s *session) admit(e wire.Envelope) error {
	if e.From != "" && !roster.SameAgent(e.From, s.peer.id) {
		return wire.Refusef(wire.CodeNotAuthorized, "this connection is %q, not %q: send that in from, or leave it out, or connect anew", s.peer.id, e.From)
	}
	return e.Check()
}

// handle acts on an envelope that was admitted, unless its id was seen before.
func (s *session) handle(ctx context.Context, e wire.Envelope) error {
	s.self.Seen()
	if by, same, fresh := s.peers.seen.first(s.peer, e, s.number); !fresh {
		s.hub.Count("acp.duplicate")
		if by == s.number && same {
			return nil // its sender has an answer, or will have
		}
		return s.again(ctx, e, same)
	}
	return s.act(ctx, e)
}

// act acts on an envelope that was admitted and not seen before.
func (s *session) act(ctx context.Context, e wire.Envelope) error {
	if waits, err := s.waits(e); waits {
		return s.unlessRefused(ctx, e, err)
	}
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
		return s.introduce(ctx, e)
	case wire.KindPong:
		return s.pong(ctx, e)
	case wire.KindSubscribe:
		return s.subscribe(ctx, e)
	case wire.KindUnsubscribe:
		return s.unsubscribe(ctx, e)
	case wire.KindResponse, wire.KindResult, wire.KindAck, wire.KindError, wire.KindProgress:
		return s.reply(ctx, e)
	}
	return s.unknown(ctx, e)
}

// again handles an envelope whose id was seen before. If it is the same envelope, it was
// sent on an earlier connection or by an earlier POST, where its answer was lost: a
// delegate that still runs is acknowledged again. A different envelope is refused.
func (s *session) again(ctx context.Context, e wire.Envelope, same bool) error {
	if same && !e.Kind.Asks() {
		return nil
	}
	if a := s.own(e.ID); same && a != nil && a.kind == wire.KindDelegate {
		return s.answer(ctx, wire.KindAck, e.ID, wire.Ack{Accepted: true})
	}
	return s.refuse(ctx, e, s.peers.seen.again(e.ID))
}

// pump delivers what the hub has for the peer until the hub's session ends or sending is
// pointless, and returns why.
func (s *session) pump(ctx context.Context) error {
	for {
		b, err := s.self.Next(ctx)
		if err != nil {
			return err
		}
		s.out.hold()
		err = s.self.Drain(b, func(b hub.Batch) error { return s.news(ctx, b) })
		s.out.flush()
		if err != nil {
			return err
		}
	}
}

// news delivers one batch of the hub.
func (s *session) news(ctx context.Context, b hub.Batch) error {
	switch {
	case b.Draining != "":
		return s.shutdown(ctx, b.Draining)
	case b.Role == task.Subscriber:
		return s.hear(ctx, b)
	case b.Gap != nil:
		s.hub.Count("acp.gap") // what is told in the end is put together from what is left
	case b.Role == task.Agent:
		return s.work(ctx, b)
	case b.Task != nil:
		return s.tell(ctx, b)
	}
	return nil
}

// close ends the hub's session. Delegates whose result is still to come, or is due because
// it may be lost, go to another connection of the peer, or wait for one. A second close
// does nothing.
func (s *session) close(reason *core.Fault, due ...owing) {
	if s.id() == "" {
		return
	}
	s.peers.depart(s)
	s.mu.Lock()
	if s.gone {
		s.mu.Unlock()
		return
	}
	s.gone = true
	for _, a := range s.asked {
		if a.kind == wire.KindDelegate {
			due = append(due, s.owing(a))
		}
	}
	s.mu.Unlock()
	s.self.Close(reason)
	s.handOver(due)
}

func (s *session) owing(a *asked) owing {
	return owing{a.task, a.id, a.reports, a.until.Add(s.peers.keep)}
}

// elsewhere hands the result of a delegate to another connection of the peer if the peer
// is not listening on this one, and reports whether it did.
func (s *session) elsewhere(a *asked) bool {
	if a.kind != wire.KindDelegate || !a.reports || !s.out.away() {
		return false
	}
	successor := s.peers.listening(s.peer)
	return successor != nil && successor.inherit([]owing{s.owing(a)})
}

// handOver gives what the peer is still owed to another of its connections, or keeps it
// for the next.
func (s *session) handOver(due []owing) {
	for len(due) > 0 {
		successor, lost := s.peers.leave(s.peer, due)
		if lost > 0 {
			s.log.Warn("results of delegates are lost: too many wait for who is away", "results", lost)
			for range lost {
				s.hub.Count("acp.result.lost")
			}
		}
		if successor == nil || successor.inherit(due) {
			return
		}
	}
}

// newEnvelope begins an envelope from the hub to the peer.
func (s *session) newEnvelope(kind wire.Kind, ref string, payload any) wire.Envelope {
	return wire.New(kind, wire.HubID, string(s.id()), ref, payload)
}

// answer sends an envelope of the hub that answers ref.
func (s *session) answer(ctx context.Context, kind wire.Kind, ref string, payload any) error {
	e := s.newEnvelope(kind, ref, payload)
	return s.out.send(ctx, message{json: e.Encode(), kind: kind, ref: ref})
}

// refuse tells the peer what is wrong with an envelope. An error is never answered with
// another, so that two ends cannot refuse each other for ever. If the envelope was to end
// a task, the task fails.
func (s *session) refuse(ctx context.Context, e wire.Envelope, err error) error {
	told := wire.AsError(err)
	s.hub.Count("acp.error." + string(told.Code))
	s.answerRefused(e, told)
	if e.Kind == wire.KindError {
		s.log.Debug("an error that was refused", "id", e.ID, "why", told)
		return nil
	}
	return s.answer(ctx, wire.KindError, e.ID, told)
}
