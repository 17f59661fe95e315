package acp_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// BenchmarkQuestion measures a question to an agent that answers at once: in a new thread, and
// in one with as many earlier turns as an agent gets.
func BenchmarkQuestion(b *testing.B) {
	for name, turns := range map[string]int{"first": 0, "long thread": 300} {
		b.Run(name, func(b *testing.B) {
			h := hub.New(hub.Options{})
			agent, conn := coretest.Pipe[[]byte, []byte](4)
			served, answered := make(chan link.Reason, 1), make(chan struct{})
			go func() {
				served <- acp.Serve(context.Background(), h, conn, &acp.Options{Peers: acp.NewPeers(h, acp.PeersOptions{})})
			}()
			go func() {
				defer close(answered)
				answerAtOnce(agent)
			}()
			ctx := b.Context()
			for {
				if _, here := h.Agent(core.Principal{Operator: true}, "a"); here {
					break
				}
			}
			asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "asker"}})
			ask := func(thread core.ThreadID) {
				if _, err := asker.Open(core.Request{To: core.ToAgent("a"), Thread: thread, Content: strings.Repeat("What of \"this\"?\n", 6)}, hub.OpenOptions{}); err != nil {
					b.Fatal(err)
				}
				for {
					news, err := asker.Next(ctx)
					if err != nil {
						b.Fatal(err)
					}
					if n := len(news.Events); n > 0 && news.Events[n-1].Body.Kind().Ends() {
						return
					}
				}
			}
			for range turns / 2 {
				ask("long")
			}
			var took []time.Duration
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				thread := core.ThreadID("long")
				if turns == 0 {
					thread = core.ThreadID(fmt.Sprint("t", n))
				}
				began := time.Now()
				ask(thread)
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
			_ = agent.Close(link.Reason{Cause: link.Normal})
			<-served
			<-answered
			if err := h.Close(context.Background(), "done"); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// answerAtOnce is an agent that decodes only the necessary members of a query.
func answerAtOnce(conn *coretest.End[[]byte, []byte]) {
	ctx := context.Background()
	send := func(frame []byte) bool { return conn.Send(ctx, frame) == nil }
	send([]byte(`{"v":1,"id":"c","from":"a","kind":"capabilities","payload":{}}`))
	text := strings.Repeat("An answer, of 'this'.\n", 5)
	for n := 0; ; n++ {
		frame, err := conn.Receive(ctx)
		if err != nil {
			return
		}
		if !bytes.Contains(frame[:min(len(frame), 200)], []byte(`"kind":"query"`)) {
			continue
		}
		_, rest, _ := bytes.Cut(frame, []byte(`"id":"`))
		id, _, _ := bytes.Cut(rest, []byte(`"`))
		if !send(fmt.Appendf(nil, `{"v":1,"id":"r%d","from":"a","kind":"response","ref":"%s","payload":{"data":null,"summary":%q,"truncated":false}}`, n, id, text)) {
			return
		}
	}
}
