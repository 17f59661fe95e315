package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	acpwire "github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// acpOverWebSocket declares progress and is told answers in pieces.
func acpOverWebSocket() *tongue {
	return acpTongue("ACP WebSocket", true, func(t *testing.T, s *stage) frames {
		return dialFrames(t, s.service.Addresses().HTTP, "/ws/acp", client.MaxACPBytes)
	})
}

// acpOverStdio speaks the draft as it is: an answer is one envelope.
func acpOverStdio() *tongue {
	return acpTongue("ACP stdio", false, func(t *testing.T, s *stage) frames { return runFrames(t, s, acp.Dialect) })
}

// acpCodes are the codes of ACP for those of the hub.
var acpCodes = map[core.Code]string{
	core.CodeInvalid: "invalid_envelope", core.CodeUnauthenticated: "not_authorized", core.CodeNotAuthorized: "not_authorized",
	core.CodeUnknownAgent: "peer_not_found", core.CodeUnknownTask: "peer_not_found", core.CodeUnreachable: "peer_not_found",
	core.CodeUnknownDomain: "unknown_domain", core.CodeUnknownKind: "unknown_kind", core.CodeUnsupported: "unsupported",
	core.CodeOverloaded: "overloaded", core.CodeRateLimited: "rate_limited", core.CodeTooLarge: "too_large", core.CodeTimeout: "timeout",
	core.CodeCancelled: "cancelled", core.CodeConflict: "conflict", core.CodeLoop: "loop", core.CodeBudget: "budget", core.CodeInternal: "internal",
}

// acpError is how ACP words a fault.
func acpError(f *core.Fault) telling {
	return telling{End: "error", Code: acpCodes[f.Code], Words: f.Message, Retry: strconv.FormatBool(f.Retryable)}
}

// acpTongue is ACP over a connection. A query ends with who asked it; the result of
// a delegate finds its way to the next connection of the same peer.
func acpTongue(name string, progress bool, open func(*testing.T, *stage) frames) *tongue {
	connect := func(t *testing.T, s *stage, id string) *acpPeer { return connectACPPeer(t, open(t, s), id, progress) }
	tells := everything()
	if !progress {
		tells = map[string]func([]string) []string{"usage": summed, "file": all}
	}
	return &tongue{
		name:    name,
		connect: func(t *testing.T, s *stage, id string) requester { return connect(t, s, id) },
		streams: progress, data: true, deadlines: true, tells: tells,
		done: telling{End: "response"}, reported: telling{End: "result completed"},
		failed: acpError, refused: acpError,
		cancelled: func(reason string) telling { return acpError(core.NewFault(core.CodeCancelled, "%s", reason)) },
		afterCut:  func(t *testing.T, d *duo) string { return acpAfterCut(t, d, connect) },
	}
}

// acpQuestion is the envelope of an inquiry.
func acpQuestion(from string, q inquiry) acpwire.Envelope {
	e := acpwire.Envelope{ID: uuid.NewString(), From: from, To: q.to, TS: time.Now().UnixMilli()}
	var extra json.RawMessage
	if q.data != nil {
		extra = plainJSON(map[string]json.RawMessage{"data": q.data})
	}
	if q.delegate {
		e.Kind, e.Payload = acpwire.KindDelegate, plainJSON(acpwire.Delegate{Task: q.content, Context: extra, DeadlineMS: q.deadline.Milliseconds()})
	} else {
		e.Kind = acpwire.KindQuery
		e.Payload = plainJSON(acpwire.Query{Question: plainJSON(q.content), Context: extra, DeadlineMS: q.deadline.Milliseconds()})
	}
	return e
}

// acpCancel is the envelope that takes another back.
func acpCancel(from, ref, reason string) acpwire.Envelope {
	return acpwire.Envelope{ID: uuid.NewString(), From: from, TS: time.Now().UnixMilli(), Kind: acpwire.KindCancel, Ref: ref, Payload: plainJSON(acpwire.Cancel{Reason: reason})}
}

// acpCancelled is the answer to a cancel that came in time.
const acpCancelled = "ack true"

// acpTelling is what an envelope says that answers a question, and whether it is
// the last.
func acpTelling(e acpwire.Envelope) (told telling, last bool, err error) {
	switch e.Kind {
	case acpwire.KindResponse:
		var r acpwire.Response
		err = e.Read(&r)
		told = telling{End: "response", Text: r.Summary, Data: r.Data}
	case acpwire.KindResult:
		var r acpwire.Result
		err = e.Read(&r)
		told = telling{End: "result " + r.Status, Text: r.Outcome, Data: r.Data}
	case acpwire.KindError:
		var r acpwire.Error
		err = e.Read(&r)
		told = telling{End: "error", Code: string(r.Code), Words: r.Message, Retry: strconv.FormatBool(r.Retryable)}
	case acpwire.KindAck:
		var a acpwire.Ack
		err = e.Read(&a)
		return telling{End: fmt.Sprintf("ack %v", a.Accepted)}, !a.Accepted, err
	default:
		err = fmt.Errorf("an envelope of kind %s answers nothing", e.Kind)
	}
	if string(told.Data) == "null" {
		told.Data = nil
	}
	return told, true, err
}

