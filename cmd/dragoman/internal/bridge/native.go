package bridge

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	nativewire "github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// NativePath is the path of the native dialect at a hub.
const NativePath = "/ws/native"

// RunNative passes the frames of a child, which speaks the native dialect, and of a hub on to
// each other. The child joins by itself; what the card says comes before what it says. joined is
// called once the hub has accepted it. RunNative returns when the child has ended (nil) or the
// hub is lost, both connections closed by then.
func RunNative(ctx context.Context, child, remote link.Conn[[]byte, []byte], card core.Card, joined func()) error {
	b := &nativeBridge{up: link.New(remote, client.LinkOptions), down: link.New(child, link.Options{}), card: card, joined: joined}
	var end link.Reason
	var group sync.WaitGroup
	group.Go(func() {
		end = b.up.Run(ctx, b.fromHub, nil)
		b.down.Close(link.Reason{Cause: link.Normal, Text: "the hub has gone"})
	})
	b.down.Run(ctx, b.fromChild, func(ctx context.Context, r *link.Reject) error {
		return b.refuse(ctx, core.NewFault(core.CodeTooLarge, "%s", r.Text))
	})
	b.up.Close(link.Reason{Cause: link.Normal})
	group.Wait()
	if end.Cause == link.Normal || end.Cause == link.ShuttingDown {
		return nil
	}
	return &end
}

// nativeBridge is the state of one RunNative.
type nativeBridge struct {
	up, down *link.Link[[]byte, []byte]
	card     core.Card
	joined   func()
	join     atomic.Pointer[string] // the id of the latest join that is not answered; nil for none
}

// fromChild passes on a line of the child, with the card in its join.
func (b *nativeBridge) fromChild(ctx context.Context, line []byte) error {
	switch {
	case len(line) == 0:
		return nil
	case !utf8.Valid(line):
		return b.refuse(ctx, core.NewFault(core.CodeInvalid, "the line is not UTF-8"))
	case bytes.Contains(line, []byte(`"join"`)):
		f, err := nativewire.Decode(line, MaxLine)
		call, isCall := f.(nativewire.Call)
		if err != nil || !isCall {
			break // the hub says what is wrong
		}
		if said, ok := call.Command.(core.Join); ok {
			call.Command = core.Join{Card: nativewire.Supervise(b.card, said.Card)}
			if line, err = nativewire.EncodeCall(call); err != nil {
				return err
			}
			b.join.Store(&call.ID)
		}
	}
	return b.up.Send(ctx, line, len(line))
}

// fromHub passes on a frame of the hub.
func (b *nativeBridge) fromHub(ctx context.Context, frame []byte) error {
	if id := b.join.Load(); id != nil {
		kind, v, err := nativewire.DecodeHub(frame)
		if answered, _ := v.Get("id").Text(); err == nil && kind == "result" && answered == *id {
			b.join.Store(nil)
			b.joined()
		}
	}
	return b.down.Send(ctx, frame, len(frame))
}

// refuse tells the child that a line of it was not passed on.
func (b *nativeBridge) refuse(ctx context.Context, why *core.Fault) error {
	frame, err := nativewire.Encode("error", nativewire.Refusal{Fault: why})
	if err != nil {
		return err
	}
	return b.down.Send(ctx, frame, len(frame))
}
