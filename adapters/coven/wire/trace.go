package wire

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/core"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// The numbers of fields that SendMessage and ExecutePackTool do not have in Coven's protocol: the
// W3C trace context of the request or the call.
const (
	traceparentField protowire.Number = 1001
	tracestateField  protowire.Number = 1002
)

// SetTrace gives a SendMessage or an ExecutePackTool its trace context.
func SetTrace(m proto.Message, t core.Trace) {
	unknown := m.ProtoReflect().GetUnknown()
	t.Each(func(key, value string) {
		number := traceparentField
		if key == core.TracestateKey {
			number = tracestateField
		}
		unknown = protowire.AppendTag(unknown, number, protowire.BytesType)
		unknown = protowire.AppendString(unknown, value)
	})
	m.ProtoReflect().SetUnknown(unknown)
}

// TraceOf returns the trace context of a SendMessage or an ExecutePackTool. It may be malformed:
// see [core.Trace.Carried].
func TraceOf(m proto.Message) (t core.Trace) {
	eachUnknown(m, func(number protowire.Number, kind protowire.Type, value []byte) {
		if kind != protowire.BytesType {
			return
		}
		text, _ := protowire.ConsumeString(value)
		switch number {
		case traceparentField:
			t.Parent = text
		case tracestateField:
			t.State = text
		}
	})
	return t
}

// isOnlyTrace reports whether the fields of a call that the protocol does not have are its trace
// context.
func isOnlyTrace(m *pb.ExecutePackTool) bool {
	only := true
	eachUnknown(m, func(number protowire.Number, kind protowire.Type, _ []byte) {
		only = only && kind == protowire.BytesType && (number == traceparentField || number == tracestateField)
	})
	return only
}

// eachUnknown calls yield with each field of m itself that its type does not have.
func eachUnknown(m proto.Message, yield func(number protowire.Number, kind protowire.Type, value []byte)) {
	for b := m.ProtoReflect().GetUnknown(); len(b) > 0; {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return
		}
		yield(number, kind, b[:n])
		b = b[n:]
	}
}
