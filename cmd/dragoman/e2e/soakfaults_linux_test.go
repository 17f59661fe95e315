package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/dragoman-hub/dragoman/core"
)

// startFaults starts the clients that do what they should not.
func (s *soak) startFaults() {
	repeat := func(pause time.Duration, act func(context.Context)) {
		s.workers.Go(func() {
			for s.ctx.Err() == nil {
				ctx, cancel := context.WithTimeout(s.ctx, soakPatience)
				act(ctx)
				cancel()
				pauseFor(s.ctx, rand.N(pause))
			}
		})
	}
	repeat(2*time.Second, s.cancelled)
	repeat(2*time.Second, s.expired)
	repeat(2*time.Second, s.abandoned)
	repeat(2*time.Second, s.malformed)
	for range 8 {
		repeat(time.Second, s.halfOpen)
	}
}

// The clients that do not wait for the answer, among those who ask.
const (
	askerCancels = "rest, cancelling"
	askerExpires = "rest, with too short a deadline"
	askerLeaves  = "rest, leaving"
)

// wantEnd reads a task to an end of a kind, with a text in it.
func (s *soak) wantEnd(ctx context.Context, asker string, r *soakReader, task map[string]any, kind core.Kind, text string) {
	began := time.Now()
	err := r.toEnd(ctx, task)
	switch {
	case s.ctx.Err() != nil:
	case ctx.Err() != nil:
		s.wrong("%v of %v: no end after %v: %w", kind, task, soakPatience, err)
	case err != nil && isRefusal(err):
		s.unanswered(asker, began, err)
	case err != nil:
		s.wrong("%v of %v: %w", kind, task, err)
	case r.kind != kind || !strings.Contains(r.end, text):
		s.wrong("%v: got the end %s, want %v with %q", task, r.end, kind, text)
	default:
		s.count(asker + outcomeAnswered)
	}
}

// steadyAgents join from outside.
func steadyAgent() string { return steady[rand.IntN(4)] }

// cancelled cancels a task within its answer.
func (s *soak) cancelled(ctx context.Context) {
	r := &soakReader{soak: s}
	cancel := sync.OnceFunc(func() {
		_, _ = s.hub.Cancel(ctx, core.TaskID(r.task), "not needed") // the end says what became of it
	})
	r.each = func() {
		if r.last >= 4 {
			cancel()
		}
	}
	s.wantEnd(ctx, askerCancels, r, map[string]any{"to": steadyAgent(), "content": "long " + s.newKey()}, core.KindCancelled, "")
}

// expired opens a task that lasts longer than it may.
func (s *soak) expired(ctx context.Context) {
	s.wantEnd(ctx, askerExpires, &soakReader{soak: s}, map[string]any{"to": steadyAgent(), "content": "long " + s.newKey(), "deadline_ms": 300 + rand.IntN(900)}, core.KindFailed, "timeout")
}

// abandoned leaves a task that does not outlive who asked.
func (s *soak) abandoned(ctx context.Context) {
	r := &soakReader{soak: s, cutAfter: 4}
	began := time.Now()
	err := r.open(ctx, map[string]any{"to": steadyAgent(), "content": "long " + s.newKey(), "keep": false})
	switch {
	case s.ctx.Err() != nil:
		return
	case errors.Is(err, errCutHere):
	case err != nil && ctx.Err() == nil && isRefusal(err):
		s.unanswered(askerLeaves, began, err)
		return
	default:
		s.wrong("a task that is abandoned: %v", err)
		return
	}
	r.cutAfter = 0
	if err := r.readOn(ctx); s.ctx.Err() == nil && (err != nil || r.kind != core.KindCancelled) {
		s.wrong("the abandoned task %s: got the end %s and %v, want it cancelled", r.task, r.end, err)
	}
	s.count(askerLeaves + outcomeAnswered)
}

// malformed says what is no frame of the dialect, and has to be refused, or disconnected.
func (s *soak) malformed(ctx context.Context) {
	garbage := [][]byte{[]byte("{"), []byte("null"), []byte(`{"type":17}`), []byte(`{"id":"1","kind":"query","payload":`), {0xff, 0xfe, 0}, bytes.Repeat([]byte("["), 10_000)}
	one := garbage[rand.IntN(len(garbage))]
	for _, path := range []string{"/v1/tasks", "/mcp", "/a2a/native-steady"} {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.hub.URL+path, bytes.NewReader(one))
		if err != nil {
			s.wrong("%w", err)
			return
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := s.hub.HTTP.Do(r)
		if err != nil {
			if s.ctx.Err() == nil {
				s.wrong("%.20q to %s: %w", one, path, err)
			}
			return
		}
		var body bytes.Buffer
		_, _ = body.ReadFrom(resp.Body)
		resp.Body.Close()
		if resp.StatusCode < 400 && !strings.Contains(body.String(), `"error"`) {
			s.wrong("%.20q to %s: got %s %s, want it refused", one, path, resp.Status, body.String())
		}
	}
	for _, url := range []string{s.hub.URL + "/ws/acp?agent_id=garbage", s.hub.URL + "/ws/native", s.hub.URL + "/ws/agent", "http://" + s.hub.pi} {
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		c, _, err := websocket.Dial(short, strings.Replace(url, "http", "ws", 1), nil)
		if err == nil {
			_ = c.Write(short, websocket.MessageText, one)
			_, _, _ = c.Read(short) // a refusal, or nothing
			_ = c.CloseNow()
		}
		cancel()
	}
	s.count("malformed frames")
}

// halfOpen is a connection that begins something and says nothing more, and is closed or reset.
func (s *soak) halfOpen(ctx context.Context) {
	var d net.Dialer
	at := []string{strings.TrimPrefix(s.hub.URL, "http://"), s.hub.grpc, s.hub.pi}[rand.IntN(3)]
	c, err := d.DialContext(ctx, "tcp", at)
	if err != nil {
		if s.ctx.Err() == nil {
			s.wrong("connecting to %s: %w", at, err)
		}
		return
	}
	defer c.Close()
	begin := []string{
		"", "GET /v1/ag", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "POST /v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{",
		"GET /ws/native HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n\x81\xfe",
	}
	_, _ = fmt.Fprint(c, begin[rand.IntN(len(begin))])
	pauseFor(ctx, rand.N(40*time.Second))
	if rand.IntN(2) == 0 {
		_ = c.(*net.TCPConn).SetLinger(0) // a reset
	}
	s.count("half-open connections")
}
