package hub

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/memory"
	"github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/quota"
	"github.com/dragoman-hub/dragoman/core/recorder"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/thread"
	"github.com/dragoman-hub/dragoman/core/topic"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// Options configure a Hub. The zero Options make a hub in memory with the defaults.
type Options struct {
	// ID names the hub to its peers; "" generates one.
	ID string
	// Remote are those with which the hub works as one, and Node is its node among them; nil for a hub alone.
	Remote Remote
	Node   *rpc.Node
	// OnDrain is called once, when the hub begins to take nothing new; nil does nothing. It must return at once.
	OnDrain func()
	// Open names the other hubs that take new work, in words that complete a refusal; it returns "" if there are none.
	// It must not wait. It is nil for a hub alone.
	Open func() string
	// Requests has the keys of requests for all hubs; nil for a hub alone.
	Requests Requests
	// Journal records every task; nil means a journal in memory. The hub does not close it.
	Journal journal.Journal
	Limits  Limits
	// Memory bounds the logs of tasks, what waits for sessions and what else counts in it: new
	// tasks are refused when it is full. nil bounds nothing.
	Memory *memory.Budget
	// Quotas are those of each principal; nil limits nothing. Its connections are sessions,
	// without their children: one over the quota is closed at once with an overloaded Fault.
	Quotas *quota.Book
	// Authorizer decides who may give which command; nil means [policy.Default]. A nil Limiter is that
	// of the Quotas. Auditor and Tracer may be nil.
	Authorizer policy.Authorizer
	Limiter    policy.Limiter
	Auditor    policy.Auditor
	Tracer     policy.Tracer
	// UsageStore stores what was spent beyond the end of the hub; nil stores nothing. The
	// hub does not close it.
	UsageStore usage.Store
	// Budgets limit what may be spent.
	Budgets []usage.Budget
	// Prices say what tokens cost; without a currency it is [usage.DefaultCurrency].
	Prices usage.Prices
	// Restart starts an agent or a pack of the settings again, or says that there is none of the
	// name; nil where the hub runs none.
	Restart func(name string) error
	// Refused returns the state of an agent of the settings that could not join because another
	// agent has its id; nil for any other. It must return at once, and not call the hub.
	Refused func(id core.AgentID) *core.Child
	// Forget says that another hub of the cluster is gone for good; nil for a hub alone. Its errors
	// are Faults.
	Forget func(ctx context.Context, hub string) error
	// Registrar knows the principals; nil where nobody can register.
	Registrar Registrar
	// AgentSettings are those that were set before. SaveAgentSettings stores all of them
	// beyond the end of the hub, one call at a time; nil stores nothing.
	AgentSettings     map[core.AgentID]AgentSettings
	SaveAgentSettings func(map[core.AgentID]AgentSettings) error
	// Schema compiles the JSON Schema of a pack's tool into a function that checks an
	// input, with errors of one line that name the field. nil leaves the inputs to the
	// packs.
	Schema func(schema []byte) (func(input []byte) error, error)
	// Redact returns what takes secrets out of events before the journal gets them, and out of what
	// lists and streams show of the tasks of others: see [Hub.FormFor]. nil, or a function that
	// returns nil, leaves them as they are.
	Redact func() *redact.Redactor
	// Frames keeps the frames of connections; nil keeps none.
	Frames *frame.Book
	// Log is for operators; nil discards it.
	Log *slog.Logger
	// Observer is notified of every event as it happens; nil for none.
	Observer Observer
}

// Observer watches a hub, in order. Its methods are called with locks held: they must
// return at once and must not call the hub.
type Observer interface {
	// Joined and Left tell which agents are connected. Joined comes again whenever a card
	// changes. onlyByID is [JoinOptions.OnlyByID] of the agent as it left.
	Joined(core.Card)
	Left(id core.AgentID, onlyByID bool)
	// Appended tells of every event of every task, in the order of its sequence.
	Appended(core.TaskID, core.Event)
	// Recorded tells that the journal has a task up to seq.
	Recorded(task core.TaskID, seq uint64)
}

