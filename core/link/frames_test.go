package link_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/link"
)

// What a link does not queue is no frame: neither what comes after its end nor what waits for room in
// vain. What waits is one in its place in the queue.
func TestOnlyWhatIsQueuedIsAFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := frame.NewBook(frame.Options{Keep: 1 << 20})
		ring := b.Connect("test", nil)
		server, client := coretest.Pipe[[]byte, []byte](0)
		l := link.New(server, link.Options{QueueBytes: 100, Frames: ring})
		told := func(ctx context.Context) context.Context { return ring.Telling(ctx, "t", true, core.KindText) }
		send := func(ctx context.Context, text string) error { return l.Send(told(ctx), []byte(text), 90) }
		if err := send(t.Context(), `"first"`); err != nil {
			t.Fatal(err)
		}
		waits, stop := context.WithCancel(t.Context())
		gaveUp, admitted := make(chan error, 1), make(chan error, 1)
		go func() { gaveUp <- send(waits, `"gave up"`) }()
		synctest.Wait()
		go func() { admitted <- send(t.Context(), `"second"`) }()
		synctest.Wait()
		wantFrames(t, b, `"first"`)
		stop()
		if err := <-gaveUp; err == nil {
			t.Error("got no error, want that of the context")
		}
		ended := make(chan link.Reason, 1)
		go func() { ended <- l.Run(t.Context(), func(context.Context, []byte) error { return nil }, nil) }()
		for range 2 {
			if _, err := client.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-admitted; err != nil {
			t.Fatal(err)
		}
		wantFrames(t, b, `"first"`, `"second"`)
		l.Close(link.Reason{Cause: link.Normal})
		<-ended
		if err := send(t.Context(), `"never sent"`); err == nil {
			t.Error("got no error, want that the link is closed")
		}
		wantFrames(t, b, `"first"`, `"second"`)
	})
}

func wantFrames(t *testing.T, b *frame.Book, want ...string) {
	t.Helper()
	all := b.Of("t")
	if len(all) != len(want) {
		t.Fatalf("got %d frames, want %q", len(all), want)
	}
	for i, f := range all {
		if string(f.Frame) != want[i] {
			t.Errorf("got %s as frame %d, want %s", f.Frame, i, want[i])
		}
	}
}
