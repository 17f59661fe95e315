package native_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// piece is a piece of an answer.
const piece = "a piece of the answer, of about sixty bytes, as models send it"

// BenchmarkChunk measures what a piece of text costs the hub from a native agent to a native
// requester in one process: a frame received, decoded, recorded, encoded and sent. The peers
// decode nothing.
func BenchmarkChunk(b *testing.B) {
	h := hub.New(hub.Options{Limits: hub.Limits{TaskBytes: 1 << 40}})
	connect := func(id string) (*coretest.End[[]byte, []byte], chan link.Reason) {
		server, end := coretest.Pipe[[]byte, []byte](64)
		ended := make(chan link.Reason, 1)
		go func() { ended <- native.Accept(context.Background(), h, server, newPeer(id)) }()
		if _, err := end.Receive(b.Context()); err != nil { // hello
			b.Fatal(err)
		}
		return end, ended
	}
	agent, agentEnded := connect("agent")
	asker, askerEnded := connect("asker")
	send := func(end *coretest.End[[]byte, []byte], frame []byte) {
		if err := end.Send(b.Context(), frame); err != nil {
			b.Fatal(err)
		}
	}
	receive := func(end *coretest.End[[]byte, []byte]) []byte {
		frame, err := end.Receive(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		return frame
	}
	send(agent, []byte(`{"call":{"id":"1","act":"join","command":{"card":{}}}}`))
	receive(agent)
	send(asker, []byte(`{"call":{"id":"1","act":"open","command":{"request":{"to":"agent","content":"?"}}}}`))
	_, v, err := wire.DecodeHub(receive(asker))
	if err != nil {
		b.Fatal(err)
	}
	for range 2 { // opened, assigned
		receive(asker)
		receive(agent)
	}
	frame := fmt.Appendf(nil, `{"event":{"task":"%s","kind":"text","body":{"text":"%s"}}}`, text(v.Get("task")), piece)
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		for range b.N {
			_ = agent.Send(context.Background(), frame) // if it fails, so does the receiver
		}
	}()
	for range b.N {
		receive(asker)
	}
	b.StopTimer()
	_ = agent.Close(link.Reason{Cause: link.Normal})
	_ = asker.Close(link.Reason{Cause: link.Normal})
	<-agentEnded
	<-askerEnded
	if err := h.Close(context.Background(), "done"); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkCodec measures the frame of a piece of text in both directions.
func BenchmarkCodec(b *testing.B) {
	frame := []byte(`{"event":{"task":"0199aa00-0000-7000-8000-000000000001","kind":"text","body":{"text":"` + piece + `"}}}`)
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := wire.Decode(frame, 1<<20); err != nil {
				b.Fatal(err)
			}
		}
	})
	head := wire.Head{Task: "0199aa00-0000-7000-8000-000000000001", Role: "requester", Call: "1"}
	e := core.Event{Seq: 7, Epoch: 1, Body: core.Text{Text: piece}}
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		buffer := make([]byte, 0, 512)
		for b.Loop() {
			if _, err := wire.AppendEvent(buffer, head, e); err != nil {
				b.Fatal(err)
			}
		}
	})
}