// Hub is the engine. It is safe for concurrent use.
type Hub struct {
	id            string
	remote        Remote // nil alone
	node          *rpc.Node
	onDrain       func()        // may be nil
	openElsewhere func() string // may be nil
	limits        Limits
	memory        *memory.Budget // may be nil
	quotas        *quota.Book    // may be nil
	authorizer    policy.Authorizer
	limiter       policy.Limiter
	auditor       policy.Auditor
	tracer        policy.Tracer
	redact        func() *redact.Redactor // may be nil
	frames        *frame.Book             // may be nil
	log           *slog.Logger
	observer      Observer
	journal       journal.Journal
	requests      Requests // may be nil
	roster        *roster.Roster
	threads       *thread.Book
	index         *thread.Index
	usage         *usage.Ledger
	budgets       *usage.Budgets
	prices        usage.Prices
	spending      spending
	// usageStore may be nil.
	usageStore usage.Store
	counters   counters
	crossings  crossings
	recorder   *recorder.Recorder
	admitted   sync.WaitGroup // tasks that are not with the recorder yet
	refusals   quota.Refusals

	registrations registrations
	tasks         *task.Store
	packs         *pack.Registry
	questions     *question.Book
	topics        *topic.Book
	settings      *settings
	followers     followers
	gathering     gathering
	lookups       chan lookup
	// background runs until ctx ends, which stop waits for.
	background sync.WaitGroup
	ctx        context.Context //nolint:containedctx // see above
	stop       func()
	// restartChild restarts an agent or a pack of the settings; nil where the hub runs none.
	restartChild func(name string) error
	refusedChild func(id core.AgentID) *core.Child // see Options.Refused; may be nil
	registrar    Registrar                         // may be nil
	forgetHub    func(context.Context, string) error

	mu       sync.Mutex
	sessions map[*Session]struct{}
	// runs has the agents of each principal that proved who it is.
	runs      map[string][]*Session
	jobs      map[core.TaskID]*job         // tasks that have not ended
	asked     map[core.TaskID]*Session     // who opened a task that is run elsewhere and has not ended
	sent      map[core.TaskID]core.AgentID // the agents of other hubs to which tasks went that have not ended
	placing   map[core.TaskID]struct{}     // tasks on their way to other hubs
	allPlaced chan struct{}                // closed when there are none any more
	coming    int                          // tasks on their way here
	expected  map[core.TaskID]string       // see Port.Expected
	orphans   map[core.AgentID][]orphan    // jobs of agents that have gone and come to another hub
	peers     map[string]*remoteCaller     // those that are connected, as packs see them
	// noticed are the notices of this hub of which the others have not said whether somebody
	// subscribes to them, and those hubs.
	noticed map[core.TaskID]map[string]bool
	// recoveredKeys are tasks in the journal that have keys, until the Keys of their dialect are made.
	recoveredKeys []journal.Head
	numbers       uint64                    // of connections
	stealable     map[*Session]struct{}     // agents in whose queues are tasks that others may have
	watchers      map[*Session]struct{}     // of all tasks
	broadcast     *broadcast                // for the feeds that are live; nil if there are none
	known         func(core.Principal) bool // see Expel; nil means everybody
	end           ending
	closed        error // set once the hub has stopped or is drained: the reason for new sessions
}

