package coven

import pb "github.com/dragoman-hub/dragoman/proto/coven"

// Service is the gRPC service coven.CovenControl.
type Service struct {
	pb.UnimplementedCovenControlServer
	accept func(pb.CovenControl_AgentStreamServer) error
}

// NewService returns a service that passes each stream to accept, which turns it into a
// connection for [Serve] and returns the status of the stream. The stream ends when accept
// returns.
func NewService(accept func(pb.CovenControl_AgentStreamServer) error) *Service {
	return &Service{accept: accept}
}

// AgentStream implements CovenControl.
func (s *Service) AgentStream(stream pb.CovenControl_AgentStreamServer) error {
	return s.accept(stream)
}
