package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// BenchmarkMemoryUnderAttack measures the largest resident memory of a hub in a process of its
// own, and with -bench.base of another build's, when somebody sends it as much as it can. It is
// for -benchtime 1x.
func BenchmarkMemoryUnderAttack(b *testing.B) {
	builds := []struct{ name, binary string }{{"here", ""}}
	if *benchBase != "" {
		builds = append(builds, struct{ name, binary string }{"base", *benchBase})
	}
	for _, c := range []struct {
		name, settings string
		attack         func(b *testing.B, h *benchHub)
	}{
		{"bodies without a token", "auth: {tokens: " + tokensFileOf(b, "alice") + "}\n", sendBodies},
		{"80 tasks of 60 MiB", "limits: {memory: 1GiB, history_bytes: 0}\n", openLongTasks},
		{"80 tasks of 60 MiB at once", "limits: {memory: 1GiB, history_bytes: 0}\n", openLongTasksAtOnce},
		{"1000 cards of 1 MB", "limits: {memory: 1GiB}\n", joinLargeCards},
		{"1000 cards of 60 KB", "limits: {memory: 1GiB}\n", joinCards},
	} {
		for _, build := range builds {
			b.Run(c.name+"/"+build.name, func(b *testing.B) {
				for b.Loop() {
					h := startBenchHub(b, build.binary, c.settings)
					before := h.memory(b, "VmRSS:")
					c.attack(b, h)
					b.ReportMetric(before, "MiB-before")
					b.ReportMetric(h.memory(b, "VmHWM:"), "MiB-peak")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// tokensFileOf is tokensFile without the agents of each, which older builds do not know.
func tokensFileOf(b *testing.B, principals ...string) string {
	b.Helper()
	path := tokensFile(b, principals...)
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, bytes.ReplaceAll(data, []byte("  agents: [\"*\"]\n"), nil), 0o600)
	}
	if err != nil {
		b.Fatal(err)
	}
	return path
}

// memory returns a line of /proc/PID/status of the hub in MiB.
func (h *benchHub) memory(b *testing.B, line string) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.pid))
	if err != nil {
		b.Skipf("memory is read from /proc: %v", err)
	}
	_, rest, _ := strings.Cut(string(data), line)
	kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return kib / 1024
}

// sendBodies sends bodies of 16 MiB on 128 streams of one connection for six seconds, without a
// token. When the hub closes the connection, it connects again.
func sendBodies(b *testing.B, h *benchHub) {
	cc, err := grpc.NewClient(h.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer cc.Close()
	calls := wire.NewClientServiceClient(cc)
	m := &wire.ClientSendMessageRequest{ConversationKey: "shout", Content: strings.Repeat("x", 16<<20-1024)}
	var sent atomic.Int64
	var group sync.WaitGroup
	end := time.Now().Add(6 * time.Second)
	for range 128 {
		group.Go(func() {
			for time.Now().Before(end) {
				ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
				if _, err := calls.SendMessage(ctx, m); err == nil {
					b.Error("got the message taken, want it refused")
				}
				cancel()
				sent.Add(1)
			}
		})
	}
	group.Wait()
	b.ReportMetric(float64(sent.Load()), "refused")
}

// openLongTasks opens 80 tasks, one after the other, whose agent sends 60 MiB for each and does
// not end.
func openLongTasks(b *testing.B, h *benchHub) { askForMuch(b, h, false) }

// counter returns a counter of the hub; 0 if it has none of that name.
func (h *benchHub) counter(b *testing.B, name string) int {
	b.Helper()
	resp, err := http.Get("http://" + h.HTTP + "/v1/hub") //nolint:noctx // it answers at once
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	var status struct{ Counters map[string]int }
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
		b.Fatal(err)
	}
	return status.Counters[name]
}

func openLongTasksAtOnce(b *testing.B, h *benchHub) { askForMuch(b, h, true) }

// askForMuch stops at 3 GiB, to spare the machine.
func askForMuch(b *testing.B, h *benchHub, atOnce bool) {
	b.Helper()
	const tasks, chunks, most = 80, 60, 3 << 10
	var said, ended atomic.Int64
	chunk := strings.Repeat("x", 1<<20)
	leave := h.joinAs(b, core.Card{ID: "shout", MaxConcurrent: tasks, Features: core.FeatureStreaming}, func(ctx context.Context, _ core.Request, say func(core.Body) error) error {
		for range chunks {
			if err := say(core.Text{Text: chunk}); err != nil {
				ended.Add(1)
				return err
			}
		}
		said.Add(1)
		<-ctx.Done()
		ended.Add(1)
		return context.Cause(ctx)
	})
	defer leave()
	taken, refused := 0, 0
	await := func(n int) bool {
		for said.Load()+ended.Load() < int64(n) {
			if time.Sleep(20 * time.Millisecond); h.memory(b, "VmRSS:") > most {
				return false
			}
		}
		return true
	}
	for range tasks {
		resp, err := http.Post("http://"+h.HTTP+"/v1/tasks", "application/json", strings.NewReader(`{"to":"shout","content":"go"}`)) //nolint:noctx // it answers at once
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusCreated {
			refused++
			continue
		}
		if taken++; !atOnce && !await(taken) {
			break
		}
	}
	await(taken)
	b.ReportMetric(float64(taken), "tasks-taken")
	b.ReportMetric(float64(refused), "tasks-refused")
	b.ReportMetric(float64(h.counter(b, "task.memory")), "tasks-ended")
}

// joinAs joins the hub as a Coven agent until leave is called.
func (h *benchHub) joinAs(b *testing.B, card core.Card, handle core.Handler) (leave func()) {
	b.Helper()
	ctx, stop := context.WithCancel(context.Background())
	joined, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- service.Joins()[coven.Name](ctx, client.Hub{URL: "http://" + h.HTTP, GRPC: h.GRPC}, card, handle, func(client.AskFunc) { close(joined) }, slog.New(slog.DiscardHandler))
	}()
	select {
	case <-joined:
	case err := <-ended:
		stop()
		b.Logf("the agent %s: %.200v", card.ID, err)
		return nil
	}
	return func() {
		stop()
		<-ended
	}
}

func joinLargeCards(b *testing.B, h *benchHub) { joinMany(b, h, 1<<20-4096) }

func joinCards(b *testing.B, h *benchHub) { joinMany(b, h, 60<<10) }

// joinMany joins 1,000 agents with names of a size and reads lists of all of them.
func joinMany(b *testing.B, h *benchHub, size int) {
	name := strings.Repeat("n", size)
	taken := 0
	for i := range 1000 {
		leave := h.joinAs(b, core.Card{ID: core.AgentID(fmt.Sprint("a", i)), Name: name}, shout)
		if leave == nil && taken == 0 && i > 2 {
			break
		} else if leave != nil {
			taken++
			defer leave()
		}
	}
	for range 3 {
		resp, err := http.Get("http://" + h.HTTP + "/v1/agents") //nolint:noctx // it answers at once
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil {
			b.Log(err)
		}
		b.ReportMetric(float64(n)/(1<<20), "MiB-of-list")
	}
	b.ReportMetric(float64(taken), "cards-taken")
}
