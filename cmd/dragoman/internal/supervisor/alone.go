package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/agent"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	coreagent "github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/link"
)

// JoinFunc joins a hub as an agent with a card and gives its tasks to work, until ctx ends or
// there is no hub to join.
type JoinFunc func(ctx context.Context, card core.Card, work func(context.Context, coreagent.Turn) error) error

// RunAlone runs one agent whose hub is not in this process: it joins once the agent is ready, and
// stays joined while that is started again, so that tasks wait for it. RunAlone returns when ctx
// ends, join returns or the agent failed; everything has ended then. Of the options it uses
// Launcher, HTTP, Version and Log.
func RunAlone(ctx context.Context, e config.Agent, o Options, join JoinFunc) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o.Records = func(string) core.RecordLog { return nil }
	c := &child{launcher: o.Launcher, name: e.Name, process: e.Process}
	a := &alone{entry: e, profiles: make(chan coreagent.Profile, 1), gate: make(chan struct{})}
	inner, err := speaks[e.Dialect](connection{entry: e, child: c, opts: o, lost: func(error) { a.set(false) }})
	if err != nil {
		return err
	}
	a.agent = inner
	failed := failing(e.Name, cancel)
	u := newUnit(kindAgent, e.Name, o.Log, a.live, func(s core.Child) {
		failed(s)
		a.set(s.State == core.ChildReady)
	}, c.pid)
	u.said, u.final = c.said, true
	var running sync.WaitGroup
	running.Go(func() { u.run(ctx) })
	defer running.Wait()
	defer cancel(nil)
	select {
	case p := <-a.profiles:
		err = join(ctx, cardOf(e, p), a.work)
	case <-ctx.Done():
	}
	if why := endOf(ctx); why != nil {
		return why
	}
	return err
}

// alone is an agent that waits with its tasks until it is ready.
type alone struct {
	entry    config.Agent
	agent    coreagent.Agent
	profiles chan coreagent.Profile // of its first life

	mu   sync.Mutex
	gate chan struct{} // closed while the agent is ready
	open bool
}

// live runs the agent once.
func (a *alone) live(ctx context.Context, ready func()) error {
	err := a.agent.Run(ctx, func(p coreagent.Profile) {
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
func (a *alone) work(ctx context.Context, t coreagent.Turn) error {
	a.mu.Lock()
	gate := a.gate
	a.mu.Unlock()
	select {
	case <-gate:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := a.agent.Work(ctx, t)
	if coreagent.IsLost(err) {
		a.set(false)
	}
	return err
}

// NativeHub is the hub that a native command joins by itself.
type NativeHub struct {
	// Connect connects with the hub, and waits for it where it may come. Its error ends the
	// command.
	Connect func(ctx context.Context) (link.Conn[[]byte, []byte], error)
	// Bridge passes on what a process and the hub say to each other, and calls joined once the
	// hub has accepted the agent with the card. It closes both connections. Its error is a
	// *[agent.HubEnd] if the hub ended it, else why the process has ended.
	Bridge func(ctx context.Context, process, hub link.Conn[[]byte, []byte], card core.Card, joined func()) error
}

// RunNative runs a command that speaks the native dialect. The connection to the hub is that of
// the process: whenever one of the two ends, both are started again. RunNative returns when ctx
// ends, the command has failed, or the hub does not want the agent; everything has ended then. Of the
// options it uses Launcher and Log.
func RunNative(ctx context.Context, e config.Agent, o Options, to NativeHub) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var hub link.Conn[[]byte, []byte] // of the next life; used by the unit alone
	c := &child{launcher: o.Launcher, name: e.Name, process: e.Process}
	u := newUnit(kindAgent, e.Name, o.Log, func(ctx context.Context, ready func()) error {
		upstream := hub
		hub = nil
		process, err := c.dial(ctx)
		if err != nil {
			_ = upstream.Close(link.Reason{Cause: link.Normal})
			return err
		}
		err = to.Bridge(ctx, process, upstream, cardOf(e, coreagent.Profile{}), ready)
		var end *agent.HubEnd
		if errors.As(err, &end) && end.Final {
			cancel(err)
		}
		return err
	}, failing(e.Name, cancel), c.pid)
	u.said, u.final = c.said, true
	u.await = func(ctx context.Context) {
		var err error
		if hub, err = to.Connect(ctx); err != nil {
			hub = nil
			cancel(err)
		}
	}
	u.run(ctx)
	if hub != nil {
		_ = hub.Close(link.Reason{Cause: link.Normal})
	}
	return endOf(ctx)
}

// failing returns what ends a command that has failed.
func failing(name string, cancel context.CancelCauseFunc) func(core.Child) {
	return func(c core.Child) {
		if c.State == core.ChildFailed {
			cancel(fmt.Errorf("agent %s could not be started: %s", name, c.LastError))
		}
	}
}

// endOf returns why a command has ended; nil when it was asked to.
func endOf(ctx context.Context) error {
	if why := context.Cause(ctx); !errors.Is(why, context.Canceled) {
		return why
	}
	return nil
}
