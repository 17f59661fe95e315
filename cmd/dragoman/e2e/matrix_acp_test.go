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

// acpOverWebSocket declares progress and gets answers in chunks.
func acpOverWebSocket() *clientDialect {
	return acpDialect("ACP WebSocket", true, func(t *testing.T, h *testHub) frames {
		return dialFrames(t, h.service.Addresses().HTTP, "/ws/acp", client.MaxACPBytes)
	})
}

// acpOverStdio uses the draft as it is: an answer is one envelope.
func acpOverStdio() *clientDialect {
	return acpDialect("ACP stdio", false, func(t *testing.T, h *testHub) frames { return runFrames(t, h, acp.Dialect) })
}

// acpCodes are ACP's codes for the hub's.
var acpCodes = map[core.Code]string{
	core.CodeInvalid: "invalid_envelope", core.CodeUnauthenticated: "not_authorized", core.CodeNotAuthorized: "not_authorized",
	core.CodeUnknownAgent: "peer_not_found", core.CodeUnknownTask: "peer_not_found", core.CodeUnreachable: "peer_not_found",
	core.CodeUnknownDomain: "unknown_domain", core.CodeUnknownKind: "unknown_kind", core.CodeUnsupported: "unsupported",
	core.CodeOverloaded: "overloaded", core.CodeRateLimited: "rate_limited", core.CodeTooLarge: "too_large", core.CodeTimeout: "timeout",
	core.CodeCancelled: "cancelled", core.CodeConflict: "conflict", core.CodeLoop: "loop", core.CodeBudget: "budget", core.CodeInternal: "internal",
}

// acpError returns a fault as ACP has it.
func acpError(f *core.Fault) outcome {
	return outcome{End: "error", Code: acpCodes[f.Code], Message: f.Message, Retry: strconv.FormatBool(f.Retryable)}
}

// acpDialect is ACP over a connection. A query ends with its connection; the result of a delegate
// reaches the next connection of the same peer.
func acpDialect(name string, progress bool, open func(*testing.T, *testHub) frames) *clientDialect {
	connect := func(t *testing.T, h *testHub, id string) *acpPeer { return connectACPPeer(t, open(t, h), id, progress) }
	kinds := allReports()
	if !progress {
		kinds = map[string]func([]string) []string{"usage": sum, "file": keepAll}
	}
	return &clientDialect{
		name:    name,
		connect: func(t *testing.T, h *testHub, id string) requester { return connect(t, h, id) },
		streams: progress, data: true, deadlines: true, reports: kinds,
		done: outcome{End: "response"}, reported: outcome{End: "result completed"},
		failed: acpError, refused: acpError,
		cancelled:  func(reason string) outcome { return acpError(core.NewFault(core.CodeCancelled, "%s", reason)) },
		reconnects: func(t *testing.T, d *pair) string { return acpReconnects(t, d, connect) },
	}
}

// acpRequest returns the envelope of a query.
func acpRequest(from string, q query) acpwire.Envelope {
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

// acpCancel returns the envelope that cancels another.
func acpCancel(from, ref, reason string) acpwire.Envelope {
	return acpwire.Envelope{ID: uuid.NewString(), From: from, TS: time.Now().UnixMilli(), Kind: acpwire.KindCancel, Ref: ref, Payload: plainJSON(acpwire.Cancel{Reason: reason})}
}

// acpCancelled is the answer to a cancel that came in time.
const acpCancelled = "ack true"

// acpResult returns the outcome that an envelope carries, and whether it is the last.
func acpResult(e acpwire.Envelope) (result outcome, last bool, err error) {
	switch e.Kind {
	case acpwire.KindResponse:
		var r acpwire.Response
		err = e.Read(&r)
		result = outcome{End: "response", Text: r.Summary, Data: r.Data}
	case acpwire.KindResult:
		var r acpwire.Result
		err = e.Read(&r)
		result = outcome{End: "result " + r.Status, Text: r.Outcome, Data: r.Data}
	case acpwire.KindError:
		var r acpwire.Error
		err = e.Read(&r)
		result = outcome{End: "error", Code: string(r.Code), Message: r.Message, Retry: strconv.FormatBool(r.Retryable)}
	case acpwire.KindAck:
		var a acpwire.Ack
		err = e.Read(&a)
		return outcome{End: fmt.Sprintf("ack %v", a.Accepted)}, !a.Accepted, err
	default:
		err = fmt.Errorf("an envelope of kind %s answers nothing", e.Kind)
	}
	if string(result.Data) == "null" {
		result.Data = nil
	}
	return result, true, err
}

// acpPeer is a peer on one connection that asks and is not an agent.
type acpPeer struct {
	id     string
	frames frames
	link   *link.Link[[]byte, []byte]
	done   chan struct{}
	asked  exchanges            // questions
	calls  exchanges            // with one answer
	seqs   map[[2]string]uint64 // of the latest progress, by ref and sender; used by the reader
	live   bool                 // it supports progress
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
	// It also identifies the peer to the hub.
	e := acpwire.Envelope{ID: uuid.NewString(), From: id, Kind: acpwire.KindHello, Payload: plainJSON(hello)}
	if got := p.call(t.Context(), e); got != "hello" {
		t.Fatalf("got %q in answer to hello, want hello", got)
	}
	return p
}

// call sends an envelope and returns what the one answer to it says.
func (p *acpPeer) call(ctx context.Context, e acpwire.Envelope) string {
	x := p.calls.add(e.ID, newExchange())
	if err := p.send(ctx, e); err != nil {
		x.lost(err)
	}
	select {
	case <-x.ended:
		return x.result.End
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
		return fmt.Errorf("the hub sent an invalid envelope: %w", err)
	}
	x, call := p.asked.get(e.Ref), p.calls.get(e.Ref)
	switch {
	case call != nil && (e.Kind == acpwire.KindHello || e.Kind == acpwire.KindPong):
		call.end(outcome{End: string(e.Kind)})
		return nil
	case x == nil && call == nil:
		return nil // such as discover
	case x != nil && e.Kind == acpwire.KindProgress:
		return p.progress(x, e)
	}
	result, last, err := acpResult(e)
	switch {
	case err != nil:
		return err
	case call != nil:
		call.end(result)
	case last:
		if !p.live {
			x.reportEnvelope(e)
		}
		x.endStreamed(result)
	}
	return nil
}

// reportEnvelope records what a single envelope carries beside its text.
func (x *exchange) reportEnvelope(e acpwire.Envelope) {
	var r acpwire.Response
	var files struct{ Files []core.File }
	if e.Kind != acpwire.KindResponse || e.Read(&r) != nil {
		return
	}
	if r.TokensUsed > 0 {
		x.report("usage", "%d", r.TokensUsed)
	}
	if json.Unmarshal(r.Data, &files) == nil {
		for _, f := range files.Files {
			x.reportBody(f)
		}
	}
}

// acpContext returns the notify that injects context into the task of an earlier request.
func acpContext(from, ref, content string) acpwire.Envelope {
	return acpwire.Envelope{
		ID: uuid.NewString(), From: from, TS: time.Now().UnixMilli(), Kind: acpwire.KindNotify,
		Payload: plainJSON(acpwire.Notify{
			Topic: acpwire.TopicContext, Importance: "high", Data: plainJSON(acpwire.Context{Ref: ref, Content: content, Priority: "immediate"}),
		}),
	}
}

// inject injects context. Only a refusal is answered; the pong to a ping sent after it proves that
// there was none.
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
		return fmt.Errorf("%s: %s", refused.result.Code, refused.result.Message)
	default:
		return nil
	}
}

