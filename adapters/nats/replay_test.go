package nats

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// aged is a stream whose messages grow too old as soon as it was looked at.
type aged struct {
	jetstream.Stream
	looked bool
}

func (a *aged) Info(ctx context.Context, opts ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	info, err := a.Stream.Info(ctx, opts...)
	if err == nil && !a.looked {
		a.looked = true
		err = a.Purge(ctx)
	}
	return info, err
}

func TestAReplayDoesNotWaitForWhatGrewTooOldMeanwhile(t *testing.T) {
	j, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	u := j.Usage()
	for range 3 {
		if _, err := j.js.Publish(t.Context(), u.subject, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = j.replay(ctx, &aged{Stream: u.stream}, 1, "the usage", func(message) (bool, error) {
		t.Error("got a message, want none")
		return false, nil
	})
	if err != nil {
		t.Errorf("got %v, want it done: nothing is there any more", err)
	}
}