// New makes a Hub and starts its recorder. Close ends it.
func New(opts Options) *Hub {
	h := &Hub{
		id: opts.ID, remote: opts.Remote, node: opts.Node, onDrain: opts.OnDrain, openElsewhere: opts.Open, limits: opts.Limits.WithDefaults(), memory: opts.Memory, quotas: opts.Quotas, authorizer: opts.Authorizer,
		limiter: opts.Limiter, auditor: opts.Auditor, tracer: opts.Tracer, redact: opts.Redact, frames: opts.Frames,
		log: opts.Log, observer: opts.Observer, journal: opts.Journal, requests: opts.Requests, restartChild: opts.Restart, forgetHub: opts.Forget, refusedChild: opts.Refused, registrar: opts.Registrar,
		roster: roster.New(), usage: usage.NewLedger(), budgets: usage.NewBudgets(opts.Budgets), prices: opts.Prices, usageStore: opts.UsageStore, counters: counters{n: map[string]int64{}}, crossings: crossings{n: map[dialects]*kindCounts{}},
		sessions: map[*Session]struct{}{}, runs: map[string][]*Session{}, lookups: make(chan lookup, maxLookups), jobs: map[core.TaskID]*job{}, asked: map[core.TaskID]*Session{}, sent: map[core.TaskID]core.AgentID{}, placing: map[core.TaskID]struct{}{}, allPlaced: make(chan struct{}),
		expected: map[core.TaskID]string{}, orphans: map[core.AgentID][]orphan{}, peers: map[string]*remoteCaller{}, noticed: map[core.TaskID]map[string]bool{}, gathering: newGathering(),
		watchers: map[*Session]struct{}{}, stealable: map[*Session]struct{}{}, end: ending{idle: make(chan struct{}), drained: make(chan struct{})}, settings: newSettings(opts.AgentSettings, opts.SaveAgentSettings), refusals: quota.NewRefusals(),
	}
	if h.id == "" {
		h.id = core.NewID()
	}
	h.prices.Currency = cmp.Or(h.prices.Currency, usage.DefaultCurrency)
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.authorizer == nil {
		h.authorizer = policy.Default{}
	}
	if h.limiter == nil && h.quotas != nil {
		h.limiter = h.quotas
	}
	if h.node == nil {
		h.node = rpc.NewNode(nil, "", 0, h.log)
	}
	if h.journal == nil {
		h.journal = journal.NewMemory(journal.Retention{})
	}
	h.packs = pack.NewRegistry(pack.Options{
		Limits: pack.Limits{
			Packs: h.limits.Packs, Tools: h.limits.PackTools, Calls: h.limits.PackCalls, CallBytes: h.limits.RequestBytes,
			Timeout: h.limits.ToolTimeout, MaxTimeout: h.limits.MaxToolTimeout,
		},
		Reserved: isBuiltin, Schema: opts.Schema, Count: h.Count, Elsewhere: h.remotePack, Tell: h.tellPacks,
	})
	h.questions = question.NewBook(question.Options{Schema: opts.Schema, Limit: h.limits.Questions, MayAnswer: h.mayAnswer, Settled: h.questionSettled, Tell: h.tellQuestion})
	h.threads = thread.NewBook(h.limits.Threads, h.threadBytes())
	h.index = thread.NewIndex(thread.IndexTasks)
	h.topics = topic.NewBook(topic.Options{Keep: h.limits.KeepNotices, Bytes: h.limits.NoticeBytes, MayReceive: h.mayReceive, Tell: h.tellTopic})
	var cancel context.CancelFunc
	h.ctx, cancel = context.WithCancel(context.Background())
	h.background.Go(func() { h.readLookups(h.ctx) })
	if h.remote != nil {
		h.background.Go(func() { h.storeSettings(h.ctx) })
	}
	for range wholeReads {
		h.background.Go(func() { h.gatherWanted(h.ctx) })
	}
	h.stop = func() {
		h.mu.Lock() // which is held to begin something in the background
		cancel()
		h.mu.Unlock()
		h.background.Wait()
	}
	h.tasks = task.NewStore(task.Limits{
		TaskBytes: h.limits.TaskBytes, RequestBytes: h.limits.RequestBytes,
		QuestionTimeout: h.limits.QuestionTimeout, Silence: h.limits.Silence, MaxDeadline: h.limits.MaxDeadline, CancelGrace: h.limits.CancelGrace, Retries: h.limits.Retries,
		FinishedTasks: h.limits.FinishedTasks, FinishedBytes: h.limits.FinishedBytes, Owner: h.node.Index(), Cluster: h.remote != nil, Memory: h.memory,
	}, host{h}, h.journal)
	age := journal.SegmentAge
	if h.remote != nil { // readers wait for it
		age = journal.ShownAge
	}
	h.recorder = recorder.Start(recorder.Options{
		Journal: h.journal, Usage: h.usageStore, Redact: opts.Redact, Find: h.tasks.Get, MaxLag: h.limits.JournalLag, SegmentAge: age, Count: h.Count, Log: h.log,
	})
	h.answerOthers()
	if h.remote != nil {
		h.remote.Attach(h.port())
	}
	return h
}

// RPC implements [rpc.Host].
func (h *Hub) RPC() *rpc.Node { return h.node }

// HomeOf is [rpc.Node.HomeOf] for this hub, which is no home while it takes nothing new.
func (h *Hub) HomeOf(key string, others []string) string {
	return h.node.HomeOf(key, others, h.Draining() == "")
}

