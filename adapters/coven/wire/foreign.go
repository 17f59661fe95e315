package wire

import (
	"encoding/json"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// The numbers of fields that MessageResponse does not have in Coven's protocol. A response without an
// event that has them is a frame of another dialect: its dialect, its name there, and the frame itself, which
// is JSON. A gateway that does not know them takes it for an empty status line.
const (
	foreignDialectField protowire.Number = 1003
	foreignNameField    protowire.Number = 1004
	foreignJSONField    protowire.Number = 1005
)

// setForeign makes a response tell of a frame of another dialect. frame may be nil: then its name is all that is told.
func setForeign(m *pb.MessageResponse, f core.ForeignFrame, frame *core.Foreign) {
	var fields []byte
	add := func(number protowire.Number, value string) {
		fields = protowire.AppendString(protowire.AppendTag(fields, number, protowire.BytesType), ValidUTF8(value))
	}
	add(foreignDialectField, f.Dialect)
	add(foreignNameField, f.Name)
	if frame != nil && len(frame.JSON) > 0 {
		add(foreignJSONField, string(frame.JSON))
	}
	m.ProtoReflect().SetUnknown(fields)
}

// foreignOf is the inverse of setForeign. ok is false for any other response. A frame that is no
// strict JSON is left out: peers of its dialect get it as it is.
func foreignOf(m *pb.MessageResponse) (f core.ForeignFrame, frame *core.Foreign, ok bool) {
	if m.GetEvent() != nil {
		return f, nil, false
	}
	var raw []byte
	eachUnknown(m, func(number protowire.Number, kind protowire.Type, value []byte) {
		if kind != protowire.BytesType {
			return
		}
		value, _ = protowire.ConsumeBytes(value)
		switch number {
		case foreignDialectField:
			f.Dialect = ValidUTF8(string(value))
		case foreignNameField:
			f.Name = ValidUTF8(string(value))
		case foreignJSONField:
			raw = value
		}
	})
	if f.Dialect == "" || f.Dialect == Name || f.Name == "" {
		return f, nil, false
	}
	if len(raw) > 0 && strictjson.Check(raw, strictjson.Limits{}) == nil {
		frame = &core.Foreign{Dialect: f.Dialect, JSON: json.RawMessage(raw)}
	}
	return f, frame, true
}
