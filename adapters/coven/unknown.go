package coven

import (
	"encoding/json"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// metadataUnknown is where a card keeps the fields of a registration that this hub
// does not know: who speaks Coven is told of them as they came.
const metadataUnknown = "unknown_fields"

// unknownFields are those fields, by the message that they stood in, as they were
// encoded.
type unknownFields struct {
	Register []byte `json:"register,omitempty"`
	Metadata []byte `json:"metadata,omitempty"`
	Git      []byte `json:"git,omitempty"`
}

// unknownFieldsOf returns what a card keeps of a registration; nil for nothing.
func unknownFieldsOf(r *wire.RegisterAgent) json.RawMessage {
	u := unknownFields{Register: r.ProtoReflect().GetUnknown()}
	if m := r.GetMetadata(); m != nil {
		u.Metadata = m.ProtoReflect().GetUnknown()
		if m.GetGit() != nil {
			u.Git = m.GetGit().ProtoReflect().GetUnknown()
		}
	}
	if len(u.Register)+len(u.Metadata)+len(u.Git) == 0 {
		return nil
	}
	kept, err := json.Marshal(u)
	if err != nil {
		panic(err) // bytes always marshal
	}
	return kept
}

// restore puts the fields that a card has kept back into what it is told by.
// Metadata is an agent's own claim: what is none of ours is left out.
func restore(c core.Card, register *wire.RegisterAgent, m *wire.AgentMetadata) {
	var u unknownFields
	if json.Unmarshal(c.Metadata[metadataUnknown], &u) != nil {
		return
	}
	if register != nil {
		put(register, u.Register)
	}
	put(m, u.Metadata)
	if m.GetGit() != nil {
		put(m.GetGit(), u.Git)
	}
}

// put adds encoded fields to a message, if they are fields.
func put(m proto.Message, fields []byte) {
	_ = proto.UnmarshalOptions{Merge: true}.Unmarshal(fields, m)
}

// ignoresFields reports whether a message, or what it is about, has fields that this
// hub does not know and has no use for: nobody else is told of it. What is told to
// others keeps them.
func ignoresFields(m *wire.AgentMessage) bool {
	var part proto.Message
	switch p := m.GetPayload().(type) {
	case nil:
		return false // it is refused as a whole
	case *wire.AgentMessage_Heartbeat:
		part = p.Heartbeat
	case *wire.AgentMessage_InjectionAck:
		part = p.InjectionAck
	case *wire.AgentMessage_ExecutePackTool:
		part = p.ExecutePackTool
	}
	return unknown(m) || part != nil && unknown(part)
}
