package conversation

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core/hub"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

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

// infoSize returns the size of an agent in a list.
func infoSize(m *pb.AgentInfo) int {
	return protowire.SizeTag(1) + protowire.SizeBytes(proto.Size(m))
}
