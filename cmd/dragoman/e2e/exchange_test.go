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

// inquiry is something to be asked.
type inquiry struct {
	to, content string
	// data is asked beside the content, where the dialect has a place for it.
	data json.RawMessage
	// deadline is how long the answer may take; zero leaves it to the dialect.
	deadline time.Duration
	// delegate gives it as a task whose result is reported, where the dialect knows
	// the difference.
	delegate bool
}

// telling is what an inquiry came to, in the words of the dialect that asked. What
// a dialect does not tell is empty.
type telling struct {
	// End is what the dialect calls the end.
	End string
	// Code, Words and Retry say why it is no answer; Status is that of HTTP.
	Code, Words, Retry string
	Status             int
	// Text is the answer in words, put together; Pieces is how many were told on the
	// way to the end.
	Text   string
	Pieces int
	Data   json.RawMessage
	// Broken is what the dialect forbids and happened all the same.
	Broken string
}

// exchange is an inquiry under way, at the end of who asked.
type exchange struct {
	// id is what the dialect calls it, where that is needed later.
	id string
	// cancel takes it back, with a reason where the dialect has room for one.
	cancel func(ctx context.Context, reason string) error
	// decide answers the approval that the agent waits for, and inject tells the agent
	// something while it works: nil where the dialect has no word for it.
	decide func(ctx context.Context, approved bool) error
	inject func(ctx context.Context, content string) error

	ended chan struct{}

	mu     sync.Mutex
	over   bool
	text   strings.Builder
	pieces int
	news   chan struct{} // closed at the next piece; nil while nobody waits
	broken string
	told   telling
	seen   sights
}

func newExchange() *exchange { return &exchange{ended: make(chan struct{})} }

// piece adds a piece of the answer.
func (x *exchange) piece(text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.text.WriteString(text)
	x.pieces++
	if x.over {
		x.broken = "text came behind the end"
	}
	if x.news != nil {
		close(x.news)
		x.news = nil
	}
}

// breaks notes what the dialect forbids.
func (x *exchange) breaks(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.broken == "" {
		x.broken = fmt.Sprintf(format, args...)
	}
}

// end ends the exchange. The pieces are the text, if there were any.
func (x *exchange) end(t telling) {
	if !x.finish(t) {
		x.breaks("it ended twice")
	}
}

// lost ends the exchange because the connection has ended, unless it has ended.
func (x *exchange) lost(err error) { x.finish(telling{End: "lost", Words: fmt.Sprint(err)}) }

func (x *exchange) finish(t telling) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return false
	}
	if x.pieces > 0 {
		t.Text, t.Pieces = x.text.String(), x.pieces
	}
	x.told, x.over = t, true
	close(x.ended)
	return true
}

// outcome waits for the end.
func (x *exchange) outcome(t *testing.T) telling {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	select {
	case <-x.ended:
		x.mu.Lock()
		defer x.mu.Unlock()
		x.told.Broken = x.broken
		return x.told
	case <-ctx.Done():
		x.mu.Lock()
		defer x.mu.Unlock()
		t.Fatalf("got no end of the exchange, and so far %d bytes in %d pieces, want the end", x.text.Len(), x.pieces)
		return telling{}
	}
}

// hear waits until text has been told.
func (x *exchange) hear(t *testing.T, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	for {
		x.mu.Lock()
		heard := x.text.String()
		if x.news == nil {
			x.news = make(chan struct{})
		}
		news := x.news
		x.mu.Unlock()
		if strings.Contains(heard, text) {
			return
		}
		select {
		case <-news:
		case <-x.ended:
			t.Fatalf("got the end %+v and before it %q, want %q first", x.told, heard, text)
		case <-ctx.Done():
			t.Fatalf("got %q, want %q", heard, text)
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

// lost ends them all with the connection.
func (e *exchanges) lost(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.all {
		x.lost(err)
	}
}

// requester asks in one dialect over one connection.
type requester interface {
	// begin asks and does not wait for the answer.
	begin(inquiry) *exchange
	// cut ends the connection as a failure of the network or of the machine would.
	cut()
	// leave ends it in good order and waits until nothing of it runs any more. It
	// may be called again, and after cut.
	leave()
}

// frames is a connection of whole JSON messages that can be cut: a WebSocket
// through a cable, or a child process that bridges to one.
type frames struct {
	link.Conn[[]byte, []byte]
	cut func()
}

// dialFrames connects to a path of the hub by WebSocket.
func dialFrames(t *testing.T, hub, path string, limit int) frames {
	t.Helper()
	c := lay(t, hub)
	conn, err := client.DialWebSocket(t.Context(), client.Hub{URL: "http://" + c.addr()}, path, nil, limit)
	if err != nil {
		t.Fatal(err)
	}
	return frames{conn, c.cut}
}

// runFrames runs the program as a bridge between its stdin and stdout and the hub.
// It is cut by killing it.
func runFrames(t *testing.T, s *stage, dialect string) frames {
	t.Helper()
	cmd := program(t, "stdio", "--dialect", dialect, "--hub", "http://"+s.service.Addresses().HTTP)
	cmd.Stderr = os.Stderr
	child, err := stdio.Command(context.Background(), cmd, stdio.ChildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { child.Close(link.Reason{Cause: link.Normal}) })
	return frames{child, func() { _ = cmd.Process.Kill() }} // it may have ended by itself
}
