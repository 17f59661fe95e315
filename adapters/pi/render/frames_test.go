package render_test

import (
	"bytes"
	"context"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Every frame is sent unchanged, however far the transport lags behind.
func TestABufferIsNotReusedBeforeItsFramesAreSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hubs, clients := coretest.Pipe[[]byte, []byte](rapid.IntRange(0, 3).Draw(t, "ahead"))
		l := link.New(hubs, link.Options{QueueBytes: rapid.SampledFrom([]int{1 << 10, 64 << 10}).Draw(t, "queue")})
		var all sync.WaitGroup
		all.Go(func() { l.Run(context.Background(), nil, nil) })
		var got [][]byte
		all.Go(func() {
			for {
				b, err := clients.Receive(context.Background())
				if err != nil {
					return
				}
				got = append(got, b)
			}
		})
		var f render.Frames
		var want [][]byte
		for range rapid.IntRange(1, 30).Draw(t, "batches") {
			for _, size := range rapid.SliceOfN(rapid.SampledFrom([]int{1, 300, 1000, render.BufferSize, 3 * render.BufferSize}), 0, 8).Draw(t, "sizes") {
				frame := bytes.Repeat(strconv.AppendInt(nil, int64(len(want)), 10), size)[:size]
				f.Add(rapid.SampledFrom([]int{0, size / 2, size, 2 * size}).Draw(t, "about"), func(dst []byte) []byte { return append(dst, frame...) })
				want = append(want, frame)
			}
			if !f.Send(context.Background(), l) {
				t.Fatal("got a closed link, want it open")
			}
		}
		l.Close(link.Reason{Cause: link.Normal})
		all.Wait()
		if len(got) != len(want) {
			t.Fatalf("got %d frames, want %d", len(got), len(want))
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("frame %d: got %.40q, want %.40q", i, got[i], want[i])
			}
		}
	})
}

func TestAtMostOneBufferIsKeptAfterSending(t *testing.T) {
	hubs, _ := coretest.Pipe[[]byte, []byte](1)
	l := link.New(hubs, link.Options{})
	var f render.Frames
	for _, size := range []int{100, 2 * render.BufferSize, 100, 100 * render.BufferSize} {
		f.Add(size, func(dst []byte) []byte { return append(dst, make([]byte, size)...) })
		if !f.Send(t.Context(), l) {
			t.Fatal("got a closed link, want it open")
		}
		if got := f.Room(); got > render.BufferSize {
			t.Errorf("after a frame of %d bytes: got %d bytes kept, want at most %d", size, got, render.BufferSize)
		}
	}
}
