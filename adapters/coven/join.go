package coven

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"google.golang.org/grpc/codes"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// register handles the first message. Its error ends the stream, with the texts that
// existing agents match (specification, section RegisterAgent).
func (s *session) register(ctx context.Context, m *pb.AgentMessage) error {
	p, ok := m.GetPayload().(*pb.AgentMessage_Register)
	if !ok {
		return wire.Reason(codes.InvalidArgument, "first message must be RegisterAgent")
	}
	s.registerTimer.Stop()
	s.registerTimer = nil
	if p.Register.GetAgentId() == "" {
		return wire.Reason(codes.InvalidArgument, "agent_id is required")
	}
	card, ext, err := wire.CardOf(p.Register)
	if err != nil {
		return wire.ReasonOf(err)
	}
	instance := instanceID()
	card.Metadata[wire.MetadataInstance] = json.RawMessage(`"` + instance + `"`)
	principal := s.opts.Principal
	principal.Dialect = Name
	if principal.ID == "" {
		principal.ID = string(card.ID)
	}
	agent := s.hub.Connect(hub.Identity{Principal: principal, Dialect: Name, Deadline: s.opts.Deadline, FixedDeadline: true, Keep: s.opts.KeepTasks, Frames: s.opts.Link.Frames})
	// Coven has no notices: one is sent as a request whose answer is dropped.
	if err := agent.Join(card, hub.JoinOptions{NoticeTasks: true, Concurrent: s.opts.DefaultMaxConcurrent, ApprovalTimeout: wire.ApprovalTimeout}); err != nil {
		f := core.AsFault(err)
		agent.Close(f)
		return s.reject(ctx, card.ID, ext, f)
	}
	s.agent, s.card, s.ext = agent, card, ext
	if s.opts.MCPToken != nil && s.opts.MCPEndpoint != "" {
		s.mcpToken, s.revoke = s.opts.MCPToken(agent)
	}
	s.log.Debug("agent registered", "agent", card.ID, "principal", principal.ID, "features", card.Features.Names(), "max_concurrent", card.MaxConcurrent)
	if err := s.send(ctx, s.welcome(principal, instance), nil); err != nil {
		return fmt.Errorf("send Welcome: %w", err)
	}
	s.startDelivery()
	return nil
}

// reject ends the stream of an agent that may not join.
func (s *session) reject(ctx context.Context, id core.AgentID, ext wire.Extensions, f *core.Fault) error {
	text := f.Message
	if f.Code == core.CodeConflict {
		text = fmt.Sprintf("agent %s already registered", id)
	}
	s.log.Warn("agent rejected", "agent", cleanID(id), "code", f.Code, "why", f.Message)
	if !ext.RegistrationError || f.Code == core.CodeUnreachable { // unreachable is temporary
		return wire.Reason(wire.StatusOf(f.Code), text)
	}
	refusal := &pb.RegistrationError{Reason: text}
	if f.Code == core.CodeConflict || f.Code == core.CodeInvalid { // another id would be accepted
		refusal.SuggestedId = string(s.suggestID(id))
	}
	if err := s.send(ctx, &pb.ServerMessage{Payload: &pb.ServerMessage_RegistrationError{RegistrationError: refusal}}, nil); err != nil {
		return err
	}
	return &link.Reason{Cause: link.Normal, Text: text}
}

// welcome returns the answer to a registration (specification, section Welcome).
func (s *session) welcome(p core.Principal, instance string) *pb.ServerMessage {
	w := &pb.Welcome{
		ServerId:    s.hub.ID(),
		AgentId:     string(s.card.ID),
		InstanceId:  instance,
		PrincipalId: p.ID,
		McpToken:    s.mcpToken,
		McpEndpoint: s.opts.MCPEndpoint,
	}
	for _, t := range s.agent.Tools() {
		w.AvailableTools = append(w.AvailableTools, wire.DefinitionOf(t))
	}
	if s.opts.Secrets != nil {
		w.Secrets = s.opts.Secrets(s.card.ID)
	}
	return &pb.ServerMessage{Payload: &pb.ServerMessage_Welcome{Welcome: w}}
}

// instanceIDLength is the length of an instance id.
const instanceIDLength = 8

// instanceID returns a random code that a person can type: letters and digits that do not
// look alike.
func instanceID() string {
	for {
		id := strings.Map(func(r rune) rune {
			if strings.ContainsRune("ILO", r) {
				return -1
			}
			return unicode.ToLower(r)
		}, rand.Text()) // 26 letters and digits from 2 to 7
		if len(id) >= instanceIDLength {
			return id[:instanceIDLength]
		}
	}
}
