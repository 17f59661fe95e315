package frame_test

import (
	"bytes"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/memory"
)

func TestALongStreamCountsOnlyWhatIsKeptOfIt(t *testing.T) {
	budget := memory.New(1 << 30)
	b := book(64<<10, budget)
	x := b.Exchange("d", nil)
	x.Requested([]byte(`{"ask":1}`))
	frame.RingOf(x.With(t.Context())).Event("t", false, core.KindOpened, 1, false)
	line := append(bytes.Repeat([]byte("1"), 1<<10), '\n')
	most := int64(0)
	for range 2000 {
		x.Answered(line)
		x.Split(func(text []byte) (lines [][]byte, rest []byte) {
			for l := range bytes.Lines(text) {
				lines = append(lines, bytes.TrimSpace(l))
			}
			return lines, nil
		})
		most = max(most, budget.HeldAs(memory.Frames))
	}
	if most < 32<<10 || most > 256<<10 {
		t.Errorf("got %d bytes counted at most for a stream of 2 MB of which 64 KiB are kept", most)
	}
	x.End()
	if got := len(b.Of("t")); got < 10 || got > 65 {
		t.Errorf("got %d frames, want those that fit", got)
	}
}
