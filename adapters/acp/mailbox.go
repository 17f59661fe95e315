package acp

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// mailbox keeps what is for a peer that has no connection of its own, in order, for
// readers that come and go. It is bounded in bytes: what was read goes first, then
// the oldest that was not, which a reader learns as a gap. It is safe for
// concurrent use.
type mailbox struct {
	epoch string // tells the ids of this mailbox from those of one before
	most  int
	total *budget

	mu      sync.Mutex
	letters []letter // those kept; the first has the number first
	first   uint64
	unread  uint64 // the number of the first that nobody has read
	bytes   int
	closed  bool
	changed chan struct{} // closed with the next change
}

// letter is an envelope in a mailbox.
type letter struct {
	message
	number uint64 // from 1
	charge int    // what it counts for in bytes
}

// leastCharge is what the smallest letter counts for, and one that was reclaimed, so
// that a bound in bytes also bounds how many there are.
const leastCharge = 64

// budget bounds the bytes of several mailboxes together.
type budget struct {
	most int64
	used atomic.Int64
}

func newMailbox(most int, total *budget) *mailbox {
	return &mailbox{epoch: rand.Text()[:8], most: most, total: total, first: 1, unread: 1, changed: make(chan struct{})}
}

// put adds an envelope. It never waits.
func (b *mailbox) put(m message) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		if m.lost != nil {
			m.lost()
		}
		return
	}
	charge := max(len(m.json), leastCharge)
	b.letters = append(b.letters, letter{m, b.first + uint64(len(b.letters)), charge})
	b.bytes += charge
	b.total.used.Add(int64(charge))
	var lost []func()
	for len(b.letters) > 1 && (b.bytes > b.most || b.total.used.Load() > b.total.most) {
		lost = b.dropLocked(lost)
	}
	b.announceLocked()
	b.mu.Unlock()
	for _, f := range lost {
		f()
	}
}

// dropLocked forgets the oldest letter.
func (b *mailbox) dropLocked(lost []func()) []func() {
	l := b.letters[0]
	b.letters[0] = letter{}
	b.letters = b.letters[1:]
	b.first++
	b.bytes -= l.charge
	b.total.used.Add(-int64(l.charge))
	if l.number >= b.unread {
		b.unread = l.number + 1
		if l.lost != nil {
			lost = append(lost, l.lost)
		}
	}
	return lost
}

// reclaim takes the results back that nobody has read. Their numbers stay taken.
func (b *mailbox) reclaim() []owing {
	b.mu.Lock()
	defer b.mu.Unlock()
	var due []owing
	for i := range b.letters {
		l := &b.letters[i]
		if l.number < b.unread || l.owed == nil {
			continue
		}
		due = append(due, *l.owed)
		b.bytes -= l.charge - leastCharge
		b.total.used.Add(-int64(l.charge - leastCharge))
		l.message, l.charge = message{}, leastCharge
	}
	return due
}

func (b *mailbox) announceLocked() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// after returns the letters behind a number, and how many between are gone. When
// there are none, changed is closed as soon as there may be; a closed mailbox
// yields nil then.
func (b *mailbox) after(number uint64) (letters []letter, missed uint64, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if number+1 < b.first {
		missed = b.first - number - 1
		number = b.first - 1
	}
	if i := number + 1 - b.first; i < uint64(len(b.letters)) {
		letters = append(letters, b.letters[i:]...)
	}
	if b.closed {
		return letters, missed, nil
	}
	return letters, missed, b.changed
}

// read notes that the peer's transport took a letter.
func (b *mailbox) read(l letter) {
	b.mu.Lock()
	first := l.number >= b.unread
	if first {
		b.unread = l.number + 1
	}
	b.mu.Unlock()
	if first && l.sent != nil {
		l.sent()
	}
}

// resume returns behind which number a reader goes on: behind the event that it
// names, or before what nobody has read. What it names may be of a mailbox that is
// no longer there; then it cannot be known what it missed.
func (b *mailbox) resume(lastEventID string) (number uint64, unknown bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if lastEventID == "" {
		return b.unread - 1, false
	}
	epoch, digits, _ := strings.Cut(lastEventID, "-")
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || epoch != b.epoch || n >= b.first+uint64(len(b.letters)) {
		return b.unread - 1, true
	}
	return n, false
}

// eventID names a letter to its reader.
func (b *mailbox) eventID(number uint64) string { return fmt.Sprintf("%s-%d", b.epoch, number) }

// close ends the mailbox. Its readers get what is in it first; what they do not
// read by then is lost.
func (b *mailbox) close() {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return
	}
	b.closed = true
	b.announceLocked()
	b.mu.Unlock()
}

// discard forgets what is in a mailbox that was closed.
func (b *mailbox) discard() {
	b.mu.Lock()
	var lost []func()
	for len(b.letters) > 0 {
		lost = b.dropLocked(lost)
	}
	b.mu.Unlock()
	for _, f := range lost {
		f()
	}
}
