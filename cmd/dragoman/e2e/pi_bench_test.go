package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// piBench returns a pi connection over a real WebSocket with a session s. dir is the hub's data
// directory, or "".
func piBench(b *testing.B, dir string) *ws.Conn {
	b.Helper()
	settings := config.Local()
	settings.DataDir, settings.Pi.Rates = dir, config.PiRates{} // without rates
	s, err := service.Start(b.Context(), settings, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Stop(context.Background(), "the benchmark is over"); err != nil {
			b.Error(err)
		}
	})
	c := benchDial(b, "ws://"+s.Addresses().Pi)
	if err := c.Send(b.Context(), []byte(`{"id":"create","type":"create_session","sessionId":"s"}`)); err != nil {
		b.Fatal(err)
	}
	awaitResponses(b, c, 1)
	return c
}

func benchDial(b *testing.B, url string) *ws.Conn {
	b.Helper()
	c, err := ws.Dial(b.Context(), url, ws.DialOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close(link.Reason{Cause: link.Normal}) })
	return c
}

// awaitResponses reads until n responses have arrived. It returns how many frames it read.
func awaitResponses(b *testing.B, c *ws.Conn, n int) (frames int) {
	b.Helper()
	for n > 0 {
		m, err := c.Receive(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if frames++; strings.Contains(string(m[:min(len(m), 64)]), `"type":"response"`) {
			n--
			if strings.Contains(string(m), `"success":false`) {
				b.Fatalf("got %s, want a success", m)
			}
		}
	}
	return frames
}

// BenchmarkGetState sends read-only commands over one WebSocket, each with its own id and 64 in
// flight; each is answered by three events and a response.
func BenchmarkGetState(b *testing.B) {
	c := piBench(b, "")
	const window = 64
	var batch [][]byte
	inFlight, n, frames := 0, 0, 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		batch = append(batch, fmt.Appendf(nil, `{"id":"g%d","type":"get_state","sessionId":"s"}`, n))
		if inFlight++; inFlight < window {
			continue
		}
		if err := c.SendBatch(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
		batch = batch[:0]
		frames += awaitResponses(b, c, window/2)
		inFlight -= window / 2
	}
	if err := c.SendBatch(b.Context(), batch); err != nil {
		b.Fatal(err)
	}
	frames += awaitResponses(b, c, inFlight)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
	b.ReportMetric(float64(frames)/float64(b.N), "frames/command")
}

// BenchmarkSequentialCommands sends one command after the other, and the same bytes to a WebSocket
// that echoes them: the difference is the cost of a command. A command with an idempotency key is
// written to the journal twice before it is answered.
func BenchmarkSequentialCommands(b *testing.B) {
	b.Run("forgotten", func(b *testing.B) { benchLone(b, "", `{"id":"l%d","type":"get_state","sessionId":"s"}`) })
	b.Run("kept", func(b *testing.B) {
		benchLone(b, b.TempDir(), `{"id":"l%[1]d","idempotencyKey":"l%[1]d","type":"get_state","sessionId":"s"}`)
	})
}

func benchLone(b *testing.B, dir, format string) {
	b.Helper()
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := ws.Accept(w, r, ws.AcceptOptions{})
		if err != nil {
			return
		}
		for {
			m, err := c.Receive(r.Context())
			if err != nil || c.Send(r.Context(), m) != nil {
				return
			}
		}
	}))
	defer echo.Close()
	plain := benchDial(b, "ws"+strings.TrimPrefix(echo.URL, "http"))
	commands := piBench(b, dir)
	var ways, costs []time.Duration
	n := 0
	for b.Loop() {
		n++
		frame := fmt.Appendf(nil, format, n)
		began := time.Now()
		if err := plain.Send(b.Context(), frame); err != nil {
			b.Fatal(err)
		}
		if _, err := plain.Receive(b.Context()); err != nil {
			b.Fatal(err)
		}
		between := time.Now()
		if err := commands.Send(b.Context(), frame); err != nil {
			b.Fatal(err)
		}
		awaitResponses(b, commands, 1)
		ways, costs = append(ways, between.Sub(began)), append(costs, time.Since(between))
	}
	slices.Sort(ways)
	slices.Sort(costs)
	way, cost := ways[len(ways)/2], costs[len(costs)/2]
	b.ReportMetric(float64(way.Nanoseconds())/1000, "p50-echo-µs")
	b.ReportMetric(float64(cost.Nanoseconds())/1000, "p50-command-µs")
	b.ReportMetric(float64((cost-way).Nanoseconds())/1000, "p50-above-µs")
}
