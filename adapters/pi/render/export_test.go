package render

import "github.com/dragoman-hub/dragoman/adapters/pi/conversation"

// Part is a part of a page.
type Part = part

// Parts returns what a page shows of a message.
func Parts(m conversation.Message) []Part { return partsOf(m) }

// Ended reports whether the view has no open turn, draft, call or waiting message.
func (v *View) Ended() bool {
	return !v.turn.open && v.draft == nil && len(v.calls) == 0 && len(v.waiting) == 0
}

// BufferSize is the size of the memory that frames share.
const BufferSize = bufferSize

// Add adds a frame of about size bytes.
func (f *Frames) Add(size int, fill func([]byte) []byte) { f.add(size, fill) }

// Room returns the capacity kept for the next frames.
func (f *Frames) Room() int { return cap(f.room) }
