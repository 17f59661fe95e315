package e2e

import (
	"context"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/dragoman-hub/dragoman/adapters/coven/conversation"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// clientEnd calls ClientService. A step's JSON has a member for the method (send_message,
// get_events, ...), and so has the answer. stream_events opens the stream, whose events arrive as
// they are.
type clientEnd struct {
	service *conversation.Service
	stream  *clientStream
	frames  chan *jsonValue
	begins  *sync.Once
	begun   chan *wire.StreamEventsRequest
	left    chan struct{}
	leaves  *sync.Once
}

// clientStream is the server's side of a stream in memory.
type clientStream struct {
	grpc.ServerStreamingServer[wire.ClientStreamEvent]
	ctx    context.Context //nolint:containedctx // the stream's
	server *coretest.End[*struct{}, *wire.ClientStreamEvent]
	reason link.Reason
}

func (s *clientStream) Context() context.Context { return s.ctx }

// openClient opens a client's connection. It returns the client's end and the function that serves
// the other.
func (p *player) openClient() (peerEnd, func() link.Reason) {
	if p.clients == nil {
		p.clients = conversation.NewService(p.hub, conversation.Options{}, func(s wire.ClientService_StreamEventsServer, serve conversation.ServeStream) error {
			st := s.(*clientStream)
			st.reason = serve(st.ctx, st.server)
			return nil
		})
	}
	server, far := coretest.Pipe[*struct{}, *wire.ClientStreamEvent](0)
	end := clientEnd{
		p.clients, &clientStream{ctx: p.ctx, server: server}, make(chan *jsonValue, 1000), new(sync.Once),
		make(chan *wire.StreamEventsRequest, 1), make(chan struct{}), new(sync.Once),
	}
	return end, func() link.Reason {
		select {
		case r := <-end.begun:
			var reading sync.WaitGroup
			reading.Go(func() { end.listen(p.ctx, far) })
			err := p.clients.StreamEvents(r, end.stream)
			far.Close(link.Reason{Cause: link.Normal})
			reading.Wait()
			if err != nil {
				st := status.Convert(err)
				return link.Reason{Cause: link.Protocol, Code: int(st.Code()), Text: st.Message()}
			}
			return end.stream.reason
		case <-end.left:
			return link.Reason{Cause: link.Normal}
		}
	}
}

// listen reads the stream until it ends or the client leaves.
func (e clientEnd) listen(ctx context.Context, far *coretest.End[*wire.ClientStreamEvent, *struct{}]) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-e.left:
			far.Close(link.Reason{Cause: link.Normal})
		case <-ctx.Done():
		}
	}()
	for {
		m, err := far.Receive(ctx)
		if err != nil {
			return
		}
		v, err := protoToJSON(m)
		if err != nil {
			v = textValue(err.Error())
		}
		e.frames <- v
	}
}

func (e clientEnd) send(ctx context.Context, v *jsonValue) error {
	calls := map[string]struct {
		in   proto.Message
		call func(proto.Message) (proto.Message, error)
	}{
		"send_message": {new(wire.ClientSendMessageRequest), func(m proto.Message) (proto.Message, error) {
			return e.service.SendMessage(ctx, m.(*wire.ClientSendMessageRequest))
		}},
		"get_events": {new(wire.GetEventsRequest), func(m proto.Message) (proto.Message, error) {
			return e.service.GetEvents(ctx, m.(*wire.GetEventsRequest))
		}},
		"list_agents": {new(wire.ListAgentsRequest), func(m proto.Message) (proto.Message, error) {
			return e.service.ListAgents(ctx, m.(*wire.ListAgentsRequest))
		}},
		"get_me": {new(emptypb.Empty), func(m proto.Message) (proto.Message, error) {
			return e.service.GetMe(ctx, m.(*emptypb.Empty))
		}},
		"approve_tool": {new(wire.ApproveToolRequest), func(m proto.Message) (proto.Message, error) {
			return e.service.ApproveTool(ctx, m.(*wire.ApproveToolRequest))
		}},
		"answer_question": {new(wire.AnswerQuestionRequest), func(m proto.Message) (proto.Message, error) {
			return e.service.AnswerQuestion(ctx, m.(*wire.AnswerQuestionRequest))
		}},
	}
	if printed := v.member("stream_events"); printed != nil {
		m := new(wire.StreamEventsRequest)
		if err := jsonToProto(printed, m); err != nil {
			return err
		}
		e.begins.Do(func() { e.begun <- m })
		return nil
	}
	for name, c := range calls {
		printed := v.member(name)
		if printed == nil {
			continue
		}
		if err := jsonToProto(printed, c.in); err != nil {
			return err
		}
		answer := &jsonValue{open: '{'}
		if out, err := c.call(c.in); err != nil {
			refusal := &jsonValue{open: '{'}
			refusal.set("status", textValue(grpcCodeName(status.Code(err).String())))
			refusal.set("message", textValue(status.Convert(err).Message()))
			answer.set("refused", refusal)
		} else if received, err := protoToJSON(out); err != nil {
			return err
		} else {
			answer.set(name, received)
		}
		e.frames <- answer
		return nil
	}
	return fmt.Errorf("a client calls send_message, stream_events, get_events, ..., not %s", v.line())
}

func (e clientEnd) sendRaw(context.Context, []byte) error {
	return fmt.Errorf("a protobuf message cannot be sent verbatim")
}

func (e clientEnd) receive(ctx context.Context) (*jsonValue, error) {
	select {
	case v := <-e.frames:
		return v, nil
	case <-e.left:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (e clientEnd) close(link.Reason) { e.leaves.Do(func() { close(e.left) }) }
