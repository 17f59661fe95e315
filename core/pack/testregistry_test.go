package pack_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// peer records each call of its methods as a line, and queues its executions.
type peer struct {
	mu    sync.Mutex
	calls []string
	queue []*pack.Execution
	late  *late
}

func (p *peer) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, fmt.Sprintf(format, args...))
}

func (p *peer) Provider() pack.Provider { return pack.Provider{} }

func (p *peer) Execute(e *pack.Execution) {
	p.note("execute %s %s", e.Tool, e.Input)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, e)
}

func (p *peer) Withdraw(execution string) { p.note("withdraw") }

func (p *peer) Returned(r *tool.Result) {
	words := ""
	if f := r.Foreign; f != nil {
		words = fmt.Sprintf(", in %s: %s", f.Dialect, f.JSON)
	}
	if r.Fault != nil {
		p.note("%s of %q: fault %s%s", r.Call, r.Pack, r.Fault.Code, words)
	} else {
		p.note("%s of %q: %s%s", r.Call, r.Pack, r.Output, words)
	}
}

func (p *peer) ToolsChanged() { p.note("tools changed") }

func (p *peer) Late(pack.Call) pack.Late {
	if p.late == nil {
		return nil
	}
	return p.late
}

// wants checks the calls of the peer since the last check, and clears them.
func (p *peer) wants(t *testing.T, who string, want ...string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if diff := cmp.Diff(want, p.calls); diff != "" {
		t.Errorf("calls of %s (-want +got):\n%s", who, diff)
	}
	p.calls = nil
}

// next returns the oldest execution of the peer.
func (p *peer) next(t *testing.T) *pack.Execution {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		t.Fatal("got nothing to execute, want a call")
	}
	e := p.queue[0]
	p.queue = p.queue[1:]
	return e
}

// late records late answers with the calls of its peer.
type late struct {
	peer    *peer
	useless bool
}

func (l *late) TimedOut() { l.peer.note("timed out") }

func (l *late) Answer(name string, r *tool.Result) bool {
	l.peer.note("late answer to %s of %s by %s: %s %v", r.Call, name, r.Pack, r.Output, r.Fault)
	return !l.useless
}

// registry is a Registry with its counters.
type registry struct {
	*pack.Registry
	mu     sync.Mutex
	counts map[string]int
}

func newRegistry(change func(*pack.Options)) *registry {
	r := &registry{counts: map[string]int{}}
	opts := pack.Options{
		Limits:   pack.Limits{Packs: 2, Tools: 3, Calls: 2, CallBytes: 100, Timeout: time.Second, MaxTimeout: time.Minute},
		Reserved: func(name string) bool { return name == "reserved" },
		Count: func(name string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.counts[name]++
		},
	}
	if change != nil {
		change(&opts)
	}
	r.Registry = pack.NewRegistry(opts)
	return r
}

// Provide is that of the Registry, without whether anything has changed.
func (r *registry) Provide(p pack.Peer, id string, tools []tool.Definition) error {
	_, err := r.Registry.Provide(p, id, tools)
	return err
}

// provide connects a pack with tools of these names.
func (r *registry) provide(t *testing.T, id string, names ...string) *peer {
	t.Helper()
	p := &peer{}
	if err := r.Provide(p, id, definitions(names...)); err != nil {
		t.Fatalf("providing %s: got %v, want no error", id, err)
	}
	return p
}

func (r *registry) call(caller *peer, id, name, input string) {
	r.Call(pack.Call{Caller: caller, ID: id, Tool: name, Input: json.RawMessage(input)})
}

func (r *registry) names(capabilities ...string) string {
	var all []string
	for _, d := range r.Tools(capabilities, everyPack) {
		all = append(all, d.Name)
	}
	return strings.Join(all, " ")
}

func definitions(names ...string) []tool.Definition {
	var all []tool.Definition
	for _, name := range names {
		all = append(all, tool.Definition{Name: name})
	}
	return all
}

func wantFault(t *testing.T, what string, err error, want core.Code) {
	t.Helper()
	if !errors.Is(err, &core.Fault{Code: want}) {
		t.Errorf("%s: got %v, want a fault %s", what, err, want)
	}
}

// everyPack is true for every pack.
func everyPack(string, pack.Peer) bool { return true }
