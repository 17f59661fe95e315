package frame_test

import (
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/memory"
)

func TestATurnTellsWhatTheMessagesOfItsAgentBecame(t *testing.T) {
	b := book(1<<20, nil)
	r := b.Connect("d", nil)
	one, other := r.Turn("t", nil), r.Turn("u", nil)
	ctx := t.Context()
	r.Queued(one.Telling(ctx, core.KindOpened), []byte(`"prompt"`))
	r.Queued(one.Telling(frame.Reading(ctx), 0), []byte(`"beside"`))
	r.Queued(ctx, []byte(`"of no task"`))
	var first, second, his frame.Incoming
	receive(r, `"first"`, func() { first = one.Take() })
	receive(r, `"second"`, func() { second = one.Take() })
	receive(r, `"his"`, func() { his = other.Take() })
	one.Reported(core.KindText, false) // of no message
	other.Begin(his)
	one.Begin(first)
	one.Reported(core.KindThinking, false)
	one.Reported(core.KindText, false)
	one.Reported(core.KindText, false)
	one.Begin(second)
	other.Reported(core.KindText, false)
	one.Reported(core.KindText, true)
	one.Begin(frame.Incoming{})
	one.Reported(core.KindDone, false)
	want(t, b, "t", `out "prompt" opened=native`, `out "beside"`, `in "first" thinking=synthesised text=native`, `in "second" text=refused`)
	want(t, b, "u", `in "his" text=native`)
}

func TestATurnKeepsWhatAConnectionWithoutALinkSaid(t *testing.T) {
	b := book(1<<20, nil)
	r := b.Connect("d", nil)
	of, beside := r.Turn("t", nil), r.Turn("t", nil)
	ctx := of.With(t.Context())
	frame.TurnOf(ctx).Sent(of.Telling(ctx, core.KindOpened), time.Now(), []byte(`"request"`))
	frame.TurnOf(ctx).Sent(ctx, time.Now(), nil)
	frame.TurnOf(ctx).Received([]byte(`"item"`))
	beside.Received([]byte(`"answer"`))
	of.Reported(core.KindText, false)
	of.BeginAs(beside)
	of.Reported(core.KindDone, false)
	want(t, b, "t", `out "request" opened=native`, `in "item" text=native`, `in "answer" done=native`)
}

func TestATurnWithoutARingDoesNothing(t *testing.T) {
	var r *frame.Ring
	none := r.Turn("t", nil)
	ctx := t.Context()
	if none != nil || frame.TurnOf(ctx) != nil || none.With(ctx) != ctx || none.Telling(ctx, core.KindText) != ctx {
		t.Error("got something, want nil and the context itself")
	}
	message := []byte("x")
	allocations := testing.AllocsPerRun(100, func() {
		frame.TurnOf(ctx).Sent(ctx, time.Time{}, message)
		none.Received(message)
		none.Begin(none.Take())
		none.BeginAs(nil)
		none.Reported(core.KindText, false)
	})
	if allocations != 0 {
		t.Errorf("got %v allocations, want none", allocations)
	}
	r.Reopen()
}

func TestAMessageBecomesWhatItIsAfterItsReaderHasGoneOn(t *testing.T) {
	b := book(1<<20, nil)
	r := b.Connect("d", nil)
	var first, second *frame.Message
	receive(r, `"first"`, func() { first = r.Later() })
	receive(r, `"second"`, func() { second = r.Later() })
	receive(r, `"third"`, func() { first.Event("t", false, core.KindOpened, 0, false) })
	first.Event("t", false, core.KindInjected, 0, true)
	first.Event("t", false, core.KindInjected, 0, true)
	second.Event("", false, core.KindOpened, 0, false)
	want(t, b, "t", `in "first" opened=folded injected=refused`)
	(*frame.Ring)(nil).Later().Event("t", false, core.KindOpened, 0, false)
}

func TestWhatFramesBecameStaysWithinTheRing(t *testing.T) {
	m := memory.New(0)
	b := book(2000, m)
	r := b.Connect("d", nil)
	of := r.Turn("t", nil)
	for range 100 {
		of.Received([]byte(`"x"`))
		for k := core.Kind(1); k < 40; k++ {
			of.Reported(k, false)
		}
	}
	if held := m.HeldAs(memory.Frames); held > 2000+768+40*128 {
		t.Errorf("got %d bytes held, want at most those of the ring and what the latest frame became", held)
	}
	r.Close()
	before := m.HeldAs(memory.Frames)
	of.Reported(core.KindDone, true)
	of.Received([]byte(`"late"`))
	if held := m.HeldAs(memory.Frames); held != before {
		t.Errorf("after the end: got %d bytes held, want the %d of before", held, before)
	}
}

func TestARingGoesOnWithTheNextConnectionOfItsSession(t *testing.T) {
	m := memory.New(0)
	b := book(2000, m)
	r := b.Connect("d", nil)
	say := func(message string) { r.Turn("t", nil).Received([]byte(message)) }
	r.Reopen() // before the first
	say(`1`)
	r.Close()
	say(`"nobody is connected"`)
	r.Reopen()
	say(`2`)
	want(t, b, "t", `in 1`, `in 2`)
	r.Close()
	for range 100 { // others make it give way
		o := b.Connect("d", nil)
		for range 20 {
			o.Turn("u", nil).Received([]byte(`"x"`))
		}
		o.Close()
	}
	want(t, b, "t")
	r.Reopen()
	say(`3`)
	want(t, b, "t", `in 3`)
	r.Close()
	if held := m.HeldAs(memory.Frames); held > 17*(2000+768) {
		t.Errorf("got %d bytes held, want at most those of 16 connections", held)
	}
}
