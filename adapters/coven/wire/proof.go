package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// provenField is the number of a field that SendMessage does not have in Coven's protocol. It is
// true if the sender has proved its identity, and sent only to agents that ask for it.
const provenField protowire.Number = 1000

// MarkProven notes in a message that its sender has proved its identity.
func MarkProven(m *pb.SendMessage) {
	unknown := m.ProtoReflect().GetUnknown()
	unknown = protowire.AppendTag(unknown, provenField, protowire.VarintType)
	m.ProtoReflect().SetUnknown(protowire.AppendVarint(unknown, 1))
}

// IsProven reports whether a message says that its sender has proved its identity. Only this hub
// says so.
func IsProven(m *pb.SendMessage) bool {
	proven := false
	eachUnknown(m, func(number protowire.Number, kind protowire.Type, value []byte) {
		if number == provenField && kind == protowire.VarintType {
			v, _ := protowire.ConsumeVarint(value)
			proven = v == 1
		}
	})
	return proven
}
