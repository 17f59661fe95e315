package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// Settings are what a Cluster needs to know.
type Settings struct {
	// Life is that of this hub, Index its index: see [TakeIndex].
	Life  journal.Life
	Index int
	// Address is where clients reach this hub, for the others' lists; it may be "".
	Address string
	// Bus is nil for a hub that is alone. Claims is not needed then.
	Bus    Bus
	Claims Claims
	// External says that the bus and the store are not run by the hubs themselves. Then a hub
	// that reaches the bus has a quorum, however many other hubs there are.
	External bool
	// Formation is how many hubs have to meet before the cluster is formed; 0 means three, or
	// one if the bus is external. From then on, and if so many are Known, the majority of the
	// known hubs is enough.
	Formation int
	// Known are the hubs that the journal knows from before: their names, indexes, latest epochs,
	// and who has taken these over. Without it a cluster that was restarted, but for one hub
	// that was cut off, cannot tell that one that its life was taken over.
	Known []Hub
	// Tasks returns how many tasks the hub has, for the others' lists. It must not wait. It may
	// be nil.
	Tasks func() int
	// Callbacks are the ends of the news.
	Callbacks Callbacks
	Log       *slog.Logger
}

// Callbacks are called by [Cluster.Run], one at a time but for TakeOver, and with no lock held:
// they may call the Cluster, and may take the locks under which it is called. Each may be nil.
//
// Those about one hub come in the order HubUp, then those about its agents, then HubGone.
type Callbacks struct {
	// HubUp is called when a life of another hub was heard first, or once more after HubGone.
	HubUp func(Hub)
	// HubChanged is called when its state has changed.
	HubChanged func(Hub)
	// HubGone is called when a hub is gone. Its agents are gone with it: AgentDown is not
	// called for them.
	HubGone func(journal.Life)

	// AgentUp is called for each agent of a hub that is up, AgentDown when one has left. One
	// that has joined again, here or there, goes down and comes up: it is at one hub at a time.
	AgentUp      func(of journal.Life, e Entry)
	AgentChanged func(of journal.Life, e Entry)
	AgentDown    func(of journal.Life, id core.AgentID)

	// Silent is called when a hub has said nothing for 2 s, once until it is heard again, which ends ctx: what it does
	// for others, somebody else may do; nothing of it has ended. It is called in a goroutine of its own and may wait.
	Silent func(ctx context.Context, hub string)
	// TakeOver has to take over the life of a hub that is gone, as [journal.Shared] does: it
	// returns nil if this hub has it then, and a *journal.TakenError if another one has, whose
	// own life was not taken over. After any other error it is called again, unless it is no
	// longer needed. It is called after HubGone, in a goroutine of its own for each life, and
	// should return once the life is taken.
	TakeOver func(ctx context.Context, of journal.Life) error
	// TakenOver is called when it is known who has taken a life over: readers of its tasks go
	// on there. It is called again if that one dies too.
	TakenOver func(of, by journal.Life)
	// Deposed is called once, when the own life was taken over: the hub has to begin a new one,
	// with a new Cluster.
	Deposed func(by journal.Life)

	// Release is called when another hub wants an agent of this one: see [Release].
	Release func(Release)
}

// The times of the cluster.
const (
	beatEvery  = 250 * time.Millisecond // heartbeats
	loadsEvery = 100 * time.Millisecond // loads of agents
	judgeEvery = 50 * time.Millisecond  // looking who is silent
	// suspectAfter is when a silent hub is asked: two beats missed, and some more. If nobody answers
	// there, its process is gone.
	suspectAfter = 600 * time.Millisecond
	// replaceAfter is when somebody else is to do what a silent hub does for others, so that this is settled once it
	// counts as lost.
	replaceAfter = 2 * time.Second
	// goneAfter is when a hub counts as lost though its connections are open: it may stand still or
	// starve for 2.5 s before.
	goneAfter = 3500 * time.Millisecond
	// quorumFor is how long a hub has a quorum without a word of the others. It is shorter, so that who
	// is taken over for its silence has none any more, and who hears none gives none up.
	quorumFor = 3300 * time.Millisecond
	startTime = 8 * time.Second // from the life in the journal to its first beat, at most
)

// Cluster is the view that one hub has of all. All methods may be called concurrently; only
// Claim, Forget, Announce and Run wait.
type Cluster struct {
	s    Settings
	self string

	// Each of these wakes a loop of Run.
	publish, judge, tell chan struct{}
	// running is closed when Run begins.
	running chan struct{}

	mu sync.Mutex
	// records are the other hubs, by name.
	records map[string]*record
	roster  roster
	// own are the ids of this hub, by id; dueLoads those of agents with another load than was told.
	own      map[core.AgentID]*ownAgent
	dueLoads []core.AgentID
	loadsSeq uint64
	loadsTo  core.AgentID // where the latest page of loads ends
	swept    time.Time
	// working ends with Run; saving  are the goroutines that write agents, writing bounds them.
	working context.Context //nolint:containedctx // that of Run
	saving  sync.WaitGroup
	writing chan struct{}
	// judged is when this hub has last looked at all hubs. ran is for how long it has done so: not
	// while its process stood still. asleep is for how long the machine was suspended.
	judged      time.Time
	ran, asleep time.Duration
	// echo is the latest of its own beats that this hub has heard.
	echo     uint64
	formed   bool
	starting bool // Announce was called, and not yet Run
	draining bool
	deposed  journal.Life
	left     bool // Run has ended
	seq      uint64
	since    time.Time
	beatNow  bool
	refused  map[string]bool // hubs of a version that cannot be read, which the log has
	// due are the records of which the engine has to be told.
	due         []*record
	toldDeposed bool
	releases    []Release
	// changed is closed and replaced when a state has changed.
	changed chan struct{}
}

