package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// BenchmarkPiAsksCoven has a pi client over WebSocket ask a Coven agent over gRPC,
// all in this process, over loopback sockets. 'dragoman bench' does the same with
// a process for each, beside a plain relay.
func BenchmarkPiAsksCoven(b *testing.B) {
	for _, atOnce := range []int{1, benchParallel} {
		b.Run(fmt.Sprintf("%d at a time", atOnce), func(b *testing.B) { benchAsk(b, atOnce, 1) })
	}
	b.Run(fmt.Sprintf("%d chunks, %d at a time", benchBurstChunks, benchBurstAtOnce), func(b *testing.B) { benchAsk(b, benchBurstAtOnce, benchBurstChunks) })
}

func benchAsk(b *testing.B, atOnce, chunks int) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	c := localConfig()
	c.DataDir, c.Pi.Rates, c.Pi.CompactAt = b.TempDir(), PiRatesConfig{}, 0 // without rates, and summaries
	s, err := Start(ctx, c, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		b.Fatal(err)
	}
	var group sync.WaitGroup
	in := make(chan struct{})
	card := core.Card{ID: benchAgent, MaxConcurrent: benchParallel, Features: core.FeatureStreaming | core.FeatureCancellation}
	group.Go(func() {
		_ = joinCoven(ctx, place{grpc: s.bound.GRPC}, card, benchHandler, func(asker) { close(in) }, nil)
	})
	<-in
	hub, closeHub, err := connectHub(ctx, s.bound)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var workers sync.WaitGroup
	for w := range atOnce {
		workers.Go(func() {
			for left.Add(-1) >= 0 {
				if n, err := hub.ask(ctx, w, chunks); err != nil || n != chunks*benchChunk {
					b.Errorf("got %d bytes and %v, want %d", n, err, chunks*benchChunk)
					return
				}
			}
		})
	}
	workers.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N*chunks)/b.Elapsed().Seconds(), "chunks/s")
	if err := closeHub(); err != nil {
		b.Error(err)
	}
	cancel()
	group.Wait()
	stop, done := context.WithTimeout(context.Background(), 5*time.Second)
	defer done()
	if err := s.Stop(stop, "the benchmark is over"); err != nil {
		b.Error(err)
	}
}
