package e2e

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/native"
	nativeclient "github.com/dragoman-hub/dragoman/adapters/native/client"
	nativewire "github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

// nativeOverWebSocket gets every event as it is. A task ends with its connection, unless it was
// opened to be kept; then its events are read from where they were cut off.
func nativeOverWebSocket() *clientDialect {
	return nativeDialect("native WebSocket", func(t *testing.T, h *testHub) frames {
		return dialFrames(t, h.service.Addresses().HTTP, "/ws/native", client.MaxNativeBytes)
	})
}

// nativeOverStdio is the same over the bridge.
func nativeOverStdio() *clientDialect {
	return nativeDialect("native stdio", func(t *testing.T, h *testHub) frames { return runFrames(t, h, native.Dialect) })
}

func nativeDialect(name string, open func(*testing.T, *testHub) frames) *clientDialect {
	connect := func(t *testing.T, h *testHub) *nativePeer {
		f := open(t, h)
		return &nativePeer{frames: f, client: nativeclient.New(context.Background(), f, nativeclient.Options{})}
	}
	failed := func(f *core.Fault) outcome {
		return outcome{End: "failed", Code: string(f.Code), Message: f.Message, Retry: strconv.FormatBool(f.Retryable)}
	}
	return &clientDialect{
		name:    name,
		connect: func(t *testing.T, h *testHub, _ string) requester { return connect(t, h) },
		streams: true, data: true, deadlines: true, reports: allReports(),
		done: outcome{End: "done"}, failed: failed,
		refused: func(f *core.Fault) outcome {
			o := failed(f)
			o.End = "refused"
			return o
		},
		cancelled: func(reason string) outcome { return outcome{End: "cancelled", Message: reason} },
		reconnects: func(t *testing.T, d *pair) string {
			first := connect(t, d.testHub)
			defer first.leave()
			key, x := d.startHalf(t, first, query{})
			kept, y := d.startHalf(t, first, query{delegate: true})
			first.cut()
			for _, x := range []*exchange{x, y} {
				if got := x.wait(t); got.End != "lost" {
					t.Errorf("got %+v, want the connection lost", got)
				}
			}
			d.wantCancelled(t, key)
			second := connect(t, d.testHub)
			defer second.leave()
			z := newExchange()
			second.follow(z, core.Read{Task: core.TaskID(y.id)}, nativewire.With{Watch: true, After: first.cursor.String()})
			d.finish(t, kept)
			want := d.asks.done
			if want.Text, want.Chunks = secondHalf, 1; d.answers.atOnce {
				want.Text = firstHalf + secondHalf // it has sent nothing before
			}
			wantResult(t, z.wait(t), want)
			return "cancelled, kept one continued"
		},
	}
}

// nativePeer is a requester on one connection.
type nativePeer struct {
	frames frames
	client *nativeclient.Client
	cursor core.Cursor // of the latest event; the reader's own until the connection has ended
	// approval is the id of the latest approval that was requested.
	approval atomic.Value
}

// follow gives a command and ends the exchange with the task.
func (p *nativePeer) follow(x *exchange, command core.Command, with nativewire.With) {
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	v, _, err := p.client.Follow(ctx, command, with, func(told nativewire.Told) {
		p.cursor = told.Cursor
		switch b := told.Event.Body.(type) {
		case core.Text:
			x.addText(b.Text)
		case core.Done:
			x.mu.Lock()
			whole := x.chunks == 0
			x.mu.Unlock()
			if whole {
				x.addText(b.Text)
			}
			x.end(outcome{End: "done", Text: b.Text, Data: b.Data})
		case core.Failed:
			f := b.Fault
			x.end(outcome{End: "failed", Code: string(f.Code), Message: f.Message, Retry: strconv.FormatBool(f.Retryable)})
		case core.Cancelled:
			x.end(outcome{End: "cancelled", Message: b.Reason})
		case core.ApprovalRequested:
			p.approval.Store(b.ID)
			x.reportBody(b)
		default:
			x.reportBody(told.Event.Body)
		}
	})
	x.id, _ = v.Get("task").Text()
	var refused *nativewire.Refusal
	switch {
	case errors.As(err, &refused):
		f := refused.Fault
		x.end(outcome{End: "refused", Code: string(f.Code), Message: f.Message, Retry: strconv.FormatBool(f.Retryable)})
	case err != nil:
		x.lost(err)
	}
	go func() { // ends with the connection
		<-p.client.Done()
		x.lost(errors.New("the connection ended"))
	}()
}

func (p *nativePeer) begin(q query) *exchange {
	x := newExchange()
	r := core.Request{Intent: core.IntentAsk, To: core.ToAgent(core.AgentID(q.to)), Content: q.content, Data: q.data}
	if q.deadline > 0 {
		r.Deadline = time.Now().Add(q.deadline)
	}
	call := func(ctx context.Context, c core.Command) error {
		_, err := p.client.Call(ctx, c, nativewire.With{})
		return err
	}
	p.follow(x, &core.Open{Request: &r, Keep: q.delegate}, nativewire.With{})
	id := core.TaskID(x.id)
	x.cancel = func(ctx context.Context, reason string) error {
		return call(ctx, core.Cancel{Task: id, Reason: reason})
	}
	x.decide = func(ctx context.Context, approved bool) error {
		return call(ctx, core.Decide{Task: id, Decision: core.ApprovalDecided{ID: p.approval.Load().(string), Approved: approved}})
	}
	x.inject = func(ctx context.Context, content string) error {
		return call(ctx, core.Inject{Task: id, Context: core.Injected{Content: content, Priority: core.InjectionImmediate}})
	}
	return x
}

func (p *nativePeer) cut() {
	p.frames.cut()
	<-p.client.Done()
}

func (p *nativePeer) leave() { p.client.Close() }
