package cluster

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// record is what is known of another hub: of its latest life.
type record struct {
	name  string
	index int
	epoch uint64
	// by is who has taken the life over; zero if nobody has.
	by journal.Life
	// inherited says that this hub has taken the life over and has done what that takes. Others may say
	// that it has before it knows: the store has it that it is the heir, and it is to try again.
	inherited bool
	// forgotten says that the hub does not count any more.
	forgotten bool

	state State
	// begun says that this hub or another one has heard the life.
	begun bool
	// last is the latest beat of the life; nil before the first.
	last *beat
	// heard is when it was heard last, or its life was known first, by [Cluster.ran].
	heard time.Duration
	// misses has the epochs of the hubs that are silent for it; echo is the latest beat that it has heard
	// of the life of this one, zero if there is none.
	misses map[string]uint64
	echo   uint64
	// missed says that this hub finds it silent.
	missed bool
	// replaced ends what was begun since the hub is silent; nil if nothing was. See [Callbacks].Silent.
	replaced context.CancelFunc
	// nobody counts the requests in a row that nobody answered.
	nobody int

	// present says that its agents are in the roster.
	present bool
	// loads are those of its agents that are not idle, loadsSeq is the latest message with some.
	loads    map[core.AgentID]Load
	loadsSeq uint64

	// What goroutines do for it: at most one of each kind.
	pinging, taking bool
	// doubted asks for a ping.
	doubted bool

	told told
	due  bool // it is in Cluster.due
}

func (r *record) life() journal.Life { return journal.Life{Hub: r.name, Epoch: r.epoch} }

// listen notes that the hub was heard, or that a life of it is waited for.
func (r *record) listen(ran time.Duration) {
	r.heard, r.nobody = ran, 0
	if r.replaced != nil {
		r.replaced()
		r.replaced = nil
	}
}

// seq returns the latest beat of the life, zero before the first.
func (r *record) seq() uint64 {
	if r.last == nil {
		return 0
	}
	return r.last.Seq
}

// over reports whether the life was taken over.
func (r *record) over() bool { return r.by != journal.Life{} }

// begin makes the record that of a new life, of which nothing has been heard.
func (r *record) begin(epoch uint64, ran time.Duration) {
	r.epoch, r.by, r.inherited, r.forgotten, r.begun = epoch, journal.Life{}, false, false, false
	r.state, r.last, r.misses, r.present = Suspect, nil, nil, false
	r.loads, r.loadsSeq = map[core.AgentID]Load{}, 0
	r.echo, r.missed = 0, false
	r.listen(ran)
}

// lose notes that the hub is gone.
func (r *record) lose() {
	r.state = Gone
	r.present, r.misses, r.echo = false, nil, 0
}

// hub returns the record as others see it.
func (r *record) hub() Hub {
	h := Hub{Name: r.name, Index: r.index, Epoch: r.epoch, State: r.state}
	if r.over() {
		by := r.by
		h.TakenBy = &by
	}
	if b := r.last; b != nil {
		h.Agents, h.Tasks, h.Since, h.Address = b.Agents, b.Tasks, b.Since, b.Address
	}
	if r.state == Gone {
		h.Agents, h.Tasks = 0, 0
	}
	return h
}
