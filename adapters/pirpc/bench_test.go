package pirpc_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pirpc"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/question"
)

// discard is a turn whose events nobody reads.
type discard struct{ request core.Request }

func (discard) Task() core.TaskID                     { return "t" }
func (d discard) Request() core.Request               { return d.request }
func (discard) Delivered()                            {}
func (discard) Hops() int                             { return 0 }
func (discard) Trace() core.Trace                     { return core.Trace{} }
func (discard) Report(core.Body, *core.Foreign) error { return nil }
func (discard) Next(ctx context.Context) (core.Body, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (discard) Ask(context.Context, question.Question) (question.Outcome, error) {
	return question.Outcome{}, nil
}

func (discard) CallTool(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, nil
}

// BenchmarkDelta takes deltas of 20 characters from a process to the report of the agent.
func BenchmarkDelta(b *testing.B) {
	const delta = `{"type":"message_update","usage":{"input":100,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":101,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},` +
		`"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"and so on and so on "}}`
	ctx, stop := context.WithCancel(b.Context())
	ready, ran := make(chan struct{}), make(chan struct{})
	prompted := make(chan *coretest.End[[]byte, []byte], 1)
	a := pirpc.New(pirpc.Options{Dial: func(context.Context, []string, ...string) (link.Conn[[]byte, []byte], error) {
		ours, theirs := coretest.Pipe[[]byte, []byte](256)
		go func() {
			for {
				line, err := theirs.Receive(context.Background())
				if err != nil {
					return
				}
				var c command
				_ = json.Unmarshal(line, &c)
				answer := `{"id":"` + c.ID + `","type":"response","command":"` + c.Type + `","success":true,"data":` + strings.Replace(idle, "false", "true", 1) + `}`
				_ = theirs.Send(ctx, []byte(answer))
				if c.Type == "prompt" {
					_ = theirs.Send(ctx, []byte(`{"type":"agent_start"}`))
					prompted <- theirs
				}
			}
		}()
		return ours, nil
	}})
	go func() {
		defer close(ran)
		_ = a.Run(ctx, func(agent.Profile) { close(ready) })
	}()
	<-ready
	worked := make(chan error, 1)
	go func() { worked <- a.Work(ctx, discard{core.Request{Content: "go"}}) }()
	kid := <-prompted
	line := []byte(delta)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if err := kid.Send(ctx, line); err != nil {
			b.Fatal(err)
		}
	}
	_ = kid.Send(ctx, []byte(`{"type":"agent_settled"}`))
	if err := <-worked; err != nil {
		b.Error(err)
	}
	stop()
	<-ran
}

func (discard) From() core.Principal { return core.Principal{} }
