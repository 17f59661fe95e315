package e2e

import (
	"context"
	"fmt"

	"github.com/dragoman-hub/dragoman/adapters/pirpc"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/host"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// piAgent is an agent whose processes are peers of the conversation: each that connects is the next
// process that is started.
type piAgent struct {
	processes chan link.Conn[[]byte, []byte]
}

// openPi connects a process of pi. The first of an agent starts the agent, which joins the hub once
// the process has answered.
func (p *player) openPi(headers map[string]string) (peerEnd, func() link.Reason, error) {
	name := headers["agent"]
	if name == "" {
		return nil, nil, fmt.Errorf("want the header Agent with the agent whose process it is")
	}
	a := p.pis[name]
	if a == nil {
		a = &piAgent{processes: make(chan link.Conn[[]byte, []byte], 10)}
		if p.pis == nil {
			p.pis = map[string]*piAgent{}
		}
		p.pis[name] = a
		go a.run(p.ctx, p.hub, core.AgentID(name))
	}
	server, client := coretest.Pipe[[]byte, []byte](0)
	a.processes <- server
	return jsonEnd{client}, func() link.Reason {
		<-server.Closed()
		return server.Reason()
	}, nil
}

// run is what a supervisor does, once.
func (a *piAgent) run(ctx context.Context, h *hub.Hub, id core.AgentID) {
	s := h.Connect(hub.Identity{Principal: core.Principal{ID: string(id)}, Dialect: pirpc.Name})
	defer s.Close(core.NewFault(core.CodeUnreachable, "pi has ended"))
	pi := pirpc.New(pirpc.Options{Count: h.Count, Dial: func(ctx context.Context, _ ...string) (link.Conn[[]byte, []byte], error) {
		select {
		case c := <-a.processes:
			return c, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}})
	served := make(chan struct{})
	started := false
	_ = pi.Run(ctx, func(p agent.Profile) {
		if s.Join(core.Card{ID: id, Name: string(id), Model: p.Model, Features: p.Features, MaxConcurrent: 2}, hub.JoinOptions{}) != nil {
			return
		}
		started = true
		go func() {
			defer close(served)
			_ = host.Serve(ctx, s, pi, func(error) {})
		}()
	})
	if started {
		<-served
	}
}
