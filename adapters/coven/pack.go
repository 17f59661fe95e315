package coven

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/tool"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// PackConn is the connection of a pack: the hub sends calls, and the pack answers by
// [PackService.ToolResult].
type PackConn = link.Conn[*struct{}, *pb.ExecuteToolRequest]

// ServePack holds the registration of one pack to its end and returns why it ended: Code
// and Text of the reason are the gRPC status. It calls accept, which makes the connection
// and sends the headers, once the pack is admitted: a pack that is not gets its status at
// once. When ServePack returns, pending calls are answered, the tools are gone and no
// goroutine is left. Of the options it uses Principal, MaxMessageBytes, Link and Logger.
func ServePack(ctx context.Context, h *hub.Hub, m *pb.PackManifest, accept func() (PackConn, error), opts Options) link.Reason {
	p := &packSession{hub: h, opts: opts.withDefaults(), id: m.GetPackId()}
	p.log = p.opts.Logger.With("pack", p.id)
	if p.id == "" {
		return *wire.Reason(codes.InvalidArgument, "pack_id is required")
	}
	principal := p.opts.Principal
	principal.Dialect = Name
	if principal.ID == "" {
		principal.ID = p.id
	}
	p.session = h.Connect(hub.Identity{Principal: principal, Dialect: Name})
	reason := p.serve(ctx, m, accept)
	p.session.Close(reason.Fault())
	return reason
}

// packSession is the hub's end of one pack.
type packSession struct {
	hub     *hub.Hub
	opts    Options
	log     *slog.Logger
	id      string
	session *hub.Session
	link    *link.Link[*struct{}, *pb.ExecuteToolRequest]
}

func (p *packSession) serve(ctx context.Context, m *pb.PackManifest, accept func() (PackConn, error)) link.Reason {
	if err := p.session.Provide(p.id, wire.ToolsOf(m)); err != nil {
		p.log.Warn("pack rejected", "why", err)
		return *packReason(core.AsFault(err))
	}
	conn, err := accept()
	if err != nil {
		return link.Reason{Cause: link.PeerGone, Err: err}
	}
	p.link = link.New(conn, p.opts.Link)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var pump sync.WaitGroup
	pump.Go(func() { p.pump(ctx) })
	reason := p.link.Run(ctx, func(context.Context, *struct{}) error { return nil }, nil)
	cancel()
	pump.Wait()
	return reason
}

// pump sends calls to the pack until the link is closed, or closes it.
func (p *packSession) pump(ctx context.Context) {
	for {
		b, err := p.session.Next(ctx)
		if err != nil {
			if ctx.Err() == nil {
				p.link.Close(*wire.ReasonOf(err))
			}
			return
		}
		// While the hub is stopping, packs go on: agents may need their tools.
		if b.Execute != nil {
			if err := p.execute(ctx, b.Execute); err != nil {
				return // the link is closed
			}
		}
	}
}

// execute sends a call to the pack.
func (p *packSession) execute(ctx context.Context, e *pack.Execution) error {
	m := &pb.ExecuteToolRequest{ToolName: e.Tool, InputJson: wire.ValidUTF8(string(e.Input)), RequestId: e.ID}
	size := proto.Size(m)
	if size > p.opts.MaxMessageBytes {
		p.hub.Count(Name + ".refused.too_large")
		f := core.NewFault(core.CodeTooLarge, "the call has %d bytes, pack %s takes %d: send less", size, p.id, p.opts.MaxMessageBytes)
		_ = p.session.AnswerTool(e.ID, tool.Result{Fault: f}) // it may have timed out just now
		return nil
	}
	return p.link.Send(ctx, m, size)
}

// packReason returns the reason to end the stream of a pack that may not register.
func packReason(f *core.Fault) *link.Reason {
	if strings.HasPrefix(f.Message, "tool name collision: ") {
		return wire.Reason(codes.AlreadyExists, "tool collision: "+f.Message)
	}
	return wire.ReasonOf(f)
}
