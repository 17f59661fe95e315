package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

// BenchmarkPiAsksCoven has a pi client over WebSocket ask a Coven agent over gRPC,
// all in this process, over loopback sockets. 'dragoman bench' does the same with
// a process for each, beside a plain relay.
func BenchmarkPiAsksCoven(b *testing.B) {
	for _, atOnce := range []int{1, parallel} {
		b.Run(fmt.Sprintf("%d at a time", atOnce), func(b *testing.B) { benchAsk(b, atOnce, 1) })
	}
	b.Run(fmt.Sprintf("%d chunks, %d at a time", burstChunks, burstAtOnce), func(b *testing.B) { benchAsk(b, burstAtOnce, burstChunks) })
}

func benchAsk(b *testing.B, atOnce, chunks int) {
	hub, stop := benchHub(b)
	defer stop()
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var workers sync.WaitGroup
	for w := range atOnce {
		workers.Go(func() {
			for left.Add(-1) >= 0 {
				if n, err := hub.ask(b.Context(), w, chunks); err != nil || n != chunks*chunkBytes {
					b.Errorf("got %d bytes and %v, want %d", n, err, chunks*chunkBytes)
					return
				}
			}
		})
	}
	workers.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N*chunks)/b.Elapsed().Seconds(), "chunks/s")
}

// benchHub is a client of a hub that has the agent of a bench.
func benchHub(tb testing.TB) (hub *side, stop func()) {
	ctx, cancel := context.WithCancel(tb.Context())
	c := config.Local()
	c.DataDir, c.Pi.Rates, c.Pi.CompactAt = tb.TempDir(), config.PiRates{}, 0 // without rates, and summaries
	s, err := service.Start(ctx, c, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		tb.Fatal(err)
	}
	var group sync.WaitGroup
	in := make(chan struct{})
	card := core.Card{ID: core.AgentID(agentID(coven.Name)), MaxConcurrent: parallel, Features: core.FeatureStreaming | core.FeatureCancellation}
	group.Go(func() {
		_ = client.JoinCoven(ctx, client.Hub{GRPC: s.Addresses().GRPC}, card, answer, func(client.AskFunc) { close(in) }, nil)
	})
	<-in
	hub, err = connectPi(ctx, s.Addresses(), agentID(coven.Name), 0, parallel, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return hub, func() {
		if err := hub.close(); err != nil {
			tb.Error(err)
		}
		cancel()
		group.Wait()
		end, done := context.WithTimeout(context.Background(), 2*time.Minute) // for a test that fails
		defer done()
		if err := s.Stop(end, "the benchmark is over"); err != nil {
			tb.Error(err)
		}
	}
}

// The client of a bench tells frames by how they begin, so the hub must begin them so.
func TestTheClientOfABenchCountsEveryByteOfAnAnswer(t *testing.T) {
	hub, stop := benchHub(t)
	defer stop()
	for _, chunks := range []int{0, 1, 100} {
		if n, err := hub.ask(t.Context(), parallel-1, chunks); n != chunks*chunkBytes || err != nil {
			t.Errorf("an answer of %d chunks: got %d bytes and %v, want %d", chunks, n, err, chunks*chunkBytes)
		}
	}
	if hub.wire.Load() < 101*chunkBytes {
		t.Errorf("bytes of frames: got %d, want more than there is text", hub.wire.Load())
	}
}

func TestTheClientOfABenchNoticesWhatGoesWrong(t *testing.T) {
	const delta = `{"type":"event","sessionId":"%s","event":{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,`
	for _, tt := range []struct{ name, frame, want, err string }{
		{name: "a response", frame: `{"id":"3-7","type":"response","command":"prompt","success":true}`},
		{name: "a refusal", frame: `{"id":"3-7","type":"response","command":"prompt","success":false}`, err: "refused"},
		{name: "a response to nobody", frame: `{"type":"response","command":"prompt","success":false}`, want: "not what a pi client expects"},
		{name: "a response to another", frame: `{"id":"64-7","type":"response","success":true}`, want: "a worker that there is not"},
		{name: "text for another", frame: fmt.Sprintf(delta+`"delta":"x"}}}`, "-1"), want: "a worker that there is not"},
		{name: "a delta without text", frame: fmt.Sprintf(delta+`"content":"x"}}}`, "3"), want: "a delta without its text"},
		{name: "a delta that is cut off", frame: fmt.Sprintf(delta+`"delta":"x`, "3"), want: "a delta without its text"},
		{name: "something else", frame: `{"kind":"event"}`, want: "not what a pi client expects"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &wsAsker{}
			s.workers[3].done = make(chan error, 1)
			if err := s.hearPi([]byte(tt.frame)); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if tt.want != "" {
				return
			}
			if err := s.hearPi([]byte(tt.frame)); err == nil {
				t.Error("twice: got nil, want that it came twice")
			}
			if err := <-s.workers[3].done; (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error of the worker: got %v, want %q", err, tt.err)
			}
		})
	}
}

func TestTheClientOfTheRelayNoticesWhatGoesWrong(t *testing.T) {
	s := &wsAsker{}
	s.workers[3].done = make(chan error, 1)
	for _, tt := range []struct {
		frame relayFrame
		raw   string
		want  string
	}{
		{frame: relayFrame{ID: "3-7", Delta: "xx"}},
		{frame: relayFrame{ID: "3-7", Delta: "x", Done: true}},
		{frame: relayFrame{ID: "3-7", Done: true}, want: "answered twice"},
		{frame: relayFrame{ID: "64-7", Done: true}, want: "a worker that there is not"},
		{raw: `{"id":"3-7","delta":"x`, want: "a delta without its text"},
		{raw: `{"done":true}`, want: "not what the relay speaks"},
	} {
		frame := []byte(tt.raw)
		if tt.raw == "" {
			var err error
			if frame, err = json.Marshal(tt.frame); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.hearRelay(frame); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", frame, err, tt.want)
		}
	}
	if got := s.workers[3].got.Load(); got != 3 {
		t.Errorf("bytes of text: got %d, want 3", got)
	}
	if err := <-s.workers[3].done; err != nil {
		t.Errorf("error of the worker: got %v, want an answer", err)
	}
}
