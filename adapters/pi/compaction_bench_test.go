package pi_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// BenchmarkNeighbourOfACompaction measures get_state of one client while another has a
// conversation of long answers that is compacted.
func BenchmarkNeighbourOfACompaction(b *testing.B) {
	fails := core.Failed{Fault: core.NewFault(core.CodeInvalid, "send how many chunks you want")}
	b.Run("succeeds", func(b *testing.B) { benchNeighbour(b, pi.Options{}, core.Done{}) })
	b.Run("fails", func(b *testing.B) { benchNeighbour(b, pi.Options{}, fails) })
	b.Run("off", func(b *testing.B) { benchNeighbour(b, pi.Options{CompactAt: -1}, fails) })
}

func benchNeighbour(b *testing.B, opts pi.Options, summary core.Body) {
	h := hub.New(hub.Options{})
	opts.Commands.Rates = unlimited
	s := pi.NewServer(h, opts)
	chunk := strings.Repeat("x", 64)
	agent := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}, Dialect: "coven"})
	if err := agent.Join(core.Card{ID: "a", MaxConcurrent: 64}, hub.JoinOptions{}); err != nil {
		b.Fatal(err)
	}
	compactions := 0
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			batch, err := agent.Next(context.Background())
			switch {
			case err != nil:
				return
			case !assigned(batch):
				continue
			case asksForSummary(batch.Task.Request()):
				compactions++
				_ = agent.Report(batch.Task.ID(), core.Text{Text: "in short"}, nil)
				_ = agent.Report(batch.Task.ID(), summary, nil)
				continue
			}
			for range 5000 {
				_ = agent.Report(batch.Task.ID(), core.Text{Text: chunk}, nil)
			}
			_ = agent.Report(batch.Task.ID(), core.Done{}, nil)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	client := func() (func(string), chan struct{}) {
		ours, theirs := coretest.Pipe[[]byte, []byte](256)
		responses := make(chan struct{}, 16)
		wg.Go(func() { s.Serve(ctx, ours, pi.ConnOptions{Snapshots: render.SnapshotsNone}) })
		wg.Go(func() { drain(ctx, theirs, responses) })
		return func(frame string) {
			if err := theirs.Send(ctx, []byte(frame)); err != nil {
				b.Error(err)
			}
		}, responses
	}
	talk, answered := client()
	look, looked := client()
	for _, session := range []string{"s", "t"} {
		talk(`{"type":"create_session","sessionId":"` + session + `","agent":"a"}`)
		<-answered
	}
	talk(`{"type":"switch_session","sessionId":"s"}`)
	<-answered
	var waits []time.Duration
	over := make(chan struct{})
	var neighbour sync.WaitGroup
	neighbour.Go(func() {
		for {
			select {
			case <-over:
				return
			case <-time.After(100 * time.Microsecond):
			}
			began := time.Now()
			look(`{"type":"get_state","sessionId":"t"}`)
			<-looked
			waits = append(waits, time.Since(began))
		}
	})
	for b.Loop() {
		talk(`{"type":"prompt","sessionId":"s","message":"x"}`)
		<-answered
	}
	close(over)
	neighbour.Wait()
	slices.Sort(waits)
	b.ReportMetric(float64(waits[len(waits)*99/100].Microseconds())/1000, "neighbour-p99-ms")
	b.ReportMetric(float64(waits[len(waits)-1].Microseconds())/1000, "neighbour-worst-ms")
	cancel()
	agent.Close(nil)
	s.Close()
	if err := h.Close(context.Background(), "done"); err != nil {
		b.Error(err)
	}
	wg.Wait()
	b.ReportMetric(float64(compactions)/float64(b.N), "compactions/answer")
}
