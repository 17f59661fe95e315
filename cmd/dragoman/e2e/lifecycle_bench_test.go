package e2e

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// BenchmarkManyPiClients has pi clients ask concurrently, each over its own WebSocket, and reports
// how many bytes all of them receive per answer.
func BenchmarkManyPiClients(b *testing.B) {
	for _, clients := range []int{16, 64} {
		for _, lifecycle := range []string{"all", "own"} {
			b.Run(fmt.Sprintf("%d/%s", clients, lifecycle), func(b *testing.B) { benchManyPi(b, clients, lifecycle) })
		}
	}
}

func benchManyPi(b *testing.B, clients int, lifecycle string) {
	settings := config.Local()
	settings.Pi.Rates, settings.Pi.Lifecycle, settings.Pi.SessionDir, settings.Pi.CompactAt = config.PiRates{}, lifecycle, "", 0
	s, err := service.Start(b.Context(), settings, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Stop(context.Background(), "the benchmark is over"); err != nil {
			b.Error(err)
		}
	})
	agent := s.Hub().Connect(hub.Identity{Principal: core.Principal{ID: "a"}, Dialect: "coven"})
	if err := agent.Join(core.Card{ID: "a", MaxConcurrent: clients}, hub.JoinOptions{}); err != nil {
		b.Fatal(err)
	}
	go answerShortly(agent)
	b.Cleanup(func() { agent.Close(nil) })
	type asker struct {
		*ws.Conn
		session int
	}
	askers := make(chan asker, clients)
	for i := range clients {
		c := benchDial(b, "ws://"+s.Addresses().Pi+"/?snapshots=none")
		for _, command := range []string{`"type":"create_session","agent":"a"`, `"type":"switch_session"`} {
			if err := c.Send(b.Context(), fmt.Appendf(nil, `{"sessionId":"%d",%s}`, i, command)); err != nil {
				b.Fatal(err)
			}
			awaitResponses(b, c, 1)
		}
		askers <- asker{c, i}
	}
	var got atomic.Int64
	b.SetParallelism(clients / runtime.GOMAXPROCS(0))
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		c := <-askers
		for p.Next() {
			if err := c.Send(context.Background(), fmt.Appendf(nil, `{"type":"prompt","sessionId":"%d","message":"x"}`, c.session)); err != nil {
				b.Error(err)
				return
			}
			for answered := false; !answered; {
				m, err := c.Receive(context.Background())
				if err != nil {
					b.Error(err)
					return
				}
				got.Add(int64(len(m)))
				answered = bytes.HasPrefix(m, []byte(`{"type":"response"`))
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "answers/s")
	b.ReportMetric(float64(got.Load())/float64(b.N), "wire-B/answer")
}

// answerShortly runs an agent that answers everything with a short text.
func answerShortly(agent *hub.Session) {
	for {
		batch, err := agent.Next(context.Background())
		if err != nil {
			return
		}
		for _, e := range batch.Events {
			if _, ok := e.Body.(core.Assigned); ok {
				_ = agent.Report(batch.Task.ID(), core.Text{Text: "an answer"}, nil)
				_ = agent.Report(batch.Task.ID(), core.Done{}, nil)
			}
		}
	}
}
