package e2e

import (
	"cmp"
	"context"
	"errors"
	"sync"

	editor "github.com/dragoman-hub/dragoman/adapters/editor/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// editorAgents are the hub's ends of editor agents, by their ids. An agent that connects again is
// one that was started again.
type editorAgents map[string]*startedEditor

type startedEditor struct {
	*editor.Agent
	started chan *coretest.End[[]byte, []byte]
}

// openEditorAgent starts an agent of the editor's protocol. It returns the agent's end and the
// function that runs the other.
func (p *player) openEditorAgent(headers map[string]string) (peerEnd, func() link.Reason) {
	id := cmp.Or(headers["x-agent-id"], "gem")
	if p.editors == nil {
		p.editors = editorAgents{}
	}
	a := p.editors[id]
	if a == nil {
		a = &startedEditor{started: make(chan *coretest.End[[]byte, []byte], 1)}
		a.Agent = editor.New(editor.Options{
			Dir: "/home/user/project", Auth: headers["auth"], Version: "1.0.0", Count: p.hub.Count,
			Dial: func(context.Context, ...string) (link.Conn[[]byte, []byte], error) { return <-a.started, nil },
		})
		p.editors[id] = a
	}
	server, client := coretest.Pipe[[]byte, []byte](0)
	a.started <- server
	return jsonEnd{client}, func() link.Reason { return p.runEditorAgent(id, a.Agent) }
}

// runEditorAgent is what the supervisor does with an agent of the settings.
func (p *player) runEditorAgent(id string, a *editor.Agent) link.Reason {
	s := p.hub.Connect(hub.Identity{Principal: core.Principal{ID: id, Dialect: "editor"}, Dialect: "editor"})
	defer s.Close(core.NewFault(core.CodeUnreachable, "it was stopped"))
	ctx, stop := context.WithCancel(p.ctx)
	var hosting sync.WaitGroup
	defer hosting.Wait()
	defer stop()
	err := a.Run(ctx, func(profile agent.Profile) {
		card := core.Card{ID: core.AgentID(id), Name: id, Dialect: "editor", Features: profile.Features, Metadata: profile.Metadata}
		if err := s.Join(card, hub.JoinOptions{}); err == nil {
			hosting.Go(func() { _ = coretest.Serve(ctx, s, a, nil) })
		}
	})
	var r *link.Reason
	if errors.As(err, &r) {
		return *r
	}
	if err != nil {
		return link.Reason{Cause: link.Protocol, Text: err.Error()}
	}
	return link.Reason{Cause: link.Normal}
}
