package notify

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/webhook"
)

// The events that a webhook may be told of.
const (
	// Waiting is a tool call that waits for a decision, or a question that waits for an answer.
	Waiting = "waiting"
	// Ended is a task that a person opened, and that is done or was cancelled; Failed one that has failed.
	Ended  = "ended"
	Failed = "failed"
	// AgentDown is an agent that has failed, or that was connected and has not come back.
	AgentDown = "agent_down"
)

// The bounds of a Notifier.
const (
	queueLength = 4096 // what has happened and was not read yet
	maxEnding   = 4096 // ends that the journal does not have yet
	maxAgents   = 1024 // agents that may be down, and those that were told to be
	maxAsked    = 1024 // questions that were told
)

// downAfter is how long an agent may be away, or start again, before it is told to be down: a connection that
// breaks comes back within seconds.
const downAfter = 30 * time.Second

// Webhook is where messages are posted.
type Webhook struct {
	URL string
	// On has the events that it is told of.
	On []string
	// Agents are patterns of the agents whose events it is told of, with * for any characters; none is all.
	Agents []string
	// Key signs the messages; nil signs none.
	Key []byte
	// Content adds what is to be decided, asked and answered.
	Content bool
}

// Options of a Notifier. Redact, Count and Log are required.
type Options struct {
	// Console is the address of the console, without a slash at its end; "" leaves links out.
	Console func() string
	// Redact returns what takes secrets out of messages; it may return nil.
	Redact func() *redact.Redactor
	// Count adds one to a named counter.
	Count func(name string)
	Log   *slog.Logger
}

// Notifier is a [hub.Observer] that posts messages. It is safe for concurrent use.
type Notifier struct {
	opts   Options
	sender *webhook.Sender
	hooks  atomic.Pointer[[]Webhook]
	queue  chan happening
	lost   atomic.Int64 // since it was logged last
	stop   chan struct{}
	once   sync.Once
	done   sync.WaitGroup

	mu sync.Mutex
	// ending has the number of the last event of tasks whose end the journal does not have yet.
	ending map[core.TaskID]uint64

	// Of the goroutine.
	hub    *hub.Hub
	agents agents
	asked  *lru.Cache[string, struct{}]
}

var _ hub.Observer = (*Notifier)(nil)

// happening is an event of a task, or a change of an agent.
type happening struct {
	task  core.TaskID
	at    core.Cursor // of the event
	end   *core.Event // unless the task has it
	agent core.AgentID
	child bool // the hub runs the agent itself
	left  bool
}

// New returns a Notifier that notes what happens at once, and posts it from Start on. Close ends it.
func New(o Options) *Notifier {
	n := &Notifier{
		opts: o, sender: webhook.New(webhook.TargetsAny), queue: make(chan happening, queueLength), stop: make(chan struct{}), ending: map[core.TaskID]uint64{},
		agents: newAgents(o.Redact), asked: lru.New(lru.Options[string, struct{}]{Count: maxAsked}),
	}
	n.hooks.Store(&[]Webhook{})
	return n
}

// SetWebhooks replaces the webhooks. What is on its way goes where it was to go.
func (n *Notifier) SetWebhooks(all []Webhook) { n.hooks.Store(&all) }

// Start begins to post what happens at a hub.
func (n *Notifier) Start(h *hub.Hub) {
	n.hub = h
	n.done.Go(n.run)
}

// Close posts what has happened until ctx ends. It is called once the hub is closed.
func (n *Notifier) Close(ctx context.Context) {
	n.once.Do(func() {
		close(n.stop)
		n.done.Wait()
		if lost := n.sender.Close(ctx); len(lost) > 0 {
			n.opts.Log.Warn("notifications were lost: their queue is in memory", "notifications", len(lost))
		}
	})
}

// Joined implements [hub.Observer].
func (n *Notifier) Joined(c core.Card) { n.note(happening{agent: c.ID}) }

// Left implements [hub.Observer].
func (n *Notifier) Left(id core.AgentID, onlyByID bool) {
	if !onlyByID { // else it may have been there to ask
		n.note(happening{agent: id, left: true})
	}
}

