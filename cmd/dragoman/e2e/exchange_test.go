package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

// query is a request of a test.
type query struct {
	to, content string
	// data goes with the content, if the dialect has a field for it.
	data json.RawMessage
	// deadline limits the answer's time; zero is the dialect's default.
	deadline time.Duration
	// thread is the conversation that it belongs to, if the dialect has a field for it.
	thread string
	// delegate makes it a task whose result is reported, if the dialect distinguishes that.
	delegate bool
}

// outcome is how a query ended, in the terms of the requester's dialect. What the dialect does not
// have is empty.
type outcome struct {
	// End is the dialect's name of the end.
	End string
	// Code, Message and Retry describe a failure; Status is that of HTTP.
	Code, Message, Retry string
	Status               int
	// Text is the whole text of the answer; Chunks is how many arrived before the end.
	Text   string
	Chunks int
	Data   json.RawMessage
	// Violation is how a rule of the dialect was violated.
	Violation string
}

// exchange is a running query, at the requester's end.
type exchange struct {
	// id is the dialect's id of the request, where that is needed later.
	id string
	// cancel cancels it, with a reason if the dialect has one.
	cancel func(ctx context.Context, reason string) error
	// decide decides the pending approval, and inject injects context: nil if the dialect
	// cannot.
	decide func(ctx context.Context, approved bool) error
	inject func(ctx context.Context, content string) error

	ended chan struct{}

	mu        sync.Mutex
	done      bool
	text      strings.Builder
	chunks    int
	changed   chan struct{} // closed at the next change; nil while nothing waits
	violation string
	result    outcome
	reports   reports
}

func newExchange() *exchange { return &exchange{ended: make(chan struct{})} }

// addText adds a chunk of the answer.
func (x *exchange) addText(text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.text.WriteString(text)
	x.chunks++
	if x.done {
		x.violation = "text arrived after the end"
	}
	if x.changed != nil {
		close(x.changed)
		x.changed = nil
	}
}

// violates records a violation of the dialect's rules.
func (x *exchange) violates(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.violation == "" {
		x.violation = fmt.Sprintf(format, args...)
	}
}

// end ends the exchange. The chunks are the text, if there were any.
func (x *exchange) end(t outcome) {
	if !x.finish(t) {
		x.violates("it ended twice")
	}
}

// lost ends the exchange because the connection has ended, unless it has ended already.
func (x *exchange) lost(err error) { x.finish(outcome{End: "lost", Message: fmt.Sprint(err)}) }

func (x *exchange) finish(t outcome) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.done {
		return false
	}
	if x.chunks > 0 {
		t.Text, t.Chunks = x.text.String(), x.chunks
	}
	x.result, x.done = t, true
	close(x.ended)
	return true
}

// wait waits for the end.
func (x *exchange) wait(t *testing.T) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	select {
	case <-x.ended:
		x.mu.Lock()
		defer x.mu.Unlock()
		x.result.Violation = x.violation
		return x.result
	case <-ctx.Done():
		x.mu.Lock()
		defer x.mu.Unlock()
		t.Fatalf("got no end of the exchange, and so far %d bytes in %d pieces, want the end", x.text.Len(), x.chunks)
		return outcome{}
	}
}

// waitText waits until the text has been received.
func (x *exchange) waitText(t *testing.T, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	for {
		x.mu.Lock()
		received := x.text.String()
		if x.changed == nil {
			x.changed = make(chan struct{})
		}
		news := x.changed
		x.mu.Unlock()
		if strings.Contains(received, text) {
			return
		}
		select {
		case <-news:
		case <-x.ended:
			t.Fatalf("got the end %+v and before it %q, want %q first", x.result, received, text)
		case <-ctx.Done():
			t.Fatalf("got %q, want %q", received, text)
		}
	}
}

// exchanges are those of one connection, by the id that the dialect gave them.
type exchanges struct {
	mu  sync.Mutex
	all map[string]*exchange
}

func (e *exchanges) add(id string, x *exchange) *exchange {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.all == nil {
		e.all = map[string]*exchange{}
	}
	e.all[id] = x
	return x
}

func (e *exchanges) get(id string) *exchange {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all[id]
}

// lost ends all of them with the connection.
func (e *exchanges) lost(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.all {
		x.lost(err)
	}
}

// requester sends queries in one dialect over one connection.
type requester interface {
	// begin sends a query without waiting for the answer.
	begin(query) *exchange
	// cut ends the connection as a network failure would.
	cut()
	// leave closes the connection and waits until its goroutines have ended. It may be
	// called again, and after cut.
	leave()
}

// frames is a connection of whole JSON messages that can be cut: a WebSocket through a proxy, or a
// child process that bridges to one.
type frames struct {
	link.Conn[[]byte, []byte]
	cut func()
}

// dialFrames connects to a path of the hub by WebSocket.
func dialFrames(t *testing.T, hub, path string, limit int) frames {
	t.Helper()
	c := newProxy(t, hub)
	conn, err := client.DialWebSocket(t.Context(), client.Hub{URL: "http://" + c.addr(), Token: tokenFor(hub)}, path, nil, limit)
	if err != nil {
		t.Fatal(err)
	}
	return frames{conn, c.cut}
}

// runFrames runs the program as a bridge between its stdin and stdout and the hub. It is cut by
// killing it.
func runFrames(t *testing.T, h *testHub, dialect string) frames {
	t.Helper()
	cmd := program(t, "stdio", "--dialect", dialect, "--hub", h.url())
	cmd.Stderr = os.Stderr
	child, err := stdio.Command(context.Background(), cmd, stdio.ChildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Close(link.Reason{Cause: link.Normal}) })
	return frames{child, func() { _ = cmd.Process.Kill() }} // it may have ended by itself
}
