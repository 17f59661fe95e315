package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
	"github.com/dragoman-hub/dragoman/core"
)

func piOverWebSocket() *clientDialect {
	return piDialect("pi WebSocket", func(t *testing.T, h *testHub) frames {
		return dialFrames(t, h.service.Addresses().Pi, "/", 64<<20)
	})
}

func piOverStdio() *clientDialect {
	return piDialect("pi stdio", func(t *testing.T, h *testHub) frames { return runFrames(t, h, pi.Name) })
}

// piDialect is pi-server. Everything is text, a failed run is a message that says so, and a refusal
// is a failed command. There are no codes. A session outlives its client.
func piDialect(name string, open func(*testing.T, *testHub) frames) *clientDialect {
	connect := func(t *testing.T, h *testHub) *piClient { return connectPiClient(t, open(t, h)) }
	broken := func(f *core.Fault) outcome { return outcome{End: "error", Message: f.Message} }
	return &clientDialect{
		name:         name,
		connect:      func(t *testing.T, h *testHub, _ string) requester { return connect(t, h) },
		streams:      true,
		reports:      map[string]func([]string) []string{"tool": except("pending"), "approval": keepAll, "injection": keepAll, "usage": sum},
		fileInText:   func(text string) string { return text + "[file note.txt, text/plain, 17 bytes]\n" + fileText },
		injectsLater: true,
		late:         outcome{End: "timed out", Message: "Command 'prompt' timed out after 300ms"},
		longRequest:  &outcome{End: "refused", Message: "Validation failed: message: Too long (max 200000 chars)"},
		done:         outcome{End: "stop"},
		failed:       broken,
		refused:      func(f *core.Fault) outcome { return outcome{End: "refused", Message: f.Message} },
		cancelled:    func(string) outcome { return outcome{End: "aborted"} },
		reconnects:   func(t *testing.T, d *pair) string { return piReconnects(t, d, connect) },
	}
}

// piClient is a pi client that collects what it receives.
type piClient struct {
	t      *testing.T
	frames frames
	client *pitest.Conn
	asking sync.WaitGroup

	mu   sync.Mutex
	runs map[string]*piRun
}

// piRun is a session and its run.
type piRun struct {
	*exchange
	session    string
	transcript pitest.Transcript
	asked      chan string // the ids of approval requests
	// watched is set if another client began the run: then only agent_end reports its end.
	watched bool
}

func connectPiClient(t *testing.T, f frames) *piClient {
	t.Helper()
	c := &piClient{t: t, frames: f, runs: map[string]*piRun{}}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	client, err := pitest.Connect(ctx, f.Conn, c.hear)
	if err != nil {
		t.Fatal(err)
	}
	c.client = client
	return c
}

// hear receives every frame in order.
func (c *piClient) hear(f pitest.Frame) {
	c.mu.Lock()
	run := c.runs[f.SessionID]
	c.mu.Unlock()
	if f.Type != "event" || run == nil {
		return
	}
	before := run.transcript.Deltas.Len()
	run.sight(f.Event)
	run.transcript.Add(f)
	if fresh := run.transcript.Deltas.String()[before:]; fresh != "" {
		run.addText(fresh)
	}
	if run.watched && run.transcript.Kinds[len(run.transcript.Kinds)-1] == "agent_end" {
		run.conclude()
	}
}

// sight records what an event carries beside text.
func (r *piRun) sight(event json.RawMessage) {
	var e struct {
		Type          string
		ToolName      string
		Args          json.RawMessage
		PartialResult struct{ Details struct{ State string } }
		Result        struct{ Content []struct{ Text string } }
		RequestID     string
		Method        string
		Title         string
		Message       json.RawMessage
	}
	if json.Unmarshal(event, &e) != nil {
		return
	}
	switch e.Type {
	case "tool_execution_start":
		r.report("tool", "call %s %s", e.ToolName, e.Args)
	case "tool_execution_update":
		r.report("tool", "%s", e.PartialResult.Details.State)
	case "tool_execution_end":
		r.report("tool", "result %s", e.Result.Content[0].Text)
	case "extension_ui_request":
		if e.Method == "confirm" {
			r.asked <- e.RequestID
			r.report("approval", "asked %s", strings.TrimSuffix(strings.TrimPrefix(e.Title, "Allow "), "?"))
		} else if _, printed, ok := strings.Cut(string(e.Message), ": "); ok && strings.Contains(printed, " by ") {
			r.report("approval", "%s", strings.Fields(printed)[0])
		}
	case "message_end":
		var m struct {
			Role    string
			Content []struct{ Text string }
			Usage   struct{ Input, Output int64 }
		}
		if json.Unmarshal(e.Message, &m) != nil {
			return
		}
		if spent := m.Usage.Input + m.Usage.Output; spent > 0 {
			r.report("usage", "%d", spent)
		}
		if m.Role == "user" && strings.HasPrefix(m.Content[0].Text, "say ") && len(r.transcript.Kinds) > 4 {
			r.report("injection", "taken true")
		}
	}
}

