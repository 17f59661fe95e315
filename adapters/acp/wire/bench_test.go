package wire

import (
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

func BenchmarkReadQuery(b *testing.B) {
	raw := envelopeOf(`{"kind":"query","payload":{"question":"What are the kids' swim schedules this week?","domain":"family.calendar","max_tokens":200}}`)
	b.ReportAllocs()
	for b.Loop() {
		e, err := Decode(raw, DefaultMaxEnvelopeBytes)
		if err == nil {
			err = e.Check()
		}
		var q Query
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
		Readdress(raw, "kit", "family", "")
	}
}

func BenchmarkWriteProgress(b *testing.B) {
	text := core.Text{Text: "a piece of text of sixty-four bytes, as models tend to say them."}
	b.ReportAllocs()
	for b.Loop() {
		e := Envelope{ID: "6f1c9fd4-95c1-4b02-8d7c-fd8a2f1c2a3b", From: "a", To: "b", TS: 1, Kind: KindProgress, Ref: "q", Payload: ProgressOf(1, text)}
		e.Encode()
	}
}
