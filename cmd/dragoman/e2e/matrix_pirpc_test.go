package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pirpc"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Every dialect that can ask, with pi, whose processes are the other ends of pipes.
func TestEveryDialectAsksPi(t *testing.T) {
	tier.Full(t, "it plays programs of others")
	t.Parallel()
	askEach(t, piAgents())
}

// piAgents are agents of pi. It has no field for structured data and no codes of failures.
func piAgents() *agentDialect {
	return &agentDialect{
		name: pirpc.Name, start: startPlayedPi,
		fences: true, folds: "pi-rpc.folded.opened", approvals: true, injects: true, lost: "pi ended in the middle of the task",
		reports: map[string]func([]string) []string{"tool": except("pending", "completed")}, // a tool has begun, and a result completes it
		failed:  func(f *core.Fault) *core.Fault { return core.NewFault(core.CodeInternal, "%s", f.Message) },
		unsaid:  map[string]string{"file": "the answers of pi have no files"},
	}
}

// startPlayedPi joins pi whose processes are played by the handler of the test agents. cut ends all
// processes, and from then on none starts: one may be about to, and would keep the agent alive.
func startPlayedPi(t *testing.T, h *testHub, id core.AgentID, concurrent int) (cut func()) {
	t.Helper()
	var (
		running sync.WaitGroup
		mu      sync.Mutex
		started []*playedPi
		isCut   bool
	)
	t.Cleanup(running.Wait)
	a := pirpc.New(pirpc.Options{Count: h.service.Hub().Count, Dial: func(context.Context, []string, ...string) (link.Conn[[]byte, []byte], error) {
		mu.Lock()
		defer mu.Unlock()
		if isCut {
			return nil, link.Because(link.PeerGone, "pi was cut off")
		}
		ours, theirs := coretest.Pipe[[]byte, []byte](64)
		p := &playedPi{testHub: h, conn: theirs, asked: map[string]string{}}
		started = append(started, p)
		running.Go(p.serve)
		return ours, nil
	}})
	h.hostAgent(t, a, core.Card{ID: id, Dialect: pirpc.Name, MaxConcurrent: concurrent})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		isCut = true
		for _, p := range started {
			_ = p.conn.Close(link.Reason{Cause: link.PeerGone})
		}
	}
}

// playedPi is a process of pi of the new era.
type playedPi struct {
	*testHub
	conn *coretest.End[[]byte, []byte]

	mu     sync.Mutex
	asked  map[string]string  // the open dialogs: the tool call of each id
	cancel context.CancelFunc // of the run
	active bool
}

// say sends a line; who reads may have left.
func (p *playedPi) say(kind string, line map[string]any) {
	line["type"] = kind
	b, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	_ = p.conn.Send(context.Background(), b)
}

// serve answers commands until the connection has ended, and its run with it.
func (p *playedPi) serve() {
	ctx, stop := context.WithCancel(context.Background())
	var runs sync.WaitGroup
	defer runs.Wait()
	defer stop()
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
		p.mu.Lock()
		data := map[string]any{"sessionId": "s", "isStreaming": p.active, "disposition": "started"}
		switch c.Type {
		case "extension_ui_response":
			p.signal(p.asked[c.ID]+" decided", c.Confirmed)
			p.mu.Unlock()
			continue
		case "abort":
			if p.cancel != nil {
				p.cancel()
			}
		case "steer":
			content := c.Message
			if strings.HasPrefix(content, "[") { // with who sent it, if that is somebody else
				_, content, _ = strings.Cut(content, "] ")
			}
			p.injected(content)
		case "prompt":
			run, cancel := context.WithCancel(ctx)
			p.cancel, p.active = cancel, true
			runs.Go(func() { p.run(run, c.Message) })
		}
		p.mu.Unlock()
		p.say("response", map[string]any{"id": c.ID, "command": c.Type, "success": true, "data": data})
	}
}

// run works on a prompt.
func (p *playedPi) run(ctx context.Context, content string) {
	p.say("agent_start", map[string]any{})
	m := &piMessage{playedPi: p}
	m.begin()
	if _, now, is := strings.Cut(content, "\n\nNow:\n\n"); is { // behind what was said before
		content = now
	}
	err := p.handle(ctx, core.Request{Content: content}, m.tell)
	stop, why := "stop", ""
	if ctx.Err() != nil {
		stop = "aborted"
	} else if err != nil {
		stop, why = "error", core.AsFault(err).Message
	}
	m.end(stop, why, core.Usage{})
	p.say("agent_end", map[string]any{"messages": []any{}, "willRetry": false})
	p.mu.Lock()
	p.active = false
	p.mu.Unlock()
	p.say("agent_settled", map[string]any{"aborted": stop == "aborted"})
}

// piMessage is the message that the model writes.
type piMessage struct {
	*playedPi
	text string
}

func (m *piMessage) begin() {
	m.text = ""
	m.say("message_start", map[string]any{"message": map[string]any{"role": "assistant", "content": []any{}}})
}

func (m *piMessage) end(stop, why string, u core.Usage) {
	m.say("message_end", map[string]any{"message": map[string]any{
		"role": "assistant", "content": []any{map[string]any{"type": "text", "text": m.text}}, "stopReason": stop, "errorMessage": why,
		"usage": map[string]any{"input": u.Input, "output": u.Output + u.Thinking, "reasoning": u.Thinking},
	}})
}

// tell says an event as pi has it. Usage is that of a message, which ends with it.
func (m *piMessage) tell(body core.Body) error {
	text := func(piece string) {
		m.text += piece
		m.say("message_update", map[string]any{"assistantMessageEvent": map[string]any{"type": "text_delta", "contentIndex": 0, "delta": piece}})
	}
	result := func(text string) map[string]any {
		return map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}}
	}
	switch b := body.(type) {
	case core.Text:
		text(b.Text)
	case core.Done:
		text("\n\nData:\n````json\n" + string(b.Data) + "\n````")
	case core.Usage:
		m.end("stop", "", b)
		m.begin()
	case core.ToolCall:
		m.say("tool_execution_start", map[string]any{"toolCallId": b.ID, "toolName": b.Name, "args": json.RawMessage(b.Input)})
	case core.ToolState:
		if b.State == core.ToolRunning { // the start said that it was pending, and the end says that it is completed
			m.say("tool_execution_update", map[string]any{"toolCallId": b.ID, "partialResult": result("a")})
		}
	case core.ToolResult:
		m.say("tool_execution_end", map[string]any{"toolCallId": b.ID, "toolName": "list", "result": result(b.Output), "isError": b.IsError})
	case core.ApprovalRequested:
		m.mu.Lock()
		m.asked["u-"+b.ID] = b.ID
		m.mu.Unlock()
		m.say("extension_ui_request", map[string]any{"id": "u-" + b.ID, "method": "confirm", "title": "Run it?", "message": ""})
	default:
		return core.NewFault(core.CodeUnsupported, "pi does not say %T", b)
	}
	return nil
}
