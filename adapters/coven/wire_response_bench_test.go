package coven_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

func BenchmarkEventOf(b *testing.B) {
	m := &pb.MessageResponse{RequestId: "0190b5c0-0000-7000-8000-000000000000", Event: &pb.MessageResponse_Text{Text: "sixty-four bytes of an answer, more or less, as models send them"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := wire.EventOf(m); err != nil {
			b.Fatal(err)
		}
	}
}
