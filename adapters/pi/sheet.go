package pi

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/dragoman-hub/dragoman/core/link"
)

// sheet is memory for frames. It is written on anew once a transport has taken all that
// stands on it: else most of the memory that a question costs would be frames.
type sheet struct {
	room []byte
	// holders are who writes on it, and every frame that a link is to say of that it was
	// sent: with the last of them the sheet is free. One that a link never sends is left
	// to the garbage collector, as its frames are.
	holders atomic.Int32
	letGo   func() // by one holder
}

var sheets sync.Pool

// spareFrames is for how many frames there is room between two batches.
const spareFrames = 256

// blankSheet returns a sheet that one writes on.
func blankSheet() *sheet {
	s, _ := sheets.Get().(*sheet)
	if s == nil {
		s = &sheet{room: make([]byte, 0, framesRoom)}
		s.letGo = func() {
			if s.holders.Add(-1) == 0 {
				sheets.Put(s)
			}
		}
	}
	s.holders.Store(1)
	return s
}

// end is the last frame on a sheet so far: its place among those that are to be sent.
type end struct {
	at    int
	sheet *sheet
}

// turn turns to room for a frame of about size bytes.
func (f *frames) turn(size int) {
	if f.sheet != nil {
		f.hold()
		f.sheet.letGo()
		f.sheet = nil
	}
	if !f.lends || size > framesRoom {
		f.room = make([]byte, 0, max(size, framesRoom))
		return
	}
	f.sheet = blankSheet()
	f.room = f.sheet.room
}

// hold lets the frames in list hold the sheet until they were sent.
func (f *frames) hold() {
	if f.sheet != nil && len(f.list) > 0 {
		f.sheet.holders.Add(1)
		f.ends = append(f.ends, end{len(f.list) - 1, f.sheet})
	}
}

// anew begins at the top of the sheet again if nobody else holds it.
func (f *frames) anew() {
	if f.sheet != nil && f.sheet.holders.Load() == 1 {
		f.room = f.sheet.room
	}
}

// send sends the frames over the link, in order, and forgets them. It waits while the link
// is full, and reports false once that is closed.
func (f *frames) send(ctx context.Context, l *link.Link[[]byte, []byte]) bool {
	f.hold()
	ends := f.ends
	for i, b := range f.list {
		var sent func()
		if len(ends) > 0 && ends[0].at == i {
			sent, ends = ends[0].sheet.letGo, ends[1:]
		}
		if l.SendThen(ctx, b, len(b), sent) != nil {
			return false
		}
	}
	if f.sheet == nil {
		f.room = nil // of a frame too large for a sheet
	}
	clear(f.list)
	clear(f.ends)
	if f.list, f.ends = f.list[:0], f.ends[:0]; cap(f.list) > spareFrames {
		f.list, f.ends = nil, nil
	}
	return true
}