// ChildChanged notes that an agent which the hub runs itself has another state. It returns at once.
func (n *Notifier) ChildChanged(id core.AgentID) { n.note(happening{agent: id, child: true}) }

// Appended implements [hub.Observer].
func (n *Notifier) Appended(id core.TaskID, e core.Event) {
	switch k := e.Body.Kind(); {
	case k == core.KindApprovalRequested, k == core.KindQuestionAsked:
		n.note(happening{task: id, at: e.Cursor()})
	case k.Ends() && len(*n.hooks.Load()) > 0:
		n.mu.Lock()
		defer n.mu.Unlock()
		if len(n.ending) == maxEnding {
			n.drop()
			return
		}
		n.ending[id] = e.End()
	}
}

// Recorded implements [hub.Observer].
func (n *Notifier) Recorded(id core.TaskID, upTo uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last, ends := n.ending[id]; ends && last <= upTo {
		delete(n.ending, id)
		n.note(happening{task: id})
	}
}

// Cut implements [hub.CutObserver].
func (n *Notifier) Cut(id core.TaskID, end core.Event) { n.note(happening{task: id, end: &end}) }

// Forgotten implements [hub.ForgottenObserver].
func (n *Notifier) Forgotten(id core.TaskID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.ending, id)
}

// note queues what has happened. Its callers hold locks of the hub.
func (n *Notifier) note(h happening) {
	if len(*n.hooks.Load()) == 0 {
		return
	}
	select {
	case n.queue <- h:
	default:
		n.drop()
	}
}

// drop counts what is not told to anybody.
func (n *Notifier) drop() {
	n.lost.Add(1)
	n.opts.Count("notify.dropped")
}

func (n *Notifier) run() {
	for {
		select {
		case h := <-n.queue:
			n.take(h)
		case <-n.agents.due():
			n.post(n.agents.down(n.hub, time.Now())...)
		case <-n.stop:
			for {
				select {
				case h := <-n.queue:
					n.take(h)
					continue
				default:
				}
				return
			}
		}
	}
}

// take posts what one happening gives reason to.
func (n *Notifier) take(h happening) {
	if lost := n.lost.Swap(0); lost > 0 {
		n.opts.Log.Warn("notifications were dropped: more happened than could be told", "notifications", lost)
	}
	if h.agent != "" {
		n.post(n.agents.changed(n.hub, h, time.Now())...)
		return
	}
	t, err := n.hub.Task(context.Background(), self, h.task)
	if err != nil {
		n.drop()
		n.opts.Log.Warn("a notification was dropped: its task could not be read", "task", h.task, "error", err)
		return
	}
	n.post(n.ofTask(t, h)...)
}

// post gives messages to the webhooks that are told of them.
func (n *Notifier) post(all ...message) {
	for _, m := range all {
		m.link(n.opts.Console())
		id := "msg_" + core.NewID()
		for _, w := range *n.hooks.Load() {
			if w.wants(m) {
				n.deliver(w, m, id)
			}
		}
	}
}

// deliver gives a message to the sender, and logs what becomes of it. The path and the query of an address may be a
// secret.
func (n *Notifier) deliver(w Webhook, m message, id string) {
	host, err := n.sender.Check(w.URL, webhook.Place{Member: "url"})
	if err != nil { // the settings were checked
		n.drop()
		return
	}
	body := m.body(w.Content)
	log := n.opts.Log.With("webhook", host, "event", m.Type, "id", id)
	if m.Data.Task != "" {
		log = log.With("task", m.Data.Task)
	}
	d := &webhook.Delivery{URL: w.URL, Target: host, Body: body, Header: w.headers(id, body)}
	d.Attempted = func(o webhook.Outcome) {
		n.opts.Count("notify." + string(o))
		attempt, why := d.Attempt()
		log := log.With("attempt", attempt)
		if o == webhook.Delivered {
			log.Info("notification delivered")
			return
		}
		log.Warn("notification "+string(o), "why", why)
	}
	n.sender.Send(d)
}
