package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pirpc"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Every dialect that can ask, with pi, whose processes are the other ends of pipes.
func TestEveryDialectAsksPi(t *testing.T) { askEach(t, piAgents()) }

// piAgents are agents of pi.
func piAgents() *agentDialect {
	d := &agentDialect{name: pirpc.Name, start: startPlayedPi, approvals: true, unsaid: map[string]string{}}
	for _, c := range cases {
		switch c.name {
		case "short text", "burst", "cancel", "approval":
		default:
			d.unsaid[c.name] = "its program does not play it yet"
		}
	}
	return d
}

// startPlayedPi joins pi whose processes are played by the handler of the test agents.
func startPlayedPi(t *testing.T, h *testHub, id core.AgentID, concurrent int) (cut func()) {
	t.Helper()
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	a := pirpc.New(pirpc.Options{Count: h.service.Hub().Count, Dial: func(ctx context.Context, _ []string, _ ...string) (link.Conn[[]byte, []byte], error) {
		ours, theirs := coretest.Pipe[[]byte, []byte](64)
		p := &playedPi{testHub: h, conn: theirs, answers: make(chan bool, 1)}
		running.Go(func() { p.serve(ctx) })
		return ours, nil
	}})
	h.hostAgent(t, a, core.Card{ID: id, Dialect: pirpc.Name, MaxConcurrent: concurrent})
	return func() {}
}

// playedPi is a process of pi of the new era.
type playedPi struct {
	*testHub
	conn    *coretest.End[[]byte, []byte]
	answers chan bool

	runs   sync.WaitGroup
	mu     sync.Mutex
	cancel context.CancelFunc // of the run
	active bool
}

// say sends a line.
func (p *playedPi) say(ctx context.Context, line map[string]any) error {
	b, err := json.Marshal(line)
	if err != nil {
		return err
	}
	return p.conn.Send(ctx, b)
}

// serve answers commands until the connection ends.
func (p *playedPi) serve(ctx context.Context) {
	defer p.runs.Wait()
	for {
		line, err := p.conn.Receive(ctx)
		if err != nil {
			_ = p.conn.Close(link.Reason{Cause: link.Normal})
			return
		}
		var c struct {
			ID, Type, Message string
			Confirmed         bool
		}
		if err := json.Unmarshal(line, &c); err != nil {
			panic(err)
		}
		if c.Type == "extension_ui_response" {
			p.answers <- c.Confirmed
			continue
		}
		p.mu.Lock()
		data := map[string]any{"sessionId": "s", "isStreaming": p.active, "disposition": "started"}
		if c.Type == "abort" && p.cancel != nil {
			p.cancel()
		}
		if c.Type == "prompt" {
			run, cancel := context.WithCancel(ctx)
			p.cancel, p.active = cancel, true
			p.runs.Go(func() { p.run(ctx, run, c.Message) })
		}
		p.mu.Unlock()
		_ = p.say(ctx, map[string]any{"type": "response", "id": c.ID, "command": c.Type, "success": true, "data": data})
	}
}

// run works on a prompt.
func (p *playedPi) run(ctx, run context.Context, content string) {
	_ = p.say(ctx, map[string]any{"type": "agent_start"})
	_ = p.say(ctx, map[string]any{"type": "message_start", "message": map[string]any{"role": "assistant", "content": []any{}}})
	whole, stop := "", "stop"
	text := func(piece string) error {
		whole += piece
		return p.say(ctx, map[string]any{"type": "message_update", "assistantMessageEvent": map[string]any{"type": "text_delta", "contentIndex": 0, "delta": piece}})
	}
	var err error
	if in := parseInstruction(content); in.verb == "leave" {
		err = p.askLeave(ctx, in.key, text)
	} else {
		err = p.handle(run, core.Request{Content: content}, func(b core.Body) error {
			if t, is := b.(core.Text); is {
				return text(t.Text)
			}
			return fmt.Errorf("pi does not say %T", b)
		})
	}
	if run.Err() != nil {
		stop = "aborted"
	} else if err != nil {
		stop = "error"
	}
	end := map[string]any{"role": "assistant", "content": []any{map[string]any{"type": "text", "text": whole}}, "stopReason": stop}
	_ = p.say(ctx, map[string]any{"type": "message_end", "message": end})
	_ = p.say(ctx, map[string]any{"type": "agent_end", "messages": []any{}, "willRetry": false})
	p.mu.Lock()
	p.active = false
	p.mu.Unlock()
	_ = p.say(ctx, map[string]any{"type": "agent_settled", "aborted": stop == "aborted"})
}

// askLeave runs a tool before which an extension asks.
func (p *playedPi) askLeave(ctx context.Context, key string, text func(string) error) error {
	call := map[string]any{"toolCallId": key, "toolName": "remove", "args": map[string]any{}}
	with := func(kind string, more map[string]any) map[string]any {
		more["type"] = kind
		for name, value := range call {
			more[name] = value
		}
		return more
	}
	_ = p.say(ctx, with("tool_execution_start", map[string]any{}))
	_ = p.say(ctx, map[string]any{"type": "extension_ui_request", "id": "u-" + key, "method": "confirm", "title": "Remove it?", "message": ""})
	given := <-p.answers
	_ = p.say(ctx, with("tool_execution_end", map[string]any{"result": map[string]any{"content": []any{map[string]any{"type": "text", "text": "gone"}}}, "isError": !given}))
	if given {
		return text(leaveGiven)
	}
	return text("no")
}
