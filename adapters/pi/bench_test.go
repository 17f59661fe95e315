package pi_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// drain reads the frames of a server and passes on the responses.
func drain(ctx context.Context, conn link.Conn[[]byte, []byte], responses chan<- struct{}) {
	for {
		m, err := conn.Receive(ctx)
		if err != nil {
			return
		}
		if strings.Contains(string(m[:min(len(m), 64)]), `"type":"response"`) {
			responses <- struct{}{}
		}
	}
}

// newBenchClient returns a client of raw frames on a hub with one agent.
func newBenchClient(b *testing.B, how render.Snapshots, inFlight int) (send func(string), responses chan struct{}) {
	h := hub.New(hub.Options{})
	s := pi.NewServer(h, pi.Options{Commands: command.Options{Rates: unlimited}})
	chunk := strings.Repeat("x", 64)
	agent := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}, Dialect: "coven"})
	if err := agent.Join(core.Card{ID: "a", MaxConcurrent: 64}, hub.JoinOptions{}); err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			batch, err := agent.Next(context.Background())
			if err != nil {
				return
			}
			if !assigned(batch) {
				continue
			}
			for range 5000 {
				_ = agent.Report(batch.Task.ID(), core.Text{Text: chunk}, nil)
			}
			_ = agent.Report(batch.Task.ID(), core.Done{}, nil)
		}
	})
	ours, theirs := coretest.Pipe[[]byte, []byte](256)
	ctx, cancel := context.WithCancel(context.Background())
	responses = make(chan struct{}, inFlight)
	wg.Go(func() { s.Serve(ctx, ours, pi.ConnOptions{Snapshots: how}) })
	wg.Go(func() { drain(ctx, theirs, responses) })
	b.Cleanup(func() {
		cancel()
		agent.Close(nil)
		s.Close()
		if err := h.Close(context.Background(), "done"); err != nil {
			b.Error(err)
		}
		wg.Wait()
	})
	return func(frame string) {
		if err := theirs.Send(ctx, []byte(frame)); err != nil {
			b.Fatal(err)
		}
	}, responses
}

// BenchmarkChunks measures prompts that an agent answers in 5,000 chunks, 16 at a time.
func BenchmarkChunks(b *testing.B) {
	for _, how := range []render.Snapshots{render.SnapshotsAll, render.SnapshotsNone} {
		b.Run([]string{"", "snapshots", "deltas"}[how], func(b *testing.B) {
			const at = 16
			send, responses := newBenchClient(b, how, at)
			for i := range at {
				send(fmt.Sprintf(`{"type":"create_session","sessionId":"s%d","agent":"a"}`, i))
				<-responses
				send(fmt.Sprintf(`{"type":"switch_session","sessionId":"s%d"}`, i))
				<-responses
			}
			n := 0
			b.ResetTimer()
			for b.Loop() {
				for i := range at {
					send(fmt.Sprintf(`{"type":"prompt","sessionId":"s%d","message":"x"}`, i))
				}
				for range at {
					<-responses
				}
				n += at * 5000
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "chunks/s")
		})
	}
}
