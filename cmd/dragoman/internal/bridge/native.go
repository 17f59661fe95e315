package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	nativewire "github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/agent"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	coreagent "github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/link"
)

// NativePath is the path of the native dialect at a hub.
const NativePath = "/ws/native"

// RunNative passes the frames of a process, which speaks the native dialect, and of a hub on to
// each other. The process joins by itself; what the card says comes before what it says. joined
// is called whenever the hub has accepted it. RunNative returns why it ended, both connections
// closed by then: a *[agent.HubEnd] if the hub has ended it, else the end of the process. What
// the hub refuses is logged, as the process may not say it. ctx may carry a [coreagent.Leave].
func RunNative(ctx context.Context, process, remote link.Conn[[]byte, []byte], card core.Card, joined func(), log *slog.Logger) error {
	b := &nativeBridge{up: link.New(remote, client.LinkOptions), down: link.New(process, link.Options{}), card: card, joined: joined, noise: coreagent.NewNoise(log, nil)}
	b.silent = time.AfterFunc(client.ResponseTimeout, func() {
		b.up.Close(link.Reason{Cause: link.Protocol, Text: client.ErrNotAccepted.Error(), Err: client.ErrNotAccepted})
	})
	b.held = held{leave: coreagent.LeaveOf(ctx), begun: map[core.TaskID]bool{}}
	defer b.held.drop()
	defer b.held.leave.Connected(func() { b.takeNothing(ctx) }, func() { _ = b.up.Drain(ctx) })()
	defer b.silent.Stop()
	var hubEnd link.Reason
	var group sync.WaitGroup
	group.Go(func() {
		hubEnd = b.up.Run(ctx, b.fromHub, nil)
		b.down.Close(*hubGone)
	})
	end := b.down.Run(ctx, b.fromProcess, func(ctx context.Context, r *link.Reject) error {
		return b.refuse(ctx, core.NewFault(core.CodeTooLarge, "%s", r.Text))
	})
	b.up.Close(link.Reason{Cause: link.Normal})
	group.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case b.fatal || b.final():
		return &agent.HubEnd{Err: errors.New(b.refused.Message), Final: b.final()}
	case errors.Is(hubEnd.Err, client.ErrNotAccepted):
		return &agent.HubEnd{Err: client.ErrNotAccepted, Final: true}
	case errors.Is(end.Err, hubGone.Err):
		return &agent.HubEnd{Err: &hubEnd}
	case b.refused != nil:
		return fmt.Errorf("the hub refused its join (%s); %w", b.refused.Message, &end)
	}
	return &end
}

// hubGone is why the connection of the process is closed when that of the hub has ended.
var hubGone = &link.Reason{Cause: link.Normal, Text: "the hub has gone", Err: errors.New("the hub has gone")}

// unwanted are the codes of a hub that does not want an agent, however often it comes.
var unwanted = []core.Code{core.CodeConflict, core.CodeNotAuthorized, core.CodeUnauthenticated}

// nativeBridge is the state of one RunNative.
type nativeBridge struct {
	up, down *link.Link[[]byte, []byte]
	card     core.Card
	joined   func()
	silent   *time.Timer            // fires unless the hub says something
	join     atomic.Pointer[string] // the id of the latest join that is not answered; nil for none

	// Used by the reader of the hub, and read once it has ended.
	refused *core.Fault // why the hub refused the latest join, or ended the connection
	fatal   bool        // it ended the connection

	noise *coreagent.Noise
	held  held
}

// final reports whether the hub does not want the agent.
func (b *nativeBridge) final() bool {
	return b.refused != nil && slices.Contains(unwanted, b.refused.Code)
}

