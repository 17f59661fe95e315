package nats

import (
	"context"
	"testing"
	"time"
)

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
	last, err := u.last(ctx)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := j.js.Stream(ctx, u.stream)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(ctx); err != nil {
		t.Fatal(err)
	}
	for _, err := range u.replay(ctx, getRequest{Seq: 1}, last, nil) {
		t.Errorf("got a message or %v, want it done: nothing is there any more", err)
	}
}
