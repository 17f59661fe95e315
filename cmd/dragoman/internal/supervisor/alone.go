package supervisor

import (
	"context"
	"errors"
	"sync"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/link"
)

// JoinFunc joins a hub as an agent with a card and gives its tasks to work, until ctx ends or
// there is no hub to join.
type JoinFunc func(ctx context.Context, card core.Card, work func(context.Context, agent.Turn) error) error

// RunAlone runs one agent whose hub is not in this process: it joins once the agent is ready, and
// stays joined while that is started again, so that tasks wait for it. RunAlone returns when ctx
// ends, join returns or the agent failed; everything has ended then. Of the options it uses
// Launcher, HTTP, Version and Log.
func RunAlone(ctx context.Context, e config.Agent, o Options, join JoinFunc) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o.Records = func(string) core.RecordLog { return nil }
	c := &child{launcher: o.Launcher, name: e.Name, process: e.Process}
	inner, err := speaks[e.Dialect](connection{entry: e, child: c, opts: o})
	if err != nil {
		return err
	}
	a := &alone{entry: e, agent: inner, profiles: make(chan agent.Profile, 1), gate: make(chan struct{})}
	u := newUnit(kindAgent, e.Name, o.Log, a.live, func(s core.Child) {
		if s.State == core.ChildFailed {
			cancel(errors.New(s.LastError))
		}
		a.set(s.State == core.ChildReady)
	}, c.pid)
	var running sync.WaitGroup
	running.Go(func() { u.run(ctx) })
	defer running.Wait()
	defer cancel(nil)
	select {
	case p := <-a.profiles:
		err = join(ctx, cardOf(e, p), a.work)
	case <-ctx.Done():
	}
	if why := context.Cause(ctx); why != nil && !errors.Is(why, context.Canceled) {
		return why
	}
	return err
}

// alone is an agent that waits with its tasks until it is ready.
type alone struct {
	entry    config.Agent
	agent    agent.Agent
	profiles chan agent.Profile // of its first life

	mu   sync.Mutex
	gate chan struct{} // closed while the agent is ready
	open bool
}

// live runs the agent once.
func (a *alone) live(ctx context.Context, ready func()) error {
	err := a.agent.Run(ctx, func(p agent.Profile) {
		ready()
		select {
		case a.profiles <- p:
		default: // the hub knows it already
		}
	})
	a.set(false)
	return err
}

// set says whether the agent is ready.
func (a *alone) set(ready bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case ready && !a.open:
		close(a.gate)
	case !ready && a.open:
		a.gate = make(chan struct{})
	}
	a.open = ready
}

// work does one task, once the agent is ready.
func (a *alone) work(ctx context.Context, t agent.Turn) error {
	a.mu.Lock()
	gate := a.gate
	a.mu.Unlock()
	select {
	case <-gate:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := a.agent.Work(ctx, t)
	if agent.IsLost(err) {
		a.set(false)
	}
	return err
}

// DialFunc starts a process with more arguments, and returns the connection to it.
type DialFunc func(ctx context.Context, more ...string) (link.Conn[[]byte, []byte], error)

// RunNative runs a command that speaks the native dialect: join starts it by dial, connects it
// with a hub and says when to start it again.
func RunNative(ctx context.Context, e config.Agent, o Options, join func(context.Context, DialFunc, core.Card) error) error {
	c := &child{launcher: o.Launcher, name: e.Name, process: e.Process}
	return join(ctx, c.dial, cardOf(e, agent.Profile{}))
}