// acpPeer is a peer on one connection that asks and is no agent.
type acpPeer struct {
	id     string
	frames frames
	link   *link.Link[[]byte, []byte]
	done   chan struct{}
	asked  exchanges            // questions
	calls  exchanges            // what has one answer
	seqs   map[[2]string]uint64 // of the latest progress, by ref and sender; of the reader
	live   bool                 // it understands progress
}

func connectACPPeer(t *testing.T, f frames, id string, progress bool) *acpPeer {
	t.Helper()
	p := &acpPeer{id: id, frames: f, link: link.New(f.Conn, link.Options{}), done: make(chan struct{}), seqs: map[[2]string]uint64{}, live: progress}
	go func() {
		defer close(p.done)
		reason := p.link.Run(context.Background(), p.receive, nil)
		p.asked.lost(&reason)
		p.calls.lost(&reason)
	}()
	hello := acpwire.Hello{ProtocolVersions: []int64{acpwire.Version}}
	if progress {
		hello.Features = []string{acpwire.ExtensionProgress}
	}
	// It also tells the hub who is on the connection.
	e := acpwire.Envelope{ID: uuid.NewString(), From: id, Kind: acpwire.KindHello, Payload: plainJSON(hello)}
	if got := p.call(t.Context(), e); got != "hello" {
		t.Fatalf("got %q in answer to hello, want hello", got)
	}
	return p
}

// call sends an envelope and returns what its one answer says.
func (p *acpPeer) call(ctx context.Context, e acpwire.Envelope) string {
	x := p.calls.add(e.ID, newExchange())
	if err := p.send(ctx, e); err != nil {
		x.lost(err)
	}
	select {
	case <-x.ended:
		return x.told.End
	case <-ctx.Done():
		return "nothing"
	}
}

func (p *acpPeer) send(ctx context.Context, e acpwire.Envelope) error {
	raw := e.Encode()
	return p.link.Send(ctx, raw, len(raw))
}

func (p *acpPeer) receive(_ context.Context, raw []byte) error {
	e, err := acpwire.Decode(raw, client.MaxACPBytes)
	if err == nil {
		err = e.Check()
	}
	if err != nil {
		return fmt.Errorf("the hub sent what is no envelope: %w", err)
	}
	x, call := p.asked.get(e.Ref), p.calls.get(e.Ref)
	switch {
	case call != nil && (e.Kind == acpwire.KindHello || e.Kind == acpwire.KindPong):
		call.end(telling{End: string(e.Kind)})
		return nil
	case x == nil && call == nil:
		return nil // a discover, or what is for nobody here
	case x != nil && e.Kind == acpwire.KindProgress:
		return p.progress(x, e)
	}
	told, last, err := acpTelling(e)
	switch {
	case err != nil:
		return err
	case call != nil:
		call.end(told)
	case last:
		if !p.live {
			x.seesWhole(e)
		}
		x.endBriefly(told)
	}
	return nil
}

// seesWhole notes what the one envelope of an answer tells beside its text.
func (x *exchange) seesWhole(e acpwire.Envelope) {
	var r acpwire.Response
	var files struct{ Files []core.File }
	if e.Kind != acpwire.KindResponse || e.Read(&r) != nil {
		return
	}
	if r.TokensUsed > 0 {
		x.sees("usage", "%d", r.TokensUsed)
	}
	if json.Unmarshal(r.Data, &files) == nil {
		for _, f := range files.Files {
			x.seesBody(f)
		}
	}
}

// acpContext is the notify that tells an agent something about a question of ours.
func acpContext(from, ref, content string) acpwire.Envelope {
	return acpwire.Envelope{
		ID: uuid.NewString(), From: from, TS: time.Now().UnixMilli(), Kind: acpwire.KindNotify,
		Payload: plainJSON(acpwire.Notify{
			Topic: acpwire.TopicContext, Importance: "high", Data: plainJSON(acpwire.Context{Ref: ref, Content: content, Priority: "immediate"}),
		}),
	}
}

