package wire

import (
	"encoding/json"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/core"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// metadataUnknown is the member of a card's metadata that keeps the fields of a
// registration that this hub does not know, for peers that speak Coven.
const metadataUnknown = "unknown_fields"

// unknownFields are those fields, encoded, by the message that had them.
type unknownFields struct {
	Register []byte `json:"register,omitempty"`
	Metadata []byte `json:"metadata,omitempty"`
	Git      []byte `json:"git,omitempty"`
}

// unknownFieldsOf returns the unknown fields of a registration as JSON; nil for none.
func unknownFieldsOf(r *pb.RegisterAgent) json.RawMessage {
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

// keptFields returns the unknown fields that a card has kept. Metadata is the agent's
// own claim: anything else is left out.
func keptFields(c core.Card) (u unknownFields) {
	if json.Unmarshal(c.Metadata[metadataUnknown], &u) != nil {
		return unknownFields{}
	}
	return u
}

// merge adds encoded fields to a message, if they are fields.
func merge(m proto.Message, fields []byte) {
	_ = proto.UnmarshalOptions{Merge: true}.Unmarshal(fields, m)
}

// IgnoresFields reports whether a message, or what it carries, has fields that this hub
// does not know and would have to act on. Fields that it passes on to others do not
// count.
func IgnoresFields(m *pb.AgentMessage) bool {
	var part proto.Message
	switch p := m.GetPayload().(type) {
	case nil:
		return false // it is refused as a whole
	case *pb.AgentMessage_Heartbeat:
		part = p.Heartbeat
	case *pb.AgentMessage_InjectionAck:
		part = p.InjectionAck
	case *pb.AgentMessage_ExecutePackTool:
		if isOnlyTrace(p.ExecutePackTool) {
			break // the hub knows it
		}
		part = p.ExecutePackTool
	}
	return hasUnknown(m) || part != nil && hasUnknown(part)
}

// hasUnknown reports whether m itself has fields that this hub does not know.
func hasUnknown(m proto.Message) bool { return len(m.ProtoReflect().GetUnknown()) > 0 }

// FirstUnknown returns the number of the first field of m that this hub does not know.
func FirstUnknown(m proto.Message) (protowire.Number, bool) {
	field, _, n := protowire.ConsumeTag(m.ProtoReflect().GetUnknown())
	return field, n > 0
}
