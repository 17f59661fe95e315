package pack

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// lines is the transport of a child: one message a line (2026-07-28, basic/transports/stdio).
type lines struct {
	server *server
	link   *link.Link[[]byte, []byte]
	run    sync.WaitGroup

	begun bool // there was a line; only receive uses it

	mu      sync.Mutex
	pending map[string]chan reply // by the id of the request
}

// errUnsolicited says that notifications come without a request for them.
var errUnsolicited = errors.New("the server sends notifications unsolicited")

func newLines(s *server, conn link.Conn[[]byte, []byte]) *lines {
	t := &lines{server: s, link: link.New(conn, link.Options{}), pending: map[string]chan reply{}}
	s.conn = t
	t.run.Go(func() { // the supervisor closes the process, not the end of a context
		t.link.Run(context.WithoutCancel(s.ctx), t.receive, t.rejected)
	})
	return t
}

func (t *lines) call(ctx context.Context, r request) (jsonrpc.Message, error) {
	id := string(r.id)
	answer := make(chan reply, 1)
	t.mu.Lock()
	t.pending[id] = answer
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.pending, id)
		t.mu.Unlock()
	}()
	if err := t.send(ctx, jsonrpc.AppendRequest(nil, r.id, r.method, r.params)); err != nil {
		return jsonrpc.Message{}, err
	}
	select {
	case a := <-answer:
		return a.Message, a.err
	case <-t.link.Done():
		select {
		case a := <-answer: // it came before
			return a.Message, a.err
		default:
			return jsonrpc.Message{}, t.reason()
		}
	case <-ctx.Done():
		if !r.quiet {
			t.server.respond(cancelled(r.id, context.Cause(ctx)))
		}
		return jsonrpc.Message{}, context.Cause(ctx)
	}
}

// cancelled is the notification that a request is cancelled.
func cancelled(id json.RawMessage, why error) []byte {
	return jsonrpc.AppendNotification(nil, wire.NoteCancelled, json.RawMessage(`{"requestId":`+string(id)+`,"reason":`+string(strictjson.Encode(messageOf(why)))+`}`))
}

func (t *lines) send(ctx context.Context, m []byte) error {
	err := t.link.Send(ctx, m, len(m))
	var closed *link.Reason
	if errors.As(err, &closed) {
		return t.reason()
	}
	return err
}

func (t *lines) established() {}

// listen opens the subscription of a modern server. A legacy one sends notifications unsolicited.
func (t *lines) listen(ctx context.Context) error {
	if !t.server.era().modern {
		return errUnsolicited
	}
	return t.server.subscribe(ctx)
}

func (t *lines) mayBeSilent() bool     { return true }
func (t *lines) lost() <-chan struct{} { return t.link.Done() }

func (t *lines) reason() error {
	r := t.link.Reason()
	why := cmp.Or(r.Text, r.Error())
	if r.Cause == link.Normal {
		why = "it closed its output"
	}
	return t.server.fail(core.CodeUnreachable, "has ended: %s%s", why, t.server.noise()).Because(&r)
}

func (t *lines) close() {
	t.link.Close(link.Reason{Cause: link.Normal, Text: "the pack is closed"})
	t.run.Wait()
}

// receive takes a line of the server.
func (t *lines) receive(_ context.Context, line []byte) error {
	m, fault := jsonrpc.Read(line, strictjson.Limits{})
	if !t.begun && fault != nil {
		t.server.preamble.Store(fmt.Sprintf("; its output begins with %.100q, which is no message", line))
	}
	t.begun = true
	switch {
	case fault != nil:
		t.garbage(line, m, fault)
	case m.Kind() == jsonrpc.Response:
		t.settle(m.ID, reply{Message: m})
	case m.Method == wire.NoteCancelled && t.end(m.Params.Get("requestId").Raw()):
	default:
		t.server.receive(m, nil)
	}
	return nil
}

// settle gives a response to the request that it answers.
func (t *lines) settle(id json.RawMessage, r reply) bool {
	t.mu.Lock()
	answer := t.pending[string(id)]
	delete(t.pending, string(id)) // a second answer is one to an unknown request
	t.mu.Unlock()
	if answer == nil {
		t.server.count("ignored.response") // it was cancelled, answered before, or never sent
		return false
	}
	answer <- r
	return true
}

// end ends a subscription that the server cancels. Servers cancel no other request of ours;
// the requests of legacy servers have ids of their own.
func (t *lines) end(id json.RawMessage) bool {
	if !t.server.era().modern {
		return false
	}
	t.mu.Lock()
	answer := t.pending[string(id)]
	delete(t.pending, string(id))
	t.mu.Unlock()
	if answer != nil {
		answer <- reply{}
	}
	return answer != nil
}

// garbage skips a line that is no message. An answer that cannot be read fails its call, if
// that is known: with the id, or since no other call runs.
func (t *lines) garbage(line []byte, m jsonrpc.Message, fault *jsonrpc.Error) {
	t.server.trouble("garbage", "the MCP server wrote a line that is no message: it was skipped", "why", fault.Message, "line", fmt.Sprintf("%.200q", line))
	unreadable := reply{err: t.server.fail(core.CodeInternal, "sent an answer that cannot be read: %s", cut(fault.Message))}
	switch {
	case m.ID != nil && m.Method == "":
		t.settle(m.ID, unreadable)
	case fault.Code == jsonrpc.CodeParseError && bytes.HasPrefix(line, []byte("{")) && bytes.Contains(line, []byte(`"jsonrpc"`)):
		t.settleOnly(unreadable)
	}
}

// settleOnly answers the request that waits, if there is only one.
func (t *lines) settleOnly(r reply) {
	t.mu.Lock()
	var only string
	if len(t.pending) == 1 {
		for only = range t.pending {
			break
		}
	}
	t.mu.Unlock()
	if only != "" {
		t.settle(json.RawMessage(only), r)
	}
}

// rejected skips a line over the limit of the connection. It is the result of the call with
// its id, at one of its ends, or of the only call. What begins as no message, such as a log, is the
// result of none.
func (t *lines) rejected(_ context.Context, r *link.Reject) error {
	t.server.trouble("too_large", "the MCP server wrote a line over the limit: it was skipped", "bytes", r.Size, "limit", r.Limit)
	refused := reply{err: tooLarge(t.server.opts.ResultBytes)}
	switch p := jsonrpc.Peek(r.Head, r.Tail); {
	case p.Response && p.ID != nil:
		t.settle(p.ID, refused)
	case p.Method == "" && strings.HasPrefix(r.Head, "{"):
		t.settleOnly(refused)
	}
	return nil
}
