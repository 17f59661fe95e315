package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The times of an [Editor].
const (
	// patience is how long a message of the editor waits for a hub before it is refused.
	patience = 3 * time.Second
	// lastAnswers is how long the hub has to answer what is open when the editor closes
	// stdin: editors expect their agents to exit within about a second.
	lastAnswers = time.Second
	// The pause between two attempts to connect.
	leastPause, mostPause = 250 * time.Millisecond, 5 * time.Second
	// stalled is how long the editor may leave stdout unread.
	stalled = 10 * time.Minute
)

// Conn is a connection of whole messages.
type Conn = link.Conn[[]byte, []byte]

// Editor carries the Agent Client Protocol of editors between stdin and stdout and a hub. It
// outlives the hub: while there is none it answers requests with an error that says what to
// do. It connects again, repeats initialize and resumes the sessions. A request that was open
// when the connection was lost gets an error.
type Editor struct {
	// Dial connects to the hub.
	Dial func(context.Context) (Conn, error)
	// Log tells what happens to the connection.
	Log *slog.Logger
}

// Carry passes messages both ways until stdin or stdout ends, or ctx does. It returns a
// client.AddressError for a malformed address of the hub.
func (e Editor) Carry(ctx context.Context, local Conn) error {
	p := &pipe{Editor: e, calls: newCalls(), changed: make(chan struct{})}
	p.editor = link.New(local, link.Options{EOF: p.calls.close, WriteTimeout: stalled})
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var group sync.WaitGroup
	var end link.Reason
	var failed error
	group.Go(func() {
		end = p.editor.Run(inner, p.fromEditor, p.rejected)
		cancel()
	})
	group.Go(func() {
		failed = p.connect(inner)
		cancel()
	})
	select {
	case <-p.calls.closed:
		select {
		case <-p.calls.answered:
		case <-time.After(lastAnswers):
		case <-inner.Done():
		}
	case <-inner.Done():
	}
	p.editor.Close(link.Reason{Cause: link.Normal})
	cancel()
	group.Wait()
	if failed == nil && ctx.Err() == nil && end.Cause != link.Normal {
		failed = errors.New("the connection to the editor ended: " + end.Error())
	}
	return failed
}

// pipe is a running [Editor].
type pipe struct {
	Editor
	editor *link.Link[[]byte, []byte]
	calls  *calls

	mu      sync.Mutex
	hub     *link.Link[[]byte, []byte] // nil while there is none
	absent  error                      // why there is none
	changed chan struct{}              // closed when hub changes
}

// connect keeps a connection to the hub until ctx ends.
func (p *pipe) connect(ctx context.Context) error {
	pause := leastPause
	for {
		conn, err := p.Dial(ctx)
		var malformed client.AddressError
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close(link.Reason{Cause: link.Normal}) // nobody needs it
			}
			return nil
		case errors.As(err, &malformed):
			return err
		case err != nil:
			if pause == leastPause {
				p.Log.Warn("not connected to the hub: trying again", "error", err)
			}
			p.setHub(nil, err)
		default:
			began := time.Now()
			reason := p.serve(ctx, conn)
			if ctx.Err() != nil {
				return nil
			}
			p.Log.Warn("the connection to the hub ended: connecting again", "reason", reason.Error())
			if time.Since(began) > mostPause {
				pause = leastPause
			}
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)): //nolint:gosec // spreads attempts
		case <-ctx.Done():
			return nil
		}
		pause = min(2*pause, mostPause)
	}
}

// serve carries messages over one connection to the hub until it ends.
func (p *pipe) serve(ctx context.Context, conn Conn) link.Reason {
	hub := link.New(conn, client.LinkOptions)
	again := p.calls.repeated()
	for _, line := range again { // they fit into the queue
		_ = hub.Send(ctx, line, len(line)) // an error means that the hub has gone
	}
	if len(again) > 0 {
		p.Log.Info("connected to the hub again", "sessions", len(again)-1)
	}
	p.setHub(hub, nil)
	reason := hub.Run(ctx, p.fromHub, nil)
	p.setHub(nil, lost{reason.Error()})
	open, asked := p.calls.lose()
	if ctx.Err() == nil {
		for _, id := range open {
			_ = p.answer(ctx, id, lost{reason.Error()}) // an error means that the editor has gone
		}
		for _, id := range asked { // closes what the editor shows for it
			line := jsonrpc.AppendNotification(nil, "$/cancel_request", append(append([]byte(`{"requestId":`), id...), '}'))
			_ = p.editor.Send(ctx, line, len(line))
		}
	}
	return reason
}

// lost is the error of a request that was open when the connection ended.
type lost struct{ reason string }

