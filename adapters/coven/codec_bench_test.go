package coven

import (
	"testing"

	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

func BenchmarkEventOfAChunkOfText(b *testing.B) {
	m := &wire.MessageResponse{RequestId: "0190b5c0-0000-7000-8000-000000000000", Event: &wire.MessageResponse_Text{Text: "sixty-four bytes of an answer, more or less, as models send them"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := eventOf(m); err != nil {
			b.Fatal(err)
		}
	}
}
