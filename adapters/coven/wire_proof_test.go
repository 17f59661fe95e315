package coven_test

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

func TestTheProofOfASenderIsAFieldThatOthersDoNotKnow(t *testing.T) {
	marked := &pb.SendMessage{Sender: "alice"}
	wire.MarkProven(marked)
	sent, err := proto.Marshal(marked)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := proto.Marshal(&pb.SendMessage{Sender: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		sent []byte
		want bool
	}{
		"with it":           {sent, true},
		"without it":        {plain, false},
		"with other fields": {append(protowire.AppendString(protowire.AppendTag(plain, 1001, protowire.BytesType), "x"), sent...), true},
		"another type":      {protowire.AppendString(protowire.AppendTag(plain, 1000, protowire.BytesType), "\x01"), false},
		"false":             {protowire.AppendVarint(protowire.AppendTag(plain, 1000, protowire.VarintType), 0), false},
		"taken back":        {protowire.AppendVarint(protowire.AppendTag(sent, 1000, protowire.VarintType), 0), false},
	} {
		var got pb.SendMessage
		if err := proto.Unmarshal(c.sent, &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if proven := wire.IsProven(&got); proven != c.want || got.GetSender() != "alice" {
			t.Errorf("%s: got %v of %q, want %v", name, proven, got.GetSender(), c.want)
		}
	}
}
