package conversation

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core/hub"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// largeCard is the size of a card that is not described in full where not all cards fit into a
// message: so nobody makes the list of the others too large.
const largeCard = 4 << 10

// ListAgents implements the service. It lists the agents of every dialect by id. Where that does
// not fit into a message, it has no metadata, and of agents with large cards the id alone.
func (s *Service) ListAgents(ctx context.Context, r *pb.ListAgentsRequest) (*pb.ListAgentsResponse, error) {
	p, err := s.opts.Principal(ctx)
	if err != nil {
		return nil, err
	}
	all := &pb.ListAgentsResponse{}
	agents, room := s.hub.Agents(p), s.opts.MaxMessageBytes
	for _, a := range agents {
		room -= a.Size()
	}
	for _, a := range agents {
		if r.Workspace == nil && room < 0 && a.Size() > largeCard {
			id := wire.ValidUTF8(string(a.ID))
			all.Agents = append(all.Agents, &pb.AgentInfo{Id: id, Name: id, Backend: a.Dialect, Connected: true})
			continue
		}
		m := agentInfo(a)
		if r.Workspace == nil || slices.Contains(m.GetMetadata().GetWorkspaces(), r.GetWorkspace()) {
			all.Agents = append(all.Agents, m)
		}
	}
	if proto.Size(all) <= s.opts.MaxMessageBytes {
		return all, nil
	}
	for _, m := range all.GetAgents() {
		m.Metadata = nil
	}
	if proto.Size(all) > s.opts.MaxMessageBytes {
		return nil, grpcstatus.Errorf(codes.ResourceExhausted, "the list of agents does not fit into %d bytes: ask for one workspace", s.opts.MaxMessageBytes)
	}
	s.count("agents.without_metadata")
	return all, nil
}

// agentInfo describes an agent to clients. The backend of an agent of another dialect is
// that dialect.
func agentInfo(a hub.AgentStatus) *pb.AgentInfo {
	m := &pb.AgentInfo{Id: wire.ValidUTF8(string(a.ID)), Name: wire.ValidUTF8(a.Name), Backend: a.Dialect, Connected: true}
	if a.Dialect != wire.Name {
		return m
	}
	metadata, err := wire.MetadataOf(a.Card)
	if err != nil {
		return m
	}
	m.Metadata, m.Backend, m.WorkingDir = metadata, metadata.GetBackend(), metadata.GetWorkingDirectory()
	return m
}