// fromProcess passes on a line of the process, with the card in its join.
func (b *nativeBridge) fromProcess(ctx context.Context, line []byte) error {
	switch {
	case len(line) == 0:
		return nil
	case !utf8.Valid(line):
		return b.refuse(ctx, core.NewFault(core.CodeInvalid, "the line is not UTF-8; it begins with %s", nativewire.Excerpt(line)))
	case line[0] != '{' && !bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{")): // the hub need not see it
		return b.refuse(ctx, core.NewFault(core.CodeInvalid, "a line of stdout is no frame: write logs to stderr; it begins with %s", nativewire.Excerpt(line)))
	case bytes.Contains(line, []byte(`"join"`)):
		f, err := nativewire.Decode(line, MaxLine)
		var r *nativewire.Refusal
		if errors.As(err, &r) && r.Fault.Code == core.CodeInvalid { // the card has no place in it
			return b.answer(ctx, *r)
		}
		call, isCall := f.(nativewire.Call)
		if err != nil || !isCall {
			break // perhaps the hub knows more
		}
		if said, ok := call.Command.(core.Join); ok {
			call.Command = core.Join{Card: nativewire.Supervise(b.card, said.Card)}
			if line, err = nativewire.EncodeCall(call); err != nil {
				return err
			}
			b.join.Store(&call.ID)
		}
	}
	if b.up.Send(ctx, line, len(line)) != nil {
		return hubGone
	}
	b.held.fromProcess(line)
	return nil
}

// fromHub passes on a frame of the hub.
func (b *nativeBridge) fromHub(ctx context.Context, frame []byte) error {
	b.silent.Stop()
	id := b.join.Load()
	if id != nil || bytes.HasPrefix(frame, []byte(`{"error"`)) {
		b.note(frame, id)
	}
	if task, refused := b.held.fromHub(frame); refused != nil {
		report, err := nativewire.AppendReport(nil, nativewire.Event{Task: task, Body: core.Failed{Fault: refused}})
		if err == nil {
			err = b.up.Send(ctx, report, len(report))
		}
		return err
	}
	if err := b.down.Send(ctx, frame, len(frame)); err != nil {
		return link.Because(link.Normal, "the process has ended")
	}
	if b.final() {
		return link.Because(link.Normal, "%s", b.refused.Message)
	}
	return nil
}

// note notes how the hub answers a join, whose id is join or nil, and what it refuses. A frame
// that cannot be read is for the process to judge.
func (b *nativeBridge) note(frame []byte, join *string) {
	kind, v, err := nativewire.DecodeHub(frame)
	if err != nil {
		return
	}
	id, _ := v.Get("id").Text()
	answered := join != nil && id == *join && b.join.CompareAndSwap(join, nil)
	switch kind {
	case "result":
		if answered {
			b.refused = nil
			b.joined()
		}
	case "error":
		var r nativewire.Refusal
		if v.Decode(&r) != nil || r.Fault == nil {
			return
		}
		if r.Fatal || answered {
			b.refused, b.fatal = r.Fault, r.Fatal
			if r.Fatal || b.final() {
				return // RunNative returns it
			}
		}
		b.warn("the hub refused what the agent said", r.Fault)
	}
}

// takeNothing tells the hub that the agent finishes its tasks and takes no others.
func (b *nativeBridge) takeNothing(ctx context.Context) {
	if frame, err := nativewire.Encode("load", nativewire.Load{State: core.LoadDraining}); err == nil {
		_ = b.up.Send(ctx, frame, len(frame)) // or the connection has ended
	}
}

func (b *nativeBridge) warn(message string, why *core.Fault) {
	b.noise.Skip("", message, "agent", b.card.ID, "code", why.Code, "why", why.Message)
}

// refuse tells the process that a line of it was not passed on.
func (b *nativeBridge) refuse(ctx context.Context, why *core.Fault) error {
	return b.answer(ctx, nativewire.Refusal{Fault: why})
}

// answer is refuse for a line whose names are known.
func (b *nativeBridge) answer(ctx context.Context, r nativewire.Refusal) error {
	b.warn("a line of the agent was skipped", r.Fault)
	frame, err := nativewire.Encode("error", r)
	if err != nil {
		return err
	}
	return b.down.Send(ctx, frame, len(frame))
}