// inject tells the agent something. Only a refusal is answered; the pong of a ping
// behind it proves that there is none.
func (p *acpPeer) inject(ctx context.Context, ref, content string) error {
	e := acpContext(p.id, ref, content)
	refused := p.calls.add(e.ID, newExchange())
	if err := p.send(ctx, e); err != nil {
		return err
	}
	ping := acpwire.Envelope{ID: uuid.NewString(), From: p.id, To: "hub", TS: time.Now().UnixMilli(), Kind: acpwire.KindPing, Payload: plainJSON(struct{}{})}
	if got := p.call(ctx, ping); got != string(acpwire.KindPong) {
		return fmt.Errorf("the ping was answered by %q", got)
	}
	select {
	case <-refused.ended:
		return fmt.Errorf("%s: %s", refused.told.Code, refused.told.Words)
	default:
		return nil
	}
}

// endBriefly ends an exchange whose text was told in pieces: the last envelope says
// at most how that begins.
func (x *exchange) endBriefly(told telling) {
	x.mu.Lock()
	pieces, text := x.pieces, x.text.String()
	x.mu.Unlock()
	begins := strings.TrimSuffix(told.Text, " ...")
	if told.Code == "" && pieces > 0 && (!strings.HasPrefix(text, begins) || len(begins) > 200 && begins != text) {
		x.breaks("the end repeats %d bytes of text: %.80q", len(begins), begins)
	}
	x.end(told)
}

func (p *acpPeer) progress(x *exchange, e acpwire.Envelope) error {
	var said struct {
		Seq               uint64                  `json:"seq"`
		Text              *string                 `json:"text"`
		ToolCall          *acpCall                `json:"tool_call"`
		ToolState         *core.ToolState         `json:"tool_state"`
		ToolResult        *core.ToolResult        `json:"tool_result"`
		ApprovalRequested *acpCall                `json:"approval_requested"`
		ApprovalDecided   *core.ApprovalDecided   `json:"approval_decided"`
		InjectionAnswered *core.InjectionAnswered `json:"injection_answered"`
		Usage             *core.Usage             `json:"usage"`
		File              *core.File              `json:"file"`
	}
	if err := e.Read(&said); err != nil {
		return err
	}
	of := [2]string{e.Ref, e.From}
	if said.Seq <= p.seqs[of] {
		x.breaks("progress %d of %s came behind %d", said.Seq, e.From, p.seqs[of])
	}
	p.seqs[of] = said.Seq
	switch {
	case said.Text != nil:
		x.piece(*said.Text)
	case said.ToolCall != nil:
		x.seesBody(core.ToolCall{Name: said.ToolCall.Name, Input: string(said.ToolCall.Input)})
	case said.ToolState != nil:
		x.seesBody(*said.ToolState)
	case said.ToolResult != nil:
		x.seesBody(*said.ToolResult)
	case said.ApprovalRequested != nil:
		x.seesBody(core.ApprovalRequested{Name: said.ApprovalRequested.Name})
	case said.ApprovalDecided != nil:
		x.seesBody(*said.ApprovalDecided)
	case said.InjectionAnswered != nil:
		x.seesBody(*said.InjectionAnswered)
	case said.Usage != nil:
		x.seesBody(*said.Usage)
	case said.File != nil:
		x.seesBody(*said.File)
	}
	return nil
}

// acpCall is a call of a tool in progress.
type acpCall struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

func (p *acpPeer) begin(q inquiry) *exchange {
	e := acpQuestion(p.id, q)
	x := p.asked.add(e.ID, newExchange())
	x.id = e.ID
	x.cancel = func(ctx context.Context, reason string) error {
		if got := p.call(ctx, acpCancel(p.id, e.ID, reason)); got != acpCancelled {
			return fmt.Errorf("the cancel was answered by %q", got)
		}
		return nil
	}
	x.inject = func(ctx context.Context, content string) error { return p.inject(ctx, e.ID, content) }
	if err := p.send(context.Background(), e); err != nil {
		x.lost(err)
	}
	return x
}

func (p *acpPeer) cut() {
	p.frames.cut()
	<-p.done
}

func (p *acpPeer) leave() {
	p.link.Close(link.Reason{Cause: link.Normal})
	<-p.done
}

// acpAfterCut cuts off a query, which ends with its connection, and a delegate, whose
// result waits for the next connection of the peer.
func acpAfterCut(t *testing.T, d *duo, connect func(*testing.T, *stage, string) *acpPeer) string {
	const id = "phoenix"
	first := connect(t, d.stage, id)
	defer first.leave()
	query, x := d.midway(t, first, inquiry{})
	task, y := d.midway(t, first, inquiry{delegate: true})
	first.cut()
	for _, x := range []*exchange{x, y} {
		if got := x.outcome(t); got.End != "lost" {
			t.Errorf("got %+v at who was cut off, want the connection lost", got)
		}
	}
	d.dropped(t, query)
	second := connect(t, d.stage, id)
	defer second.leave()
	z := second.asked.add(y.id, newExchange())
	d.finished(t, task)
	want := d.asks.reported
	want.Text = firstHalf + secondHalf
	same(t, z.outcome(t), want)
	return "query cancelled, result kept"
}
