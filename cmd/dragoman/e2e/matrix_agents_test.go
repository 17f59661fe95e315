package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/demo"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/host"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// agentDialect is a dialect of an agent: how to start one that handles instructions, and what it can
// express.
type agentDialect struct {
	name string
	// start starts an agent, and returns once it has joined. The agent leaves when the test ends.
	// cut ends its connection as a failure would.
	start func(t *testing.T, h *testHub, id core.AgentID, concurrent int) (cut func())
	// unsaid is why a case cannot be run, by the name of the case.
	unsaid map[string]string
	// atOnce is set if everything is sent at the end of a task.
	atOnce bool
	// fences is set if the request's data and the answer's are JSON in a fenced block of the text,
	// and data is how other dialects change the request's; nil if they do not.
	fences bool
	data   func(json.RawMessage) json.RawMessage
	// folds is the counter of requests whose data becomes text; "" if there is none.
	folds string
	// failed returns what is left of the failure of an agent; nil if everything is.
	failed func(*core.Fault) *core.Fault
	// lost is in the message of a task whose agent was cut off; $ID is the agent's.
	lost string
	// approvals is set if an agent can ask for one, and injects if it takes context while it works.
	approvals, injects bool
	// reports is how the dialect changes the reports, by subject; nil for a subject that it keeps.
	reports map[string]func([]string) []string
}

// agentDialects are the dialects of agents that connect to the hub.
func agentDialects() []*agentDialect {
	var all []*agentDialect
	for _, name := range demo.Answerers {
		all = append(all, connectingAgents(name))
	}
	return append(all, gatewayAgents())
}

// connectingAgents are agents that connect to the hub in the dialect of that name.
func connectingAgents(name string) *agentDialect {
	d := &agentDialect{name: name, lost: "agent $ID left", start: func(t *testing.T, h *testHub, id core.AgentID, concurrent int) func() {
		return h.startAgent(t, name, id, concurrent).cut
	}}
	switch name {
	case coven.Name:
		d.fences, d.folds, d.approvals, d.injects = true, "coven.folded.opened", true, true
	case acp.Dialect: // which has one code for two of the hub's
		d.injects = true
		d.failed = func(f *core.Fault) *core.Fault {
			switch f.Code {
			case core.CodeUnauthenticated:
				f.Code = core.CodeNotAuthorized
			case core.CodeUnknownTask:
				f.Code = core.CodeUnknownAgent
			}
			return f
		}
	case native.Dialect:
		d.approvals, d.injects = true, true
	}
	return d
}

// gatewayAgents are the agents of Parallax's gateway.
func gatewayAgents() *agentDialect {
	d := connectingAgents(gatewayName)
	d.atOnce = true
	d.data = func(raw json.RawMessage) json.RawMessage { // a double cannot hold the number
		return json.RawMessage(strings.Replace(string(raw), "9007199254740993", `"9007199254740993"`, 1))
	}
	d.reports = map[string]func([]string) []string{"tool": none, "usage": sum}
	return d
}

// none is for a dialect that reports nothing.
func none([]string) []string { return nil }

// hostAgent runs an agent in the hub's process, as the supervisor does, but once: it leaves when its
// connection has ended, and at the latest when the test ends. It returns once the agent has joined.
// The card needs the dialect, the id and how many tasks the agent does at once.
func (h *testHub) hostAgent(t *testing.T, a agent.Agent, card core.Card) {
	t.Helper()
	who := core.Principal{ID: string(card.ID), Authenticated: true, Proof: "settings"}
	s := h.service.Hub().Connect(hub.Identity{Principal: who, Dialect: card.Dialect})
	ctx, stop := context.WithCancel(context.Background())
	serving, end := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		finish := func() {}
		err := a.Run(ctx, func(p agent.Profile) {
			card.Name, card.Features = "the agent "+string(card.ID), p.Features
			if err := s.Join(card, hub.JoinOptions{}); err != nil {
				t.Errorf("joining: got %v, want no error", err)
				return
			}
			finish = host.Start(serving, s, a, nil, func(error) { stop() })
		})
		end(agent.Lost(err))
		finish()
		s.Close(nil)
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	h.await(t, "joined "+string(card.ID))
}
