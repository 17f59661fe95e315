package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"
)

// consoles is how many streams of all events are open beside the questions.
const consoles = 10

// BenchmarkTenConsoles asks two hubs in processes of their own in turns over REST, one question at
// a time: one whose events ten operators follow, and one that nobody looks at. The others ask as
// fast as they are answered, or with a pause before each; a principal is shown its own tasks as
// they are, and those of others without secrets.
func BenchmarkTenConsoles(b *testing.B) {
	auth := "auth: {tokens: " + tokensFile(b, "alice", "shout", "root") + "}\n"
	for name, t := range map[string]struct {
		settings, asker, agent, operator string
		pause                            time.Duration
	}{
		"own":       {},
		"others":    {settings: auth, asker: "alice", agent: "shout", operator: "root"},
		"unhurried": {settings: auth, asker: "alice", agent: "shout", operator: "root", pause: 20 * time.Millisecond},
	} {
		b.Run(name, func(b *testing.B) {
			var asks [2]*asked
			for i, side := range []string{"ten", "none"} {
				h := &asked{name: side, benchHub: startBenchHub(b, "", "limits: {history_bytes: 0}\n"+t.settings), token: t.asker}
				h.join(b, t.agent)
				ask := askREST(b, h)
				h.ask = func(ctx context.Context) error {
					time.Sleep(t.pause)
					return ask(ctx)
				}
				asks[i] = h
			}
			var ends [consoles]atomic.Int64
			for i := range ends {
				asks[0].look(b, t.operator, &ends[i])
			}
			n := inTurns(b, asks[:])
			for i := range ends {
				for ends[i].Load() < int64(n) {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
}

// look follows all events of the hub until the benchmark ends, and counts the ends of tasks.
func (h *benchHub) look(b *testing.B, token string, ends *atomic.Int64) {
	b.Helper()
	ctx, leave := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.HTTP+"/v1/events", nil)
	if err != nil {
		b.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := (&http.Client{Transport: &http.Transport{}}).Do(r)
	if err != nil {
		b.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		b.Fatalf("got %s, want events", resp.Status)
	}
	over := make(chan error, 1)
	go func() {
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if bytes.Equal(lines.Bytes(), []byte("event: done")) {
				ends.Add(1)
			}
		}
		over <- lines.Err()
	}()
	b.Cleanup(func() {
		leave()
		if err := <-over; !errors.Is(err, context.Canceled) {
			b.Errorf("a stream of events: got %v, want one that goes on", err)
		}
	})
}