// answerOthers has what other hubs ask and tell answered and heard.
func (h *Hub) answerOthers() {
	approvalsMethod.Answer(h, func(_ context.Context, by core.Principal, _ struct{}) ([]task.PendingApproval, error) {
		return h.approvals(by), nil
	})
	auditMethod.Answer(h, h.auditHere)
	configureMethod.Answer(h, func(_ context.Context, _ core.Principal, c core.Configure) (*AgentStatus, error) {
		return h.configure(c)
	})
	framesMethod.Answer(h, h.framesHere)
	restartMethod.Answer(h, func(_ context.Context, _ core.Principal, name string) (struct{}, error) {
		return struct{}{}, h.restart(name)
	})
	tasksMethod.Answer(h, h.tasksHere)
	usageMethod.Answer(h, func(_ context.Context, _ core.Principal, by usage.By) ([]usage.Total, error) {
		return h.usage.Totals(by)
	})
	unreadMethod.Answer(h, h.unread)
	runningMethod.Answer(h, h.runningHere)
	betweenMethod.Answer(h, h.betweenHere)
	h.hearPacks()
	h.hearTopics()
	h.hearSettings()
	newsOfQuestions.Hear(h, h.hearQuestion, func(from string) { h.questions.HubUp(from) })
	answersToQuestions.Answer(h, func(_ context.Context, by core.Principal, r core.Reply) (question.Outcome, error) {
		return h.questions.AnswerFrom(by, r)
	})
	spentNews.Hear(h, h.toldSpent, nil)
	newestNews.Hear(h, func(_ string, n newestOwn) { h.tasks.NoteLines(n.Lines) }, nil)
	AdoptedMethod.Answer(h, func(_ context.Context, _ core.Principal, id core.TaskID) (bool, error) {
		return h.tasks.Get(id) != nil, nil
	})
	recordedMethod.Answer(h, h.hasRecorded)
}

// ID returns the id of the hub.
func (h *Hub) ID() string { return h.id }

// Limits returns the limits in force.
func (h *Hub) Limits() Limits { return h.limits }

// Memory returns the budget of the hub; nil if it has none.
func (h *Hub) Memory() *memory.Budget { return h.memory }

// Quotas returns the quotas of principals; nil if there are none.
func (h *Hub) Quotas() *quota.Book { return h.quotas }

// Connect starts a session for a connection. The caller reads it with [Session.Next] and
// ends it with [Session.Close].
func (h *Hub) Connect(p Identity) *Session {
	h.anticipate(p.Principal)
	s := newSession(h, p)
	leave, full := h.quotas.Connect(p.Principal)
	s.leave = leave
	h.connect(s)
	if full != nil {
		if a, ok := h.auditor.(policy.ConnectionAuditor); ok {
			a.Connected(p.Principal, p.Dialect, "", full)
		}
		f := core.AsFault(full)
		h.mu.Lock()
		s.refused = f
		h.mu.Unlock()
		s.Close(f)
	}
	return s
}

func (h *Hub) connect(s *Session) {
	h.mu.Lock()
	h.sessions[s] = struct{}{}
	h.numbers++
	s.number = h.numbers
	s.expire()
	if h.end.reason != "" {
		s.inbox.push(Batch{Draining: h.farewell()})
	}
	if h.closed != nil && h.endsWith(s) {
		s.inbox.end(h.closed)
	}
	known := h.known
	h.mu.Unlock()
	if p := s.identity.Principal; known != nil && p.Authenticated && !known(p) {
		s.Close(revoked())
	}
}

// live returns the tasks that have not ended, the oldest first.
func (h *Hub) live() []*job {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.SortedFunc(maps.Values(h.jobs), func(a, b *job) int { return cmp.Compare(a.ID(), b.ID()) })
}

// Running returns how many tasks of this hub have not ended.
func (h *Hub) Running() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.jobs)
}

// unrecorded returns how many tasks the journal does not have completely, as far as this hub is to
// write them.
func (h *Hub) unrecorded() (n int) {
	for _, t := range h.tasks.InMemory() {
		if !t.IsRecorded() {
			n++
		}
	}
	return n
}

// JournalHealth returns the health of the journal: see [recorder.Recorder.Health].
func (h *Hub) JournalHealth() recorder.Health { return h.recorder.Health() }

// Turns returns the latest turns of a thread that the principal may read, oldest first, those of
// others redacted; none for a thread that no hub remembers. It may wait for the journal and for
// other hubs.
func (h *Hub) Turns(ctx context.Context, p core.Principal, id core.ThreadID) []core.Turn {
	h.remember(ctx, id)
	h.gather(ctx, id)
	known, _ := h.threads.Turns(id, 1<<30)
	turns, redactor := h.turns(p, slices.Clone(known)), host{h}.Redactor()
	for i, t := range turns {
		if !seesAsSaid(p, t.From) {
			turns[i] = redactor.Turn(t)
		}
	}
	return turns
}

// Count adds one to a named counter: what a dialect folded, refused or ignored.
func (h *Hub) Count(name string) { h.counters.add(name) }

// Counters returns a copy of all counters.
func (h *Hub) Counters() map[string]int64 { return h.counters.all() }

type counters struct {
	mu sync.Mutex
	n  map[string]int64
}

func (c *counters) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[name]++
}

func (c *counters) all() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}
