package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pirpc"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/schemas"
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
	pi := pirpc.New(pirpc.Options{Count: h.Count, Dial: func(ctx context.Context, _ []string, _ ...string) (link.Conn[[]byte, []byte], error) {
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
			_ = coretest.Serve(ctx, s, pi, func(error) {})
		}()
	})
	if started {
		<-served
	}
}

// The player checks what the hub sends. What pi sends in the conversations must be as real
// processes send it.
func TestWhatPiSaysInConversationsFitsItsSchemas(t *testing.T) {
	checked := 0
	for _, r := range readConversations(t) {
		for _, st := range r.steps {
			if sender, _, says := strings.Cut(st.heading, " > hub"); !says || !strings.HasPrefix(sender, pirpc.Name+" ") {
				continue
			}
			for _, v := range st.values() {
				checked++
				if err := checkPiLine(v.line()); err != nil {
					t.Error(st.problem(r, "%v: %s", err, v.line()))
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("got %d lines, want those of all conversations", checked)
	}
}

// checkPiLine checks a line of pi, and the data of a response. of_tomorrow is what the
// conversations call a type that nobody knows.
func checkPiLine(line string) error {
	v := strictjson.ParseValid([]byte(line))
	kind, _ := v.Get("type").Text()
	schema := schemas.PiRPC(kind)
	if schema == nil && kind != "of_tomorrow" {
		return fmt.Errorf("the type %q has no schema", kind)
	} else if schema == nil {
		return nil
	}
	if err := schema.Check(v); err != nil {
		return err
	}
	command, _ := v.Get("command").Text()
	if result, data := schemas.PiRPCResult(command), v.Get("data"); kind == "response" && result != nil && data.Exists() {
		return result.Check(data)
	}
	return nil
}
