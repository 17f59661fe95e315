package coven

import (
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/core/hub"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// agentInfo is what clients are told of an agent. What an agent of another dialect is
// driven by is its dialect.
func agentInfo(a hub.AgentStatus) *wire.AgentInfo {
	m := &wire.AgentInfo{Id: ValidUTF8(string(a.ID)), Name: ValidUTF8(a.Name), Backend: a.Dialect, Connected: true}
	if a.Dialect != Name {
		return m
	}
	told, err := json.Marshal(a.Metadata)
	metadata := new(wire.AgentMetadata)
	if err != nil || (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(told, metadata) != nil {
		return m
	}
	restore(a.Card, nil, metadata)
	m.Backend, m.WorkingDir = metadata.GetBackend(), metadata.GetWorkingDirectory()
	if proto.Size(metadata) > 0 {
		m.Metadata = metadata
	}
	return m
}

// infoSize is what an agent costs in a list.
func infoSize(m *wire.AgentInfo) int {
	return protowire.SizeTag(1) + protowire.SizeBytes(proto.Size(m))
}
