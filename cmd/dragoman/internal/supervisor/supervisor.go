package supervisor

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"sync"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Options are what a Supervisor needs of its program.
type Options struct {
	Hub      *hub.Hub
	Launcher *Launcher
	// HTTP connects to remotes.
	HTTP *http.Client
	// Version is that of the program, for those who ask.
	Version string
	// Records opens the log in which agents of a dialect keep what must survive a restart of the
	// hub; nil keeps it in memory.
	Records func(dialect string) core.RecordLog
	// DataDir is the directory in which agents may keep files, each below its dialect and name;
	// "" for none.
	DataDir string
	// Tools returns the address of the hub's tools over MCP, "" for none, and a token that acts
	// as the session until it is revoked.
	Tools func(*hub.Session) (url, token string, revoke func())
	// Frames keeps the frames of the agents; nil keeps none.
	Frames *frame.Book
	// Changed is told that an agent has another state, after the hub. It returns at once; nil tells nobody.
	Changed func(core.AgentID)
	Log     *slog.Logger
}

// Proof is the [core.Principal.Proof] of the agents and packs of the settings.
const Proof = "settings"

// Supervisor runs the agents and packs of the settings.
type Supervisor struct {
	opts Options
	ctx  context.Context //nolint:containedctx // units end with the Supervisor
	stop context.CancelCauseFunc

	applying sync.Mutex // held by Apply, which waits for processes
	refused  sync.Map   // of the states of agents that could not join, by id: a core.Child

	mu    sync.Mutex
	units map[key]*running
}

// key names a unit.
type key struct{ kind, name string }

// The kinds of units.
const (
	kindAgent = "agent"
	kindPack  = "pack"
)

// running is a unit with the settings that it was started with.
type running struct {
	*unit
	entry any
	end   context.CancelCauseFunc
	ended chan struct{}
}

// New returns a Supervisor that runs nothing yet. Close ends it.
func New(opts Options) *Supervisor {
	s := &Supervisor{opts: opts, units: map[key]*running{}}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	return s
}

// Apply runs exactly the agents and packs of the settings: new ones are started, others are
// ended, and those that have changed or had failed are started again. All others go on. It
// returns once those that had to end have ended and new ones are listed; it does not wait for any
// to become ready.
func (s *Supervisor) Apply(agents config.Agents, packs config.Packs) {
	s.applying.Lock()
	defer s.applying.Unlock()
	wanted := map[key]any{}
	for _, a := range agents {
		wanted[key{kindAgent, a.Name}] = a
	}
	for _, p := range packs {
		wanted[key{kindPack, p.Name}] = p
	}
	var leaving []*running
	s.mu.Lock()
	for k, r := range s.units {
		entry, stays := wanted[k]
		switch {
		case stays && reflect.DeepEqual(entry, r.entry):
			if r.State().State == core.ChildFailed {
				r.Restart()
			}
			delete(wanted, k)
		default:
			r.end(leaves(stays))
			leaving = append(leaving, r)
			delete(s.units, k)
		}
	}
	s.mu.Unlock()
	for _, r := range leaving {
		<-r.ended
	}
	for k, entry := range wanted {
		r := s.start(k, entry)
		s.mu.Lock()
		s.units[k] = r
		s.mu.Unlock()
	}
}

// leaves returns why a unit ends.
func leaves(changed bool) error {
	if changed {
		return link.Because(link.ShuttingDown, "its settings have changed: it is started again")
	}
	return link.Because(link.ShuttingDown, "it was taken out of the settings")
}

// start starts a unit.
func (s *Supervisor) start(k key, entry any) *running {
	ctx, end := context.WithCancelCause(s.ctx)
	r := &running{entry: entry, end: end, ended: make(chan struct{})}
	var serve func(ctx context.Context, listed func())
	switch e := entry.(type) {
	case config.Agent:
		r.unit, serve = s.agent(e)
	case config.Pack:
		r.unit, serve = s.pack(e)
	}
	done := make(chan struct{})
	listed := sync.OnceFunc(func() { close(done) })
	go func() {
		defer close(r.ended)
		defer listed() // where the Supervisor is closed already
		serve(ctx, listed)
	}()
	<-done
	return r
}

// Restart starts an agent or a pack again, or both where they have one name. It returns an
// unknown_agent Fault for a name that is not in the settings.
func (s *Supervisor) Restart(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := false
	for _, kind := range []string{kindAgent, kindPack} {
		if r := s.units[key{kind, name}]; r != nil {
			r.Restart()
			found = true
		}
	}
	if found {
		return nil
	}
	return core.NewFault(core.CodeUnknownAgent, "%s is not among the agents and packs of the hub's settings: only those are restarted", name)
}

// State is the state of an agent or a pack of the settings.
type State struct {
	// Kind is "agent" or "pack".
	Kind, Name string
	core.Child
}

// States returns the states of all agents, then of all packs, by name.
func (s *Supervisor) States() []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []State
	for k, r := range s.units {
		all = append(all, State{k.kind, k.name, r.State()})
	}
	slices.SortFunc(all, func(a, b State) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return all
}

// Refused returns the state of an agent that could not join because another one has its id; nil
// for any other.
func (s *Supervisor) Refused(id core.AgentID) *core.Child {
	if c, is := s.refused.Load(id); is {
		state := c.(core.Child)
		return &state
	}
	return nil
}

// Packs returns the states of the packs, by name.
func (s *Supervisor) Packs() []State {
	return slices.DeleteFunc(s.States(), func(one State) bool { return one.Kind != kindPack })
}

// Kill ends all processes at once, without the time that Close gives them. Close is still to be called.
func (s *Supervisor) Kill() {
	s.end()
	s.opts.Launcher.Guard.Close()
}

// end ends all units, and starts no process again.
func (s *Supervisor) end() { s.stop(link.Because(link.ShuttingDown, "the hub is stopping")) }

// Close ends all units and their processes, and waits for them.
func (s *Supervisor) Close() {
	s.end()
	s.applying.Lock()
	defer s.applying.Unlock()
	for _, r := range s.units { // only Apply changes it
		<-r.ended
	}
	s.opts.Launcher.Guard.Close()
}
