package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// rulesOf writes a file of n rules, of which the last lets alice ask the agent shout.
func rulesOf(b *testing.B, n int) string {
	b.Helper()
	text := "rules:\n"
	for i := range n - 1 {
		who := []string{fmt.Sprintf("person-%d", i), fmt.Sprintf("ci-%d-*", i), fmt.Sprintf("role:team-%d", i)}[i%3]
		to := []string{fmt.Sprintf("agent-%d", i), fmt.Sprintf("*-of-%d", i), fmt.Sprintf("capability:c%d", i)}[i%3]
		text += fmt.Sprintf("  - {who: %q, may: [see, ask, read], to: %q}\n", who, to)
	}
	text += "  - {who: alice, may: [see, ask, answer, approve], to: shout}\n"
	path := filepath.Join(b.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}

// asked is a hub that takes turns with others.
type asked struct {
	name string
	*benchHub
	token string
	ask   func(context.Context) error
	took  []time.Duration
	cpu   time.Duration
}

// BenchmarkQuestionUnderRules asks hubs in processes of their own in turns, one question at a
// time, over REST and as a Coven client; a Coven agent answers. One hub has tokens, 100 rules and
// quotas, the others tokens alone, and nothing. All have a journal and the audit.
// -bench.base adds a hub of another build, with tokens.
func BenchmarkQuestionUnderRules(b *testing.B) {
	var tokens strings.Builder
	data, err := os.ReadFile(tokensFile(b, "alice", "shout"))
	if err != nil {
		b.Fatal(err)
	}
	tokens.WriteString(strings.ReplaceAll(string(data), "  agents: [\"*\"]\n", ""))
	file := filepath.Join(b.TempDir(), "tokens.yaml")
	if err := os.WriteFile(file, []byte(tokens.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	const plain = "limits: {history_bytes: 0}\n"
	withTokens := plain + "auth: {tokens: " + file + "}\n"
	withAll := plain + "auth: {tokens: " + file + ", rules: " + rulesOf(b, 100) + "}\nquotas: {connections: 100, tasks: 1000, bytes: 256MiB, rate: 100000}\n"
	for name, connect := range map[string]func(*testing.B, *asked) func(context.Context) error{"rest": askREST, "coven": askCoven} {
		b.Run(name, func(b *testing.B) {
			hubs := []*asked{
				{name: "all", benchHub: startBenchHub(b, "", withAll), token: "alice"},
				{name: "tokens", benchHub: startBenchHub(b, "", withTokens), token: "alice"},
				{name: "open", benchHub: startBenchHub(b, "", plain)},
			}
			if *benchBase != "" {
				hubs = append(hubs, &asked{name: "base", benchHub: startBenchHub(b, *benchBase, withTokens), token: "alice"})
			}
			for _, h := range hubs {
				agent := "shout"
				if h.token == "" {
					agent = ""
				}
				h.join(b, agent)
				h.ask = connect(b, h)
			}
			inTurns(b, hubs)
		})
	}
}

// inTurns asks each hub once in an operation and reports the medians, the ratios to the first
// hub, and the CPU time of each hub for a question. It returns how often each was asked.
func inTurns(b *testing.B, hubs []*asked) int {
	b.Helper()
	const warm = 200
	for range warm {
		for _, h := range hubs {
			if err := h.ask(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, h := range hubs {
		h.cpu = h.benchHub.cpu(b)
	}
	n := 0
	for b.Loop() {
		for i := range hubs {
			h := hubs[(i+n)%len(hubs)]
			began := time.Now()
			if err := h.ask(b.Context()); err != nil {
				b.Fatal(err)
			}
			h.took = append(h.took, time.Since(began))
		}
		n++
	}
	first := hubs[0]
	for i, h := range hubs {
		h.cpu = h.benchHub.cpu(b) - h.cpu
		b.ReportMetric(micros(percentile(h.took, .5)), "p50-µs-"+h.name)
		b.ReportMetric(micros(h.cpu)/float64(n), "cpu-µs-"+h.name)
		if i > 0 {
			b.ReportMetric(float64(percentile(first.took, .5))/float64(percentile(h.took, .5)), first.name+":"+h.name)
			b.ReportMetric(float64(first.cpu)/float64(max(h.cpu, 1)), "cpu-"+first.name+":"+h.name)
		}
	}
	b.ReportMetric(0, "ns/op")
	return warm + n
}

func askREST(b *testing.B, h *asked) func(context.Context) error {
	b.Helper()
	transport := &http.Transport{}
	b.Cleanup(transport.CloseIdleConnections)
	c := &http.Client{Transport: transport}
	return func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+h.HTTP+"/v1/tasks?wait=true", strings.NewReader(`{"to":"shout","content":"hello"}`))
		if err != nil {
			return err
		}
		r.Header = http.Header{"Content-Type": {"application/json"}}
		if h.token != "" {
			r.Header.Set("Authorization", "Bearer "+h.token)
		}
		resp, err := c.Do(r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err == nil && !bytes.Contains(text, []byte("HELLO")) {
			err = fmt.Errorf("%s: got %d and %s, want HELLO", h.name, resp.StatusCode, text)
		}
		return err
	}
}

func askCoven(b *testing.B, h *asked) func(context.Context) error {
	b.Helper()
	cc, err := grpcserver.Dial(b.Context(), h.GRPC, grpcserver.DialOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { cc.Close() })
	calls := wire.NewClientServiceClient(cc)
	as := func(ctx context.Context) context.Context {
		if h.token == "" {
			return ctx
		}
		return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+h.token)
	}
	ctx, stop := context.WithCancel(as(context.Background()))
	b.Cleanup(stop)
	var events grpc.ServerStreamingClient[wire.ClientStreamEvent]
	if events, err = calls.StreamEvents(ctx, &wire.StreamEventsRequest{ConversationKey: "shout"}); err == nil {
		_, err = events.Header()
	}
	if err != nil {
		b.Fatal(err)
	}
	return func(ctx context.Context) error {
		_, err := calls.SendMessage(as(ctx), &wire.ClientSendMessageRequest{ConversationKey: "shout", Content: "hello", IdempotencyKey: core.NewID()})
		for err == nil {
			var e *wire.ClientStreamEvent
			if e, err = events.Recv(); e.GetDone() != nil {
				return nil
			} else if e.GetError() != nil {
				return fmt.Errorf("%s: got %v, want an answer", h.name, e)
			}
		}
		return err
	}
}
