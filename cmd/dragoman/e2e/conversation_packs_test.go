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

// packEnd calls PackService. A step's JSON has a member for the call: register with the manifest,
// or tool_result with an answer.
type packEnd struct {
	*coretest.End[*wire.ExecuteToolRequest, *struct{}]
	hub       *hub.Hub
	manifests chan *wire.PackManifest
	registers *sync.Once // or leaves without
}

// openPack opens the connection of a pack. It returns the pack's end and the function that serves
// the other.
func (p *player) openPack() (peerEnd, func() link.Reason) {
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
		printed := v.member(what)
		if printed == nil {
			continue
		}
		if err := jsonToProto(printed, m); err != nil {
			return err
		}
		switch m := m.(type) {
		case *wire.PackManifest:
			e.registers.Do(func() { e.manifests <- m })
		case *wire.ExecuteToolResponse:
			_, err := coven.NewPackService(e.hub, nil, nil).ToolResult(ctx, m)
			return err
		}
		return nil
	}
	return fmt.Errorf("a pack calls register or tool_result, not %s", v.line())
}

func (e packEnd) sendRaw(context.Context, []byte) error {
	return fmt.Errorf("a protobuf message cannot be sent verbatim")
}

func (e packEnd) receive(ctx context.Context) (*jsonValue, error) {
	m, err := e.Receive(ctx)
	if err != nil {
		return nil, err
	}
	return protoToJSON(m)
}

func (e packEnd) close(r link.Reason) {
	e.registers.Do(func() { close(e.manifests) })
	e.Close(r)
}
