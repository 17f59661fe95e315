package pack

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// Limits bound what packs offer and what waits for them.
type Limits struct {
	// Packs is how many packs may be connected, and Tools how many tools each may
	// provide.
	Packs, Tools int
	// Calls is how many calls may wait for one pack, and CallBytes how many bytes their
	// inputs may have together.
	Calls, CallBytes int
	// Timeout is how long a call may take where the tool does not say, and MaxTimeout the
	// longest time that a tool may say.
	Timeout, MaxTimeout time.Duration
}

// Options make a Registry.
type Options struct {
	Limits Limits
	// Reserved reports whether no pack may have a tool of that name.
	Reserved func(name string) bool
	// Schema reads the JSON Schema of a tool and returns what checks an input against it,
	// with errors of one line that name the field. nil leaves the inputs to the packs.
	Schema func(schema []byte) (check func(input []byte) error, err error)
	// Count adds one to a named counter. It must not call the Registry.
	Count func(name string)
}

// Peer is a connection that provides a pack, calls tools, or watches which tools there are.
// Values are compared with ==. Its methods return at once and do not call the Registry.
type Peer interface {
	// Execute gives the pack that the peer provides a call. The pack may start once
	// [Registry.Take] has confirmed it.
	Execute(*Execution)
	// Returned tells the peer what a call of its own came to.
	Returned(*tool.Result)
	// ToolsChanged tells a peer that watches that there are other tools now.
	ToolsChanged()
	// Late returns who takes an answer to a call of the peer that comes too late; nil
	// drops it. It is called without the lock of the Registry, when the call is about to
	// time out.
	Late(call string) Late
}

// Late takes the answer to a call that has timed out. It is called without the lock of the
// Registry.
type Late interface {
	// TimedOut tells that the caller was told of the timeout.
	TimedOut()
	// Answer is given the answer, and reports whether it was of any use.
	Answer(toolName string, r *tool.Result) bool
}

// Registry holds the packs that are connected and the calls that wait for them. It is safe
// for concurrent use.
type Registry struct {
	opts Options

	mu       sync.Mutex
	packs    map[Peer]*pack
	tools    map[string]*provided
	calls    map[string]*pending // by the id of their execution
	watchers map[Peer]struct{}
	late     *lru.Cache[string, timedOut] // by the id of their execution
	stopped  *core.Fault
}

// pack is what one peer provides.
type pack struct {
	id   string
	peer Peer
	size int // of the definitions
	// calls and bytes are of the calls that it has not answered, or not taken yet.
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
		opts: opts, packs: map[Peer]*pack{}, tools: map[string]*provided{}, calls: map[string]*pending{}, watchers: map[Peer]struct{}{},
		late: lru.New(lru.Options[string, timedOut]{Count: lateCalls}),
	}
}

// maxTotalBytes bounds the definitions of all tools together: every agent is told of them
// in one message.
const maxTotalBytes = 2 << 20

// Provide offers the tools of a pack through the peer until that leaves, in place of those
// that it provided before. Without a Timeout a tool has that of the limits, without an
// InputSchema it takes any object. Provide returns a conflict Fault when the pack is
// connected elsewhere, when the peer provides another, or when the name of a tool is taken;
// an invalid Fault for a name or a schema that cannot be one; a too_large or overloaded
// Fault beyond the limits; and what Stop was given. Then nothing has changed.
func (r *Registry) Provide(p Peer, id string, tools []tool.Definition) error {
	read, size, err := r.read(id, tools)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	was := r.packs[p]
	if err := r.admit(was, id, read, size); err != nil {
		return err
	}
	if was == nil {
		was = &pack{id: id, peer: p}
		r.packs[p] = was
	}
	was.size = size
	r.withdraw(was)
	for _, t := range read {
		t.pack = was
		r.tools[t.Name] = t
	}
	r.changed()
	return nil
}

// admit returns why a pack may not have the tools in place of what it was, which is nil for
// a new one. Callers hold mu.
func (r *Registry) admit(was *pack, id string, tools []*provided, size int) error {
	if r.stopped != nil {
		return r.stopped
	}
	if was != nil && was.id != id {
		return core.NewFault(core.CodeConflict, "this connection provides pack %s: open another for pack %s", was.id, id)
	}
	for _, other := range r.packs {
		if other == was {
			continue
		}
		if other.id == id {
			return core.NewFault(core.CodeConflict, "pack %s already registered", id)
		}
		size += other.size
	}
	if was == nil && len(r.packs) >= r.opts.Limits.Packs {
		return core.NewFault(core.CodeOverloaded, "%d packs are connected and no more are allowed: stop one, or put its tools into another", len(r.packs))
	}
	if size > maxTotalBytes {
		return core.NewFault(core.CodeTooLarge, "the definitions of all tools would have %d bytes, the limit is %d: shorten descriptions and schemas", size, maxTotalBytes)
	}
	for _, t := range tools {
		if by := r.tools[t.Name]; by != nil && by.pack != was {
			return core.NewFault(core.CodeConflict, "tool name collision: tool '%s' already registered by pack '%s'", t.Name, by.pack.id)
		}
	}
	return nil
}

// withdraw takes the tools of a pack away. Callers hold mu.
func (r *Registry) withdraw(p *pack) {
	maps.DeleteFunc(r.tools, func(_ string, t *provided) bool { return t.pack == p })
}

// changed tells who watches. Callers hold mu.
func (r *Registry) changed() {
	for p := range r.watchers {
		p.ToolsChanged()
	}
}

// Watch has the peer told whenever packs come, go or change after this call, until it
// leaves.
func (r *Registry) Watch(p Peer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watchers[p] = struct{}{}
}

// Tools returns the tools that a caller with the capabilities may call, by name.
func (r *Registry) Tools(capabilities []string) []tool.Definition {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []tool.Definition
	for _, t := range r.tools {
		if t.CheckCaller(capabilities) == nil {
			out = append(out, t.Definition)
		}
	}
	slices.SortFunc(out, func(a, b tool.Definition) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Leave forgets a peer, and returns the id of the pack that it provided; "" for none. Calls
// that wait for that pack are answered as unreachable, for the reason. What the peer called
// goes on only if a pack has taken it or if it was to be kept.
func (r *Registry) Leave(p Peer, reason *core.Fault) (id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.watchers, p)
	left := r.packs[p]
	for _, c := range r.calls {
		switch {
		case left != nil && c.pack == left:
			if !c.settled {
				r.settle(c, nil, core.NewFault(core.CodeUnreachable, "pack %s left: %s", left.id, reason.Message))
			}
			delete(r.calls, c.ID)
		case c.call.Caller == p && !c.taken && !c.call.Keep:
			r.drop(c)
		}
	}
	if left == nil {
		return ""
	}
	delete(r.packs, p)
	r.withdraw(left)
	r.changed()
	return left.id
}

// Stop answers every call that waits with the reason, and refuses new ones and new packs.
func (r *Registry) Stop(reason *core.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = reason
	for _, c := range r.calls {
		if !c.settled {
			r.settle(c, nil, reason)
		}
	}
}
