package acp_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

func BenchmarkReadQuery(b *testing.B) {
	raw := envelopeOf(`{"kind":"query","payload":{"question":"What are the kids' swim schedules this week?","domain":"family.calendar","max_tokens":200}}`)
	b.ReportAllocs()
	for b.Loop() {
		e, err := wire.Decode(raw, wire.DefaultMaxEnvelopeBytes)
		if err == nil {
			err = e.Check()
		}
		var q wire.Query
		if err == nil {
			err = e.Read(&q)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReaddress(b *testing.B) {
	raw := envelopeOf(`{"kind":"query","payload":{"question":"What are the kids' swim schedules this week?","domain":"family.calendar","max_tokens":200}}`)
	b.ReportAllocs()
	for b.Loop() {
		wire.Readdress(raw, "kit", "family", "")
	}
}

func BenchmarkWriteProgress(b *testing.B) {
	text := core.Text{Text: "a piece of text of sixty-four bytes, as models tend to say them."}
	b.ReportAllocs()
	for b.Loop() {
		e := wire.Envelope{ID: "6f1c9fd4-95c1-4b02-8d7c-fd8a2f1c2a3b", From: "a", To: "b", TS: 1, Kind: wire.KindProgress, Ref: "q", Payload: wire.ProgressOf(1, text)}
		e.Encode()
	}
}
