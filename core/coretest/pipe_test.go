package coretest_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

var (
	_ link.Conn[int, string] = (*coretest.End[int, string])(nil)
	_ link.Pinger            = (*coretest.End[int, string])(nil)
	_ link.Conn[int, string] = (*coretest.Faulty[int, string])(nil)
	_ link.Pinger            = (*coretest.Faulty[int, string])(nil)
)

func TestAPipeCarriesMessagesBothWaysInOrder(t *testing.T) {
	a, b := coretest.Pipe[int, string](2)
	ctx := t.Context()
	for _, s := range []string{"one", "two"} {
		if err := a.Send(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Send(ctx, 3); err != nil {
		t.Fatal(err)
	}
	one, _ := b.Receive(ctx)
	two, _ := b.Receive(ctx)
	three, _ := a.Receive(ctx)
	if one != "one" || two != "two" || three != 3 {
		t.Errorf("received: got %q, %q and %d, want one, two and 3", one, two, three)
	}
}

func TestAFullPipeHoldsTheSenderUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := coretest.Pipe[int, string](1)
		_ = a.Send(t.Context(), "one")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.Send(ctx, "two"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Send to a full pipe: got %v, want its deadline", err)
		}
	})
}

func TestWhatWasSentBeforeTheCloseIsReceivedAndThenItsReason(t *testing.T) {
	slow := link.Because(link.Slow, "too slow")
	for _, tt := range []struct {
		reason link.Reason
		want   func(error) bool
	}{
		{link.Reason{Cause: link.Normal}, func(err error) bool { return errors.Is(err, io.EOF) }},
		{link.Reason{Cause: link.ShuttingDown}, func(err error) bool { return errors.Is(err, io.EOF) }},
		{link.Reason{Cause: link.PeerGone}, func(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }},
		{*slow, func(err error) bool { var r *link.Reason; return errors.As(err, &r) && *r == *slow }},
	} {
		t.Run(tt.reason.Cause.String(), func(t *testing.T) {
			a, b := coretest.Pipe[int, string](1)
			_ = a.Send(t.Context(), "last")
			_ = a.Close(tt.reason)
			_ = a.Close(link.Reason{Cause: link.Internal})
			if got, err := b.Receive(t.Context()); got != "last" || err != nil {
				t.Errorf("first Receive: got %q %v, want what was sent before the close", got, err)
			}
			if _, err := b.Receive(t.Context()); !tt.want(err) {
				t.Errorf("second Receive: got %v, want the end that means %v", err, &tt.reason)
			}
			if err := b.Send(t.Context(), 1); !tt.want(err) {
				t.Errorf("Send: got %v, want the end that means %v", err, &tt.reason)
			}
			if got := a.Reason(); got != tt.reason {
				t.Errorf("Reason: got %v, want the first, %v", &got, &tt.reason)
			}
		})
	}
}

func TestClosingAnEndWakesItsOwnCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := coretest.Pipe[int, string](0)
		errs := make(chan error, 3)
		go func() { _, err := a.Receive(context.Background()); errs <- err }()
		go func() { errs <- a.Send(context.Background(), "nobody takes it") }()
		go func() { errs <- a.Ping(context.Background()) }()
		synctest.Wait()
		_ = a.Close(link.Reason{Cause: link.Normal})
		for range 3 {
			if err := <-errs; !errors.Is(err, net.ErrClosed) {
				t.Errorf("a call that was under way: got %v, want that it is closed", err)
			}
		}
	})
}

func TestAPingIsAnsweredOnlyByAnEndThatReceives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := coretest.Pipe[int, string](0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.Ping(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Ping of an end that does not receive: got %v, want its deadline", err)
		}
		go func() { _, _ = b.Receive(t.Context()) }()
		if err := a.Ping(t.Context()); err != nil {
			t.Errorf("Ping of an end that receives: got %v, want an answer", err)
		}
		_ = a.Close(link.Reason{})
	})
}
