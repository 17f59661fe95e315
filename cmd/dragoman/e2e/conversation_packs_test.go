package e2e

import (
	"context"
	"fmt"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// packEnd speaks PackService. Its two calls are the members of what a story has it
// say: register, with the manifest, and tool_result, with an answer.
type packEnd struct {
	*coretest.End[*wire.ExecuteToolRequest, *struct{}]
	hub       *hub.Hub
	manifests chan *wire.PackManifest
	registers *sync.Once // or leaves without
}

// packDoor makes the connection of a pack: the story's end of it, and what the hub
// does at the other.
func (p *storyPlayer) packDoor() (storyEnd, func() link.Reason) {
	server, client := coretest.Pipe[*struct{}, *wire.ExecuteToolRequest](0)
	end := packEnd{client, p.hub, make(chan *wire.PackManifest, 1), new(sync.Once)}
	return end, func() link.Reason {
		m, ok := <-end.manifests
		if !ok {
			return link.Reason{Cause: link.Normal}
		}
		accept := func() (coven.PackConn, error) { return server, nil }
		return coven.ServePack(p.ctx, p.hub, m, accept, coven.Options{})
	}
}

func (e packEnd) send(ctx context.Context, v *jsonValue) error {
	for what, m := range map[string]proto.Message{"register": new(wire.PackManifest), "tool_result": new(wire.ExecuteToolResponse)} {
		said := v.member(what)
		if said == nil {
			continue
		}
		if err := fromStory(said, m); err != nil {
			return err
		}
		switch m := m.(type) {
		case *wire.PackManifest:
			e.registers.Do(func() { e.manifests <- m })
		case *wire.ExecuteToolResponse:
			_, err := coven.NewPackService(e.hub, nil).ToolResult(ctx, m)
			return err
		}
		return nil
	}
	return fmt.Errorf("a pack says register or tool_result, not %s", v.line())
}

func (e packEnd) sendRaw(context.Context, []byte) error {
	return fmt.Errorf("a message of protobuf is not written as text: leave out verbatim")
}

func (e packEnd) receive(ctx context.Context) (*jsonValue, error) {
	m, err := e.Receive(ctx)
	if err != nil {
		return nil, err
	}
	return toStory(m)
}

func (e packEnd) close(r link.Reason) {
	e.registers.Do(func() { close(e.manifests) })
	e.Close(r)
}
