package pack

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// Limits bound packs and calls.
type Limits struct {
	// Packs is how many packs may be connected, and Tools how many tools each may
	// provide.
	Packs, Tools int
	// Calls is how many calls may wait for one pack, and CallBytes bounds the sum of their
	// inputs.
	Calls, CallBytes int
	// Timeout is how long a call may take by default, and MaxTimeout bounds the timeouts of
	// tools.
	Timeout, MaxTimeout time.Duration
}

// Options are the options of a Registry.
type Options struct {
	Limits Limits
	// Reserved reports whether packs may not use a name for a tool.
	Reserved func(name string) bool
	// Schema compiles the JSON Schema of a tool into a function that checks an input, with
	// errors of one line that name the field. nil leaves the inputs to the packs.
	Schema func(schema []byte) (check func(input []byte) error, err error)
	// Count adds one to a named counter. It must not call the Registry.
	Count func(name string)
	// Elsewhere returns the Peer of a pack of another hub, and Tell tells the Registry of another
	// hub, once and in order, or that hub is reported as gone. They must not wait and must not call
	// the Registry. nil for a hub alone.
	Elsewhere func(Provider) Peer
	Tell      func(hub string, w Word)
}

// Peer is a connection that provides a pack, calls tools, or watches the list of tools.
// Values are compared with ==. Its methods return at once and do not call the Registry.
type Peer interface {
	// Provider returns who it is.
	Provider() Provider
	// Execute gives the peer a call for its pack. The pack may start once [Registry.Take]
	// has confirmed it.
	Execute(*Execution)
	// Withdraw tells the peer that nobody waits any more for an execution that it has taken.
	Withdraw(execution string)
	// Returned gives the peer the result of one of its calls.
	Returned(*tool.Result)
	// ToolsChanged tells a peer that watches that the list of tools has changed.
	ToolsChanged()
	// Late returns the receiver of a late answer to a call of the peer; nil drops the answer.
	// It is called without the lock of the Registry, when the call is about to time out.
	Late(Call) Late
}

// Late takes the answer to a call that has timed out. It is called without the lock of the
// Registry.
type Late interface {
	// TimedOut is called once the caller has got the timeout.
	TimedOut()
	// Answer takes the answer, and reports whether it was of use.
	Answer(toolName string, r *tool.Result) bool
}

// Registry holds the packs that are connected and the calls that wait for them. It is safe
// for concurrent use.
type Registry struct {
	opts Options

	mu     sync.Mutex
	packs  map[Peer]*pack
	hubs   map[string]struct{} // the others of the cluster that are up
	tools  map[string]*provided
	calls  map[string]*pending // by the id of their execution
	absent map[string]absence  // by the id of their pack
	watchers
	late    *lru.Cache[string, timedOut] // by the id of their execution
	stopped *core.Fault
}

// pack is the pack of one peer.
type pack struct {
	id   string
	peer Peer
	// hub is that of one that is connected elsewhere, else "". since says when it came: of two the one
	// with the smaller came first.
	hub, since string
	size       int // of the definitions
	// calls and bytes count the calls that it has not answered or not taken yet.
	calls, bytes int
}

// provided is a tool of a pack.
type provided struct {
	tool.Definition
	pack  *pack
	check func([]byte) error // nil takes any input
}

// NewRegistry makes a Registry. Stop ends it.
func NewRegistry(opts Options) *Registry {
	return &Registry{
		opts: opts, packs: map[Peer]*pack{}, hubs: map[string]struct{}{}, tools: map[string]*provided{}, calls: map[string]*pending{}, absent: map[string]absence{}, watchers: newWatchers(),
		late: lru.New(lru.Options[string, timedOut]{Count: lateCalls}),
	}
}

// maxTotalBytes bounds the definitions of all tools: every agent gets them in one message.
const maxTotalBytes = 2 << 20

// Provide offers the tools of a pack through the peer until that leaves, in place of those
// that it offered before. A tool without a Timeout has that of the limits; one without an
// InputSchema takes any object. Provide returns a conflict Fault when the pack is connected
// elsewhere, when the peer provides another pack, or when the name of a tool is taken; an
// invalid Fault for a bad name or schema; a too_large or overloaded Fault beyond the
// limits; and the reason of Stop. Then nothing has changed, and so if the peer offers these tools
// already.
func (r *Registry) Provide(p Peer, id string, tools []tool.Definition) (changed bool, err error) {
	read, size, err := r.read(id, tools)
	if err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	current := r.packs[p]
	if err := r.admit(current, id, read, size); err != nil {
		return false, err
	}
	r.appears(p)
	fresh := current == nil
	if fresh {
		current = &pack{id: id, peer: p, since: core.NewID()}
		r.packs[p] = current
	}
	changed = r.put(current, read, size) || fresh
	if changed && len(r.hubs) > 0 {
		r.tell(Word{Offered: r.offered(current)})
	}
	return changed, nil
}

// put offers the tools of a pack in place of those before, and reports whether they differ. Callers hold
// mu.
func (r *Registry) put(p *pack, tools []*provided, size int) (changed bool) {
	for _, t := range tools {
		t.pack, t.Pack = p, p.id
		old := r.tools[t.Name]
		changed = changed || old == nil || !reflect.DeepEqual(old.Definition, t.Definition)
	}
	if p.size = size; !changed && len(tools) == r.count(p) {
		return false
	}
	r.withdraw(p)
	for _, t := range tools {
		r.tools[t.Name] = t
	}
	r.changed()
	return true
}