// conclude ends a run as its last message says.
func (r *piRun) conclude() {
	h := &r.transcript
	if h.Snapshots != h.Deltas.String() {
		r.violates("the snapshots have %d bytes of text and the deltas %d", len(h.Snapshots), h.Deltas.Len())
	}
	// queue_update comes when a prompt is queued, outside the run, and foreign_frame whenever the
	// agent sends something that only its own clients know.
	kinds := slices.DeleteFunc(slices.Clone(h.Kinds), func(kind string) bool { return kind == "queue_update" || kind == "foreign_frame" })
	if want := []string{"agent_start", "turn_start", "message_start", "message_end", "message_start"}; len(kinds) < len(want) || !slices.Equal(kinds[:len(want)], want) {
		r.violates("the run begins %q", kinds[:min(len(kinds), len(want))])
	}
	if want := []string{"message_end", "turn_end", "agent_end"}; len(kinds) < len(want) || !slices.Equal(kinds[len(kinds)-len(want):], want) {
		r.violates("the run does not end in %q: %q", want, kinds)
	}
	if h.StopReason == "aborted" && !strings.HasPrefix(h.ErrorMessage, "Request was aborted") {
		r.violates("the abort is worded %q", h.ErrorMessage)
	}
	r.end(outcome{End: h.StopReason, Message: h.ErrorMessage})
}

func (c *piClient) begin(q query) *exchange {
	session := "s-" + parseInstruction(q.content).key
	run := c.listen(session, false)
	run.cancel = func(ctx context.Context, _ string) error {
		return c.must(ctx, map[string]any{"type": "abort", "sessionId": session})
	}
	run.inject = func(ctx context.Context, content string) error {
		return c.must(ctx, map[string]any{"type": "steer", "sessionId": session, "message": content})
	}
	c.asking.Go(func() {
		ctx := context.Background()
		err := c.must(ctx, map[string]any{"type": "create_session", "sessionId": session, "agent": q.to})
		if err == nil {
			err = c.must(ctx, map[string]any{"type": "switch_session", "sessionId": session})
		}
		if err != nil {
			run.lost(err)
			return
		}
		f, err := c.client.Do(ctx, map[string]any{"type": "prompt", "sessionId": session, "message": q.content})
		switch {
		case err != nil:
			run.lost(err)
		case f.TimedOut:
			run.end(outcome{End: "timed out", Message: f.Error})
		case !f.Success:
			run.end(outcome{End: "refused", Message: f.Error})
		default:
			run.conclude()
		}
	})
	return run.exchange
}

// listen collects the events of a session.
func (c *piClient) listen(session string, watched bool) *piRun {
	run := &piRun{exchange: newExchange(), session: session, watched: watched, asked: make(chan string, 8)}
	run.decide = func(ctx context.Context, approved bool) error {
		return c.must(ctx, map[string]any{
			"type": "extension_ui_response", "sessionId": session, "requestId": <-run.asked,
			"response": map[string]any{"method": "confirm", "confirmed": approved},
		})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs[session] = run
	return run
}

// must sends a command that has to succeed.
func (c *piClient) must(ctx context.Context, command map[string]any) error {
	f, err := c.client.Do(ctx, command)
	if err == nil && !f.Success {
		err = fmt.Errorf("%s: %s", command["type"], f.Error)
	}
	return err
}

func (c *piClient) cut() {
	c.frames.cut()
	c.asking.Wait()
}

func (c *piClient) leave() {
	c.client.Close()
	c.asking.Wait()
}

// piReconnects comes back as another client: the run has continued and is replayed from its
// beginning.
func piReconnects(t *testing.T, d *pair, connect func(*testing.T, *testHub) *piClient) string {
	first := connect(t, d.testHub)
	defer first.leave()
	key, x := d.startHalf(t, first, query{})
	first.cut()
	if got := x.wait(t); got.End != "lost" {
		t.Errorf("got %+v, want the connection lost", got)
	}
	second := connect(t, d.testHub)
	defer second.leave()
	session := "s-" + key
	run := second.listen(session, true)
	if err := second.must(t.Context(), map[string]any{"type": "switch_session", "sessionId": session}); err != nil {
		t.Fatal(err)
	}
	if d.streamed() {
		run.waitText(t, firstHalf)
	}
	d.finish(t, key)
	wantResult(t, run.wait(t), d.wantAnswer(firstHalf+secondHalf))

	f, err := second.client.Do(t.Context(), map[string]any{"type": "get_messages", "sessionId": session})
	var kept struct {
		Messages []struct {
			Role    string
			Content []struct{ Text string }
		}
	}
	if err != nil || json.Unmarshal(f.Data, &kept) != nil || len(kept.Messages) != 2 {
		t.Fatalf("got %v and %s, want two messages", err, f.Data)
	}
	if last := kept.Messages[1]; last.Role != "assistant" || len(last.Content) != 1 || last.Content[0].Text != firstHalf+secondHalf {
		t.Errorf("got the last message %+v, want the whole answer", last)
	}
	return "runs on, replayed"
}
