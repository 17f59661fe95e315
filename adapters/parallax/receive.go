package parallax

import (
	"context"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// receive handles one frame from the agent. It runs in the reader loop.
func (s *session) receive(ctx context.Context, frame []byte) error {
	if s.gateway == nil && len(frame) > s.opts.MaxMessageBytes {
		return s.rejected(ctx, &link.Reject{Cause: link.TooLarge, Size: len(frame), Limit: s.opts.MaxMessageBytes})
	}
	m, err := wire.Decode(frame)
	if !s.isChunk(m) {
		if err := s.throttle.wait(ctx, s); err != nil {
			return err
		}
	}
	defer s.opts.Traffic.countReceived(m.Type, time.Now())
	s.noteAlive(false)
	if err != nil {
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, core.AsFault(err).Message)
	}
	switch {
	case s.agent == nil && m.Type != wire.TypeRegister:
		return s.refuse(ctx, m.ID, wire.CodeNotRegistered, m.Type+" came before register: send register first")
	case s.agent != nil && !s.isRegistered():
		return s.refuse(ctx, m.ID, wire.CodeNotRegistered, m.Type+" came before registered: another connection has the id, and it is being asked whether it is still there")
	}
	if s.agent == nil {
		first := m // a copy, since what another goroutine uses is allocated
		return link.Apart(func() error { return s.dispatch(ctx, first) })
	}
	if code, text := s.checkSignature(m, s.key()); code != "" {
		return s.refuse(ctx, m.ID, code, text)
	}
	return s.dispatch(ctx, m)
}

func (s *session) dispatch(ctx context.Context, m wire.Message) error {
	switch m.Type {
	case wire.TypeRegister:
		return handle(ctx, s, m, s.register)
	case wire.TypeHeartbeat:
		return handle(ctx, s, m, s.heartbeat)
	case wire.TypeStatusUpdate:
		return handle(ctx, s, m, s.statusUpdate)
	case wire.TypeDisconnect:
		return handle(ctx, s, m, s.disconnect)
	case wire.TypeTaskResult:
		return handle(ctx, s, m, s.taskResult)
	case wire.TypeTaskError:
		return handle(ctx, s, m, s.taskError)
	case wire.TypeTaskAccepted:
		return handleExtension(ctx, s, m, wire.ExtensionAccepted, s.taskAccepted)
	case wire.TypeTaskProgress:
		return handleExtension(ctx, s, m, wire.ExtensionProgress, s.taskProgress)
	case wire.TypeTaskRequest:
		return handleExtension(ctx, s, m, wire.ExtensionRequest, s.taskRequest)
	case wire.TypeTaskCancel:
		return handleExtension(ctx, s, m, wire.ExtensionRequest, s.taskCancel)
	}
	return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, m.Type+" is sent by the hub alone: agents do not send it")
}

// handle decodes the payload of m for its handler.
func handle[P any](ctx context.Context, s *session, m wire.Message, handler func(context.Context, wire.Message, P) error) error {
	p, err := wire.ReadPayload[P](m)
	if err != nil {
		return s.refuse(ctx, m.ID, wire.CodeInvalidMessage, core.AsFault(err).Message)
	}
	return handler(ctx, m, p)
}

// handleExtension is handle for a message that the agent must have declared.
func handleExtension[P any](ctx context.Context, s *session, m wire.Message, name string, handler func(context.Context, wire.Message, P) error) error {
	if !s.extensions[name] {
		return s.refuse(ctx, m.ID, wire.CodeUnsupported, m.Type+" is an extension: declare "+name+" in register.payload.config.extensions")
	}
	return handle(ctx, s, m, handler)
}

// isChunk reports whether m is part of a streamed answer, which may come in bursts.
func (s *session) isChunk(m wire.Message) bool {
	return m.Type == wire.TypeTaskProgress && len(m.Payload) > 0 && s.extensions[wire.ExtensionProgress]
}

// rejected answers a message that the link did not read.
func (s *session) rejected(ctx context.Context, r *link.Reject) error {
	defer s.opts.Traffic.countReceived(unknownType, time.Now())
	if r.Cause != link.TooLarge {
		return s.refuse(ctx, "", wire.CodeInvalidMessage, r.Text)
	}
	text := "the message is over the limit of " + strconv.Itoa(s.opts.MaxMessageBytes) + " bytes"
	if r.Size > 0 {
		text = "the message has " + strconv.Itoa(r.Size) + " bytes, the limit is " + strconv.Itoa(s.opts.MaxMessageBytes)
	}
	return s.refuse(ctx, "", wire.CodeMessageTooLarge, text+": send less, or in parts by task_progress")
}