// count returns how many tools a pack offers. Callers hold mu.
func (r *Registry) count(p *pack) (n int) {
	for _, t := range r.tools {
		if t.pack == p {
			n++
		}
	}
	return n
}

// Check returns why Provide would refuse the tool of a peer, whatever else the peer offers: an
// invalid, too_large or conflict Fault.
func (r *Registry) Check(p Peer, t tool.Definition) error {
	if _, err := r.readTool(t); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.collides(r.packs[p], t.Name)
}

// admit returns why a pack may not offer the tools. current is its present state, nil for a
// new pack. Callers hold mu.
func (r *Registry) admit(current *pack, id string, tools []*provided, size int) error {
	if r.stopped != nil {
		return r.stopped
	}
	if current != nil && current.id != id {
		return core.NewFault(core.CodeConflict, "this connection provides pack %s: open another for pack %s", current.id, id)
	}
	for _, other := range r.packs {
		if other == current {
			continue
		}
		if other.id == id {
			return core.NewFault(core.CodeConflict, "pack %s already registered", id)
		}
		size += other.size
	}
	if current == nil && len(r.packs) >= r.opts.Limits.Packs {
		return core.NewFault(core.CodeOverloaded, "%d packs are connected and no more are allowed: stop one, or put its tools into another", len(r.packs))
	}
	if size > maxTotalBytes {
		return core.NewFault(core.CodeTooLarge, "the definitions of all tools would have %d bytes, the limit is %d: shorten descriptions and schemas", size, maxTotalBytes)
	}
	for _, t := range tools {
		if err := r.collides(current, t.Name); err != nil {
			return err
		}
	}
	return nil
}

// collides returns a conflict Fault if a pack other than own offers a tool of the name.
// Callers hold mu.
func (r *Registry) collides(own *pack, name string) error {
	if by := r.tools[name]; by != nil && by.pack != own {
		return core.NewFault(core.CodeConflict, "tool name collision: tool '%s' already registered by pack '%s'", name, by.pack.id)
	}
	return nil
}

// withdraw removes the tools of a pack. Callers hold mu.
func (r *Registry) withdraw(p *pack) {
	maps.DeleteFunc(r.tools, func(_ string, t *provided) bool { return t.pack == p })
}

// Tools returns the tools that a caller with the capabilities may call, of the packs for which
// may is true, by name. may must not call the registry.
func (r *Registry) Tools(capabilities []string, may func(id string, by Peer) bool) []tool.Definition {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []tool.Definition
	for _, t := range r.tools {
		if t.CheckCaller(capabilities) == nil && may(t.pack.id, t.pack.peer) {
			out = append(out, t.Definition)
		}
	}
	slices.SortFunc(out, func(a, b tool.Definition) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Status is a pack that is connected.
type Status struct {
	ID    string
	Peer  Peer
	Tools []string
}

// List returns the packs that are connected, and their tools, by id.
func (r *Registry) List() []Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	tools := map[*pack][]string{}
	for name, t := range r.tools {
		tools[t.pack] = append(tools[t.pack], name)
	}
	all := make([]Status, 0, len(r.packs))
	for peer, p := range r.packs {
		slices.Sort(tools[p])
		all = append(all, Status{p.id, peer, tools[p]})
	}
	slices.SortFunc(all, func(a, b Status) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// PackOf returns the pack that has a tool, or would have if it were not absent, and who provides it; ""
// for none.
func (r *Registry) PackOf(tool string) (id string, by Peer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.tools[tool]; t != nil {
		return t.pack.id, t.pack.peer
	}
	id, a := r.absenceOf(tool)
	return id, a.peer
}

// Leave removes a peer, and returns the id of the pack that it provided; "" for none. Calls
// that wait for that pack are answered as unreachable, with the reason. The calls of the
// peer continue only if they have Keep set, or if a pack has taken them: that pack is told
// that they are withdrawn.
func (r *Registry) Leave(p Peer, reason *core.Fault) (id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.watching, p)
	r.appears(p)
	for _, c := range r.calls {
		switch {
		case c.call.Caller != p || c.call.Keep || c.settled:
		case c.taken:
			r.withdrawn(c) // its answer is accepted all the same
		default:
			r.drop(c)
		}
	}
	left := r.packs[p]
	if left == nil {
		return ""
	}
	r.leave(left, reason)
	return left.id
}

// leave removes a pack. Callers hold mu.
func (r *Registry) leave(p *pack, reason *core.Fault) {
	for _, c := range r.calls {
		if c.pack != p {
			continue
		}
		if !c.settled {
			r.settle(c, tool.Result{Fault: core.NewFault(core.CodeUnreachable, "pack %s left: %s", p.id, reason.Message)})
		}
		delete(r.calls, c.ID)
	}
	delete(r.packs, p.peer)
	if r.count(p) > 0 {
		r.withdraw(p)
		r.changed()
	}
	if p.hub == "" {
		r.tell(Word{Left: &Left{p.since, reason}})
	}
}

// Stop answers every waiting call with the reason, and refuses new calls and packs.
func (r *Registry) Stop(reason *core.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = reason
	for _, c := range r.calls {
		if !c.settled {
			r.settle(c, tool.Result{Fault: reason})
		}
	}
}