// Error implements error.
func (l lost) Error() string {
	return "the connection to the hub was lost (" + l.reason + "): what runs goes on there; load the session to see it, or ask again"
}

func (p *pipe) setHub(hub *link.Link[[]byte, []byte], absent error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hub, p.absent = hub, absent
	close(p.changed)
	p.changed = make(chan struct{})
}

// await returns the connection to the hub. It waits for one, but not long.
func (p *pipe) await(ctx context.Context) (*link.Link[[]byte, []byte], error) {
	var expired <-chan time.Time
	for {
		p.mu.Lock()
		hub, absent, changed := p.hub, p.absent, p.changed
		p.mu.Unlock()
		if hub != nil {
			return hub, nil
		}
		if expired == nil {
			timer := time.NewTimer(patience)
			defer timer.Stop()
			expired = timer.C
		}
		select {
		case <-changed:
		case <-expired:
			if absent == nil {
				absent = errors.New("the hub does not answer: see whether it runs, and try again")
			}
			return nil, absent
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// fromEditor passes a message of the editor on.
func (p *pipe) fromEditor(ctx context.Context, line []byte) error {
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	m, fault := jsonrpc.Read(line, strictjson.Limits{Bytes: MaxLine})
	if fault != nil {
		return p.unread(ctx, m.ID, m.IsAnswer(), fault)
	}
	if m.Kind() == jsonrpc.Response && !p.calls.settleAsked(m.ID) {
		return nil // it answers a connection that has ended
	}
	hub, absent := p.await(ctx)
	if m.Kind() == jsonrpc.Request {
		if absent != nil {
			return p.answer(ctx, m.ID, absent)
		}
		p.calls.begin(m, line)
	}
	if absent != nil {
		return nil
	}
	if err := hub.Send(ctx, line, len(line)); err != nil && m.Kind() == jsonrpc.Request && p.calls.take(m.ID) {
		return p.answer(ctx, m.ID, lost{err.Error()})
	}
	return nil
}

// notification begins every notification of the hub. They are most of what it sends, and are
// passed on unread.
var notification = jsonrpc.AppendNotification(nil, "", nil)[:len(`{"jsonrpc":"2.0","method":`)]

// fromHub passes a message of the hub on.
func (p *pipe) fromHub(ctx context.Context, frame []byte) error {
	if bytes.HasPrefix(frame, notification) {
		return p.toEditor(ctx, frame)
	}
	m, fault := jsonrpc.Read(frame, strictjson.Limits{Bytes: MaxLine})
	switch {
	case fault != nil:
		p.Log.Warn("what the hub sent is no JSON-RPC", "error", fault)
	case m.Kind() == jsonrpc.Request:
		p.calls.ask(m.ID)
	case m.Kind() == jsonrpc.Response && p.calls.settleOwn(m.ID):
		if m.Err != nil {
			p.Log.Warn("what was repeated for the hub was refused", "error", m.Err)
		}
		return nil
	case m.Kind() == jsonrpc.Response:
		err := p.toEditor(ctx, frame)
		p.calls.settle(m)
		return err
	}
	return p.toEditor(ctx, frame)
}

func (p *pipe) toEditor(ctx context.Context, line []byte) error {
	return p.editor.Send(ctx, line, len(line))
}

// answer answers a request of the editor in place of the hub.
func (p *pipe) answer(ctx context.Context, id []byte, why error) error {
	return p.toEditor(ctx, jsonrpc.AppendError(nil, id, jsonrpc.Errorf(jsonrpc.CodeInternalError, "%s", why.Error())))
}

// rejected answers a line that was not read.
func (p *pipe) rejected(ctx context.Context, r *link.Reject) error {
	e := jsonrpc.Errorf(jsonrpc.CodeParseError, "%s", r.Text)
	if r.Cause == link.TooLarge {
		e = jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the message has %d bytes, the limit is %d: send less", r.Size, r.Limit)
	}
	peeked := jsonrpc.Peek(r.Head, r.Tail)
	return p.unread(ctx, peeked.ID, peeked.Response, e)
}

// unread answers a message of the editor that could not be read. If it is an answer itself, the hub
// gets the error in place of it.
func (p *pipe) unread(ctx context.Context, id json.RawMessage, isAnswer bool, e *jsonrpc.Error) error {
	line := jsonrpc.AppendError(nil, id, e)
	if !isAnswer {
		return p.toEditor(ctx, line)
	}
	p.Log.Warn("an answer of the editor could not be read", "error", e)
	if p.calls.settleAsked(id) {
		if hub, absent := p.await(ctx); absent == nil {
			_ = hub.Send(ctx, line, len(line)) // an error means that the hub has gone
		}
	}
	return nil
}
