package peer

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
)

// A letter is a frame that arrives once and in order although connections end: it has a number, its
// sender keeps it until the other hub has it, and repeats it over the next connection.
//
// Commands, openings and news are letters. Events are not: who misses some asks for them by cursor.

// mail is what two lives have sent each other. It outlives the connections.
type mail struct {
	mu  sync.Mutex
	out outbox
	in  inbox
}

// outbox has the letters that the other hub may not have.
type outbox struct {
	letters [][]byte // with the head of their frames
	bytes   int
	last    uint64 // the number of the last letter
}

// A short letter has more room than others: so a hub that takes no long ones can be told that it misses
// them.
const (
	shortLetter = 1 << 10
	shortBytes  = 4 << 20
)

// add numbers a letter and returns its frame. It returns an overloaded Fault when the other hub has
// not taken what was sent before.
func (o *outbox) add(name string, letter []byte) ([]byte, error) {
	most := queueBytes
	if len(letter) <= shortLetter {
		most += shortBytes
	}
	if o.bytes > 0 && o.bytes+len(letter) > most {
		return nil, core.NewFault(core.CodeOverloaded, "hub %s takes no more commands now: ask again in a moment", name)
	}
	o.last++
	frame := append(binary.AppendUvarint([]byte{frameLetter}, o.last), letter...)
	o.letters = append(o.letters, frame)
	o.bytes += len(frame)
	return frame, nil
}

// drop drops the letters up to a number, which the other hub has.
func (o *outbox) drop(got uint64) {
	first := o.last - uint64(len(o.letters)) + 1
	for ; len(o.letters) > 0 && first <= got; first++ {
		o.bytes -= len(o.letters[0])
		o.letters[0] = nil
		o.letters = o.letters[1:]
	}
	if len(o.letters) == 0 {
		o.letters = nil
	}
}

// inbox knows which letters have come.
type inbox struct {
	got    uint64 // the number of the last one
	told   uint64 // what the other hub was told of that
	unsaid int    // bytes of those that it was not told of
}

// The other hub is told that letters have come when it was not told of so many, or of so many bytes.
const (
	untoldLetters = 32
	untoldBytes   = 256 << 10
)

var errLetter = errors.New("a letter without a number, or not the next one")

// take reads the number of a letter. It returns nil for one that has come before.
func (i *inbox) take(body []byte) (letter []byte, err error) {
	n, size := binary.Uvarint(body)
	switch {
	case size <= 0 || n > i.got+1:
		return nil, errLetter
	case n <= i.got:
		return nil, nil
	}
	i.got = n
	i.unsaid += len(body)
	return body[size:], nil
}

// isDue reports whether the other hub is to be told.
func (i *inbox) isDue() bool { return i.got-i.told >= untoldLetters || i.unsaid >= untoldBytes }

func (i *inbox) tell() []byte {
	i.told, i.unsaid = i.got, 0
	return binary.AppendUvarint([]byte{frameGot}, i.got)
}
