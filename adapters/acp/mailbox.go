package acp

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dragoman-hub/dragoman/core"
)

// mailbox keeps the envelopes for a peer without a connection, in order, for readers that
// come and go. It is bounded in bytes: items that were read are dropped first, then the
// oldest unread ones, which a reader sees as a gap. It is safe for concurrent use.
type mailbox struct {
	epoch string // distinguishes the event ids of this mailbox from those of an earlier one
	limit int
	total *budget

	mu      sync.Mutex
	items   []item // the first has the number first
	first   uint64
	unread  uint64 // the number of the first unread item
	bytes   int
	closed  bool
	changed chan struct{} // closed with the next change
}

// item is an envelope in a mailbox.
type item struct {
	message
	number uint64 // from 1
	charge int    // the bytes that it is charged
}

// minCharge is the least that an item is charged, and one that was reclaimed, so that the
// bound in bytes also bounds the number of items.
const minCharge = 64

// budget bounds the bytes of several mailboxes together.
type budget struct {
	limit int64
	used  atomic.Int64
}

func newMailbox(most int, total *budget) *mailbox {
	return &mailbox{epoch: rand.Text()[:8], limit: most, total: total, first: 1, unread: 1, changed: make(chan struct{})}
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
	charge := max(len(m.json), minCharge)
	b.items = append(b.items, item{m, b.first + uint64(len(b.items)), charge})
	b.bytes += charge
	b.total.used.Add(int64(charge))
	var lost []func()
	for len(b.items) > 1 && (b.bytes > b.limit || b.total.used.Load() > b.total.limit) {
		lost = b.dropLocked(lost)
	}
	b.announceLocked()
	b.mu.Unlock()
	for _, f := range lost {
		f()
	}
}

// dropLocked drops the oldest item. It appends the function to call if that is lost.
func (b *mailbox) dropLocked(lost []func()) []func() {
	it := b.items[0]
	b.items[0] = item{}
	b.items = b.items[1:]
	b.first++
	b.bytes -= it.charge
	b.total.used.Add(-int64(it.charge))
	if it.number >= b.unread {
		b.unread = it.number + 1
		if it.lost != nil {
			lost = append(lost, it.lost)
		}
	}
	return lost
}

// owed returns the unread results.
func (b *mailbox) owed() (due []pendingResult) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, it := range b.items {
		if it.number >= b.unread && it.result != nil {
			due = append(due, *it.result)
		}
	}
	return due
}

// reclaim removes the unread results of some tasks and returns them. Their numbers are not used
// again.
func (b *mailbox) reclaim(of func(core.TaskID) bool) []pendingResult {
	b.mu.Lock()
	defer b.mu.Unlock()
	var due []pendingResult
	for i := range b.items {
		it := &b.items[i]
		if it.number < b.unread || it.result == nil || !of(it.result.task) {
			continue
		}
		due = append(due, *it.result)
		b.bytes -= it.charge - minCharge
		b.total.used.Add(-int64(it.charge - minCharge))
		it.message, it.charge = message{}, minCharge
	}
	return due
}

func (b *mailbox) announceLocked() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// after returns the items after a number, and how many of them were dropped. changed is
// closed with the next change, and nil once the mailbox is closed.
func (b *mailbox) after(number uint64) (items []item, missed uint64, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if number+1 < b.first {
		missed = b.first - number - 1
		number = b.first - 1
	}
	if i := number + 1 - b.first; i < uint64(len(b.items)) {
		items = append(items, b.items[i:]...)
	}
	if b.closed {
		return items, missed, nil
	}
	return items, missed, b.changed
}

// read notes that the peer's transport took a item.
func (b *mailbox) read(it item) {
	b.mu.Lock()
	first := it.number >= b.unread
	if first {
		b.unread = it.number + 1
	}
	b.mu.Unlock()
	if first && it.sent != nil {
		it.sent()
	}
}

// resume returns the number after which a reader continues: that of the event that it
// names, or of the last one read. unknown is set when the event is of an earlier mailbox,
// so that the number of missed events is not known.
func (b *mailbox) resume(lastEventID string) (number uint64, unknown bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if lastEventID == "" {
		return b.unread - 1, false
	}
	epoch, digits, _ := strings.Cut(lastEventID, "-")
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || epoch != b.epoch || n >= b.first+uint64(len(b.items)) {
		return b.unread - 1, true
	}
	return n, false
}

// eventID returns the event id of an item.
func (b *mailbox) eventID(number uint64) string { return fmt.Sprintf("%s-%d", b.epoch, number) }

// close closes the mailbox: nothing is added any more. Its readers get what is in it.
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

// discard drops every item of a closed mailbox.
func (b *mailbox) discard() {
	b.mu.Lock()
	var lost []func()
	for len(b.items) > 0 {
		lost = b.dropLocked(lost)
	}
	b.mu.Unlock()
	for _, f := range lost {
		f()
	}
}