// New returns a Cluster. It has no effect before [Cluster.Run].
func New(s Settings) (*Cluster, error) {
	if err := checkHub(s.Life.Hub, s.Life.Epoch, s.Index); err != nil {
		return nil, err
	}
	if s.Formation == 0 {
		s.Formation = 3
		if s.External {
			s.Formation = 1
		}
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	now := time.Now()
	c := &Cluster{
		s: s, self: s.Life.Hub, own: map[core.AgentID]*ownAgent{}, writing: make(chan struct{}, writers), records: map[string]*record{}, roster: newRoster(), refused: map[string]bool{},
		publish: make(chan struct{}, 1), judge: make(chan struct{}, 1), tell: make(chan struct{}, 1),
		running: make(chan struct{}), since: now, judged: now, changed: make(chan struct{}),
	}
	for _, h := range s.Known {
		if h.Name == c.self {
			continue
		}
		if err := checkHub(h.Name, h.Epoch, h.Index); err != nil {
			return nil, fmt.Errorf("a known hub: %w", err)
		}
		r := c.record(h.Name, h.Epoch, h.Index)
		if h.TakenBy != nil {
			r.by, r.state = *h.TakenBy, Gone
		}
		r.forgotten = h.Forgotten
	}
	c.formed = len(c.records) >= s.Formation-1 && len(c.records) > 0
	return c, nil
}

// record returns the record of a hub, at least of that epoch. Callers hold mu.
func (c *Cluster) record(name string, epoch uint64, index int) *record {
	r := c.records[name]
	if r == nil {
		r = &record{name: name, index: index}
		c.records[name] = r
	}
	if epoch > r.epoch {
		r.begin(epoch, c.ran)
		r.index = index
		c.note(r)
	}
	return r
}

// alone reports whether there is no bus.
func (c *Cluster) alone() bool { return c.s.Bus == nil }

// SetDraining tells the others whether this hub takes no new work.
func (c *Cluster) SetDraining(draining bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.draining != draining {
		c.draining = draining
		c.urge()
	}
}

// Hubs returns all hubs, ordered by name, this one included, but for those that were forgotten.
// A stale view is that of a hub which is cut off itself: the others may be well.
func (c *Cluster) Hubs() (all []Hub, stale bool) {
	tasks := c.tasks()
	c.mu.Lock()
	defer c.mu.Unlock()
	me := Hub{Name: c.self, Index: c.s.Index, Epoch: c.s.Life.Epoch, State: Up, Agents: c.agents(), Tasks: tasks, Since: c.since, Address: c.s.Address}
	if c.draining {
		me.State = Draining
	}
	all = append(all, me)
	for _, r := range c.records {
		if !r.forgotten {
			all = append(all, r.hub())
		}
	}
	slices.SortFunc(all, byName)
	return all, c.stale()
}

// Missing returns the names of the hubs whose agents are not known although they may have some.
func (c *Cluster) Missing() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.records {
		if !r.over() && !r.forgotten && !r.left() && (!r.present || !c.roster.whole) {
			names = append(names, r.name)
		}
	}
	slices.Sort(names)
	return names
}

// HasQuorum reports whether this hub may take new work: a majority of the known hubs has lately heard
// it, itself included.
func (c *Cluster) HasQuorum() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.quorum()
}

// NameOf returns the name of the hub with an index, which may be gone. Unlike [Cluster.Hubs] it may
// be called with locks that [Settings.Tasks] takes.
func (c *Cluster) NameOf(index int) (name string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.records {
		if r.index == index {
			return r.name, true
		}
	}
	return "", false
}

// Open returns the other hubs that take new work, ordered by name. Unlike [Cluster.Hubs] it may be
// called with locks that [Settings.Tasks] takes.
func (c *Cluster) Open() (all []Hub) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.records {
		if h := r.hub(); h.State == Up && !r.forgotten {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, byName)
	return all
}

// doubt has a hub asked at once whether it is there: a request has found no responder. Callers hold mu.
func (c *Cluster) doubt(r *record) {
	if r != nil && r.state.heard() && !r.pinging {
		r.doubted = true
		fifo.Signal(c.judge)
	}
}

// alter tells those who wait that a state has changed. Callers hold mu.
func (c *Cluster) alter() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// urge sends a beat at once. Callers hold mu.
func (c *Cluster) urge() {
	c.beatNow = true
	fifo.Signal(c.publish)
}

// agents returns how many agents this hub has. Callers hold mu.
func (c *Cluster) agents() (n int) {
	for _, a := range c.own {
		if a.entry != nil {
			n++
		}
	}
	return n
}

func (c *Cluster) tasks() int {
	if c.s.Tasks == nil {
		return 0
	}
	return c.s.Tasks()
}