// endStreamed ends an exchange whose text came in chunks: the last envelope repeats at most its
// beginning.
func (x *exchange) endStreamed(result outcome) {
	x.mu.Lock()
	pieces, text := x.chunks, x.text.String()
	x.mu.Unlock()
	begins := strings.TrimSuffix(result.Text, " ...")
	if result.Code == "" && pieces > 0 && (!strings.HasPrefix(text, begins) || len(begins) > 200 && begins != text) {
		x.violates("the end repeats %d bytes of text: %.80q", len(begins), begins)
	}
	x.end(result)
}

func (p *acpPeer) progress(x *exchange, e acpwire.Envelope) error {
	var printed struct {
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
	if err := e.Read(&printed); err != nil {
		return err
	}
	of := [2]string{e.Ref, e.From}
	if printed.Seq <= p.seqs[of] {
		x.violates("progress %d of %s arrived after %d", printed.Seq, e.From, p.seqs[of])
	}
	p.seqs[of] = printed.Seq
	switch {
	case printed.Text != nil:
		x.addText(*printed.Text)
	case printed.ToolCall != nil:
		x.reportBody(core.ToolCall{Name: printed.ToolCall.Name, Input: string(printed.ToolCall.Input)})
	case printed.ToolState != nil:
		x.reportBody(*printed.ToolState)
	case printed.ToolResult != nil:
		x.reportBody(*printed.ToolResult)
	case printed.ApprovalRequested != nil:
		x.reportBody(core.ApprovalRequested{Name: printed.ApprovalRequested.Name})
	case printed.ApprovalDecided != nil:
		x.reportBody(*printed.ApprovalDecided)
	case printed.InjectionAnswered != nil:
		x.reportBody(*printed.InjectionAnswered)
	case printed.Usage != nil:
		x.reportBody(*printed.Usage)
	case printed.File != nil:
		x.reportBody(*printed.File)
	}
	return nil
}

// acpCall is a tool call in progress.
type acpCall struct {
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

func (p *acpPeer) begin(q query) *exchange {
	e := acpRequest(p.id, q)
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

// acpReconnects cuts off a query, which is cancelled, and a delegate, whose result waits for the
// peer's next connection.
func acpReconnects(t *testing.T, d *pair, connect func(*testing.T, *testHub, string) *acpPeer) string {
	const id = "phoenix"
	first := connect(t, d.testHub, id)
	defer first.leave()
	queried, x := d.startHalf(t, first, query{})
	task, y := d.startHalf(t, first, query{delegate: true})
	first.cut()
	for _, x := range []*exchange{x, y} {
		if got := x.wait(t); got.End != "lost" {
			t.Errorf("got %+v, want the connection lost", got)
		}
	}
	d.wantCancelled(t, queried)
	second := connect(t, d.testHub, id)
	defer second.leave()
	z := second.asked.add(y.id, newExchange())
	d.finish(t, task)
	want := d.asks.reported
	want.Text = firstHalf + secondHalf
	wantResult(t, z.wait(t), want)
	return "query cancelled, result kept"
}
