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
	piclient "github.com/dragoman-hub/dragoman/adapters/pi/client"
	"github.com/dragoman-hub/dragoman/core"
)

func piOverWebSocket() *tongue {
	return piTongue("pi WebSocket", func(t *testing.T, s *stage) frames {
		return dialFrames(t, s.service.Addresses().Pi, "/", 64<<20)
	})
}

func piOverStdio() *tongue {
	return piTongue("pi stdio", func(t *testing.T, s *stage) frames { return runFrames(t, s, pi.Name) })
}

// piTongue is pi-server: everything is text in it, a run that fails is a message
// that says so, and what the hub refuses is a command that fails. There are no
// codes. A session outlives its client.
func piTongue(name string, open func(*testing.T, *stage) frames) *tongue {
	connect := func(t *testing.T, s *stage) *piClient { return connectPiClient(t, open(t, s)) }
	broken := func(f *core.Fault) telling { return telling{End: "error", Words: f.Message} }
	return &tongue{
		name:         name,
		connect:      func(t *testing.T, s *stage, _ string) requester { return connect(t, s) },
		streams:      true,
		tells:        map[string]func([]string) []string{"tool": but("pending"), "approval": all, "injection": all, "usage": summed},
		fileInText:   func(text string) string { return text + "[file note.txt, text/plain, 17 bytes]\n" + fileText },
		injectsLater: true,
		longQuestion: &telling{End: "refused", Words: "Validation failed: message: Too long (max 200000 chars)"},
		done:         telling{End: "stop"},
		failed:       broken,
		refused:      func(f *core.Fault) telling { return telling{End: "refused", Words: f.Message} },
		cancelled:    func(string) telling { return telling{End: "aborted"} },
		afterCut:     func(t *testing.T, d *duo) string { return piAfterCut(t, d, connect) },
	}
}

// piClient is an unchanged pi client that shows what it is told.
type piClient struct {
	t      *testing.T
	frames frames
	client *piclient.Conn
	asking sync.WaitGroup

	mu   sync.Mutex
	runs map[string]*piRun
}

// piRun is one session, and the run in it.
type piRun struct {
	*exchange
	session string
	heard   piclient.Transcript
	asked   chan string // the ids of what a person is asked
	// watched is a run that another client began: agent_end is all that this one
	// hears of its end.
	watched bool
}

func connectPiClient(t *testing.T, f frames) *piClient {
	t.Helper()
	c := &piClient{t: t, frames: f, runs: map[string]*piRun{}}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	client, err := piclient.Connect(ctx, f.Conn, c.hear)
	if err != nil {
		t.Fatal(err)
	}
	c.client = client
	return c
}

// hear is told every frame, one after the other.
func (c *piClient) hear(f piclient.Frame) {
	c.mu.Lock()
	run := c.runs[f.SessionID]
	c.mu.Unlock()
	if f.Type != "event" || run == nil {
		return
	}
	before := run.heard.Deltas.Len()
	run.sight(f.Event)
	run.heard.Add(f)
	if fresh := run.heard.Deltas.String()[before:]; fresh != "" {
		run.piece(fresh)
	}
	if run.watched && run.heard.Kinds[len(run.heard.Kinds)-1] == "agent_end" {
		run.conclude()
	}
}

// sight notes what an event tells beside the text.
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
		r.sees("tool", "call %s %s", e.ToolName, e.Args)
	case "tool_execution_update":
		r.sees("tool", "%s", e.PartialResult.Details.State)
	case "tool_execution_end":
		r.sees("tool", "result %s", e.Result.Content[0].Text)
	case "extension_ui_request":
		if e.Method == "confirm" {
			r.asked <- e.RequestID
			r.sees("approval", "asked %s", strings.TrimSuffix(strings.TrimPrefix(e.Title, "Allow "), "?"))
		} else if _, said, ok := strings.Cut(string(e.Message), ": "); ok && strings.Contains(said, " by ") {
			r.sees("approval", "%s", strings.Fields(said)[0])
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
			r.sees("usage", "%d", spent)
		}
		if m.Role == "user" && strings.HasPrefix(m.Content[0].Text, "say ") && len(r.heard.Kinds) > 4 {
			r.sees("injection", "taken true")
		}
	}
}

// conclude ends a run as its last message says.
func (r *piRun) conclude() {
	h := &r.heard
	if h.Snapshots != h.Deltas.String() {
		r.breaks("the snapshots have %d bytes of text and the deltas %d", len(h.Snapshots), h.Deltas.Len())
	}
	// What waits is told when it begins to wait, which is no step of the run.
	kinds := slices.DeleteFunc(slices.Clone(h.Kinds), func(kind string) bool { return kind == "queue_update" })
	if want := []string{"agent_start", "turn_start", "message_start", "message_end", "message_start"}; len(kinds) < len(want) || !slices.Equal(kinds[:len(want)], want) {
		r.breaks("the run begins %q", kinds[:min(len(kinds), len(want))])
	}
	if want := []string{"message_end", "turn_end", "agent_end"}; len(kinds) < len(want) || !slices.Equal(kinds[len(kinds)-len(want):], want) {
		r.breaks("the run does not end in %q: %q", want, kinds)
	}
	if h.StopReason == "aborted" && !strings.HasPrefix(h.ErrorMessage, "Request was aborted") {
		r.breaks("the abort is worded %q", h.ErrorMessage)
	}
	r.end(telling{End: h.StopReason, Words: h.ErrorMessage})
}

func (c *piClient) begin(q inquiry) *exchange {
	session := "s-" + readScene(q.content).key
	run := c.listen(session, false)
	run.cancel = func(ctx context.Context, _ string) error {
		return c.must(ctx, map[string]any{"type": "abort", "sessionId": session})
	}
	run.inject = func(ctx context.Context, content string) error {
		return c.must(ctx, map[string]any{"type": "steer", "sessionId": session, "message": content})
	}
	run.decide = func(ctx context.Context, approved bool) error {
		return c.must(ctx, map[string]any{
			"type": "extension_ui_response", "sessionId": session, "requestId": <-run.asked,
			"response": map[string]any{"method": "confirm", "confirmed": approved},
		})
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
			run.end(telling{End: "timed out", Words: f.Error})
		case !f.Success:
			run.end(telling{End: "refused", Words: f.Error})
		default:
			run.conclude()
		}
	})
	return run.exchange
}

// listen makes the client hear what happens in a session.
func (c *piClient) listen(session string, watched bool) *piRun {
	run := &piRun{exchange: newExchange(), session: session, watched: watched, asked: make(chan string, 8)}
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

// piAfterCut comes back as another client: the run went on, and is told from its
// beginning.
func piAfterCut(t *testing.T, d *duo, connect func(*testing.T, *stage) *piClient) string {
	first := connect(t, d.stage)
	defer first.leave()
	key, x := d.midway(t, first, inquiry{})
	first.cut()
	if got := x.outcome(t); got.End != "lost" {
		t.Errorf("got %+v at who was cut off, want the connection lost", got)
	}
	second := connect(t, d.stage)
	defer second.leave()
	session := "s-" + key
	run := second.listen(session, true)
	if err := second.must(t.Context(), map[string]any{"type": "switch_session", "sessionId": session}); err != nil {
		t.Fatal(err)
	}
	if d.inPieces() {
		run.hear(t, firstHalf)
	}
	d.finished(t, key)
	same(t, run.outcome(t), d.answer(firstHalf+secondHalf))

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
