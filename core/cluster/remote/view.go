package remote

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/task"
)

// view is which other hubs there are. Its lock may be taken under that of the engine.
type view struct {
	mu   sync.Mutex
	hubs map[string]*other
}

// silentSince is when a hub was not heard any more; the zero one is that of a hub that is heard.
type silentSince struct{ time.Time }

// other is what is known of another hub.
type other struct {
	index    int
	up       bool // it is connected
	gone     bool // it has gone, and not come back
	taken    bool // and another hub has taken its life over: from then on the journal says what becomes of its tasks
	draining bool // it takes nothing new
	// goneSince is when this hub knew that its life was taken over.
	goneSince time.Time
	// since is from when on it was not heard although it is not gone.
	since silentSince
}

func newView() *view { return &view{hubs: map[string]*other{}} }

func (v *view) add(name string, index int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.hubs[name] = &other{index: index, up: true}
}

// change changes what is known of a hub, also of one that was not up yet.
func (v *view) change(name string, how func(*other)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	o := v.hubs[name]
	if o == nil {
		o = &other{index: -1}
		v.hubs[name] = o
	}
	how(o)
}

// get returns what is known of a hub.
func (v *view) get(name string) other {
	v.mu.Lock()
	defer v.mu.Unlock()
	if o := v.hubs[name]; o != nil {
		return *o
	}
	return other{index: -1}
}

// where returns the hubs for which something holds, in order.
func (v *view) where(is func(*other) bool) (names []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(v.hubs)) {
		if is(v.hubs[name]) {
			names = append(names, name)
		}
	}
	return names
}

// silenceTime is how long a hub may not be heard before it is asked for nothing, and how long after one look at what
// it stores the next one is. Most are heard again by then, or gone.
const silenceTime = 3 * time.Second

// isSilent reports whether the hub has not been heard for a while.
func (o *other) isSilent() bool { return !o.since.IsZero() && time.Since(o.since.Time) >= silenceTime }

// Names implements [rpc.Peers].
func (r *Hubs) Names() (up, missing, gone []string) {
	if r.cluster != nil {
		missing = r.cluster.Missing()
	}
	all := r.Up()
	missing = slices.DeleteFunc(missing, func(name string) bool { return slices.Contains(all, name) })
	up = r.view.where(func(o *other) bool { return o.up && !o.isSilent() })
	missing = append(missing, r.view.where(func(o *other) bool { return o.up && o.isSilent() })...)
	r.Lock()
	defer r.Unlock()
	return up, missing, slices.Sorted(maps.Keys(r.remains))
}

// At implements [rpc.Peers].
func (r *Hubs) At(index int) (name string, up bool) {
	for _, name := range r.view.where(func(o *other) bool { return o.index == index }) {
		return name, r.view.get(name).up
	}
	if r.cluster != nil { // it may know hubs that were gone when this one started
		name, _ = r.cluster.NameOf(index)
	}
	return name, false
}

// State implements [rpc.Peers].
func (r *Hubs) State(name string) rpc.State {
	o := r.view.get(name)
	return rpc.State{Index: o.index, Up: o.up, Draining: o.draining, Unheard: !o.since.IsZero(), Silent: o.isSilent(), GoneSince: o.goneSince}
}

// notHeard is why a hub is not asked.
func notHeard(name string) *core.Fault {
	return core.NewFault(core.CodeUnreachable, "hub %s is not heard by this hub: ask again in a moment, or ask at another hub", name)
}

// Up implements [rpc.Peers].
func (r *Hubs) Up() []string { return r.view.where(func(o *other) bool { return o.up }) }

// HubHeard says whether a hub is heard.
func (r *Hubs) HubHeard(name string, heard bool) {
	r.view.change(name, func(o *other) {
		switch {
		case heard:
			o.since = silentSince{}
		case o.since.IsZero():
			o.since = silentSince{time.Now()}
			r.settleSoon()
		}
	})
}

// owner returns the hub that owns a task, and whether that is another one.
func (r *Hubs) owner(t *task.Task) (hub string, remote bool) {
	if hub = t.Owner(); hub != "" {
		return hub, hub != r.name
	}
	return r.ownerOf(task.OwnerOf(t.ID()))
}

// ownerOf returns the other hub that first owned a task, by the index in its id; false if this hub
// did, or if no hub of the cluster has the index.
func (r *Hubs) ownerOf(index int) (hub string, ok bool) {
	hub, _ = r.At(index)
	return hub, hub != "" && hub != r.name
}
