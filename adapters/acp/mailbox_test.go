package acp

import (
	"fmt"
	"github.com/dragoman-hub/dragoman/core"
	"testing"
)

func TestAMailboxIsBoundedAndReportsWhatItDropped(t *testing.T) {
	total := &budget{limit: 1 << 20}
	b := newMailbox(1000, total)
	var lost []int
	for i := range 10 {
		b.put(message{json: make([]byte, 300), lost: func() { lost = append(lost, i) }})
	}
	at, _ := b.resume("")
	if got := fmt.Sprint(lost); got != "[0 1 2 3 4 5 6]" {
		t.Errorf("lost: got %s, want the oldest seven", got)
	}
	items, missed, _ := b.after(0)
	if len(items) != 3 || missed != 7 || at != 7 {
		t.Errorf("from the start: got %d items, %d missed, to resume at %d, want 3, 7 and 7", len(items), missed, at)
	}
	b.read(items[0])
	b.read(items[1])
	b.put(message{json: make([]byte, 900), lost: func() { lost = append(lost, 10) }})
	if got := fmt.Sprint(lost); got != "[0 1 2 3 4 5 6 9]" {
		t.Errorf("lost: got %s, want read items dropped silently", got)
	}
	if got := total.used.Load(); got != 900 {
		t.Errorf("total bytes: got %d, want 900", got)
	}
	other := newMailbox(1<<20, total)
	other.put(message{json: make([]byte, 1<<20)})
	other.put(message{json: make([]byte, 10)})
	if items, _, _ := other.after(0); len(items) != 1 || len(items[0].json) != 10 {
		t.Errorf("above the total limit: got %d items, want only the latest", len(items))
	}
	for _, m := range []*mailbox{b, other} {
		m.close()
		m.discard()
	}
	if got := lost[len(lost)-1]; got != 10 {
		t.Errorf("lost after closing: got %d, want the last item", got)
	}
	if got := total.used.Load(); got != 0 {
		t.Errorf("total bytes after closing: got %d, want 0", got)
	}
}

func TestAMailboxIsBoundedInNumberWhenItsResultsAreReclaimed(t *testing.T) {
	b := newMailbox(1<<10, &budget{limit: 1 << 20})
	for i := range 1000 {
		b.put(message{json: make([]byte, 300), result: &pendingResult{}})
		if due := b.reclaim(func(core.TaskID) bool { return true }); len(due) != 1 {
			t.Fatalf("result %d: got %d reclaimed, want 1", i, len(due))
		}
	}
	if got := len(b.items); got > 16 {
		t.Errorf("got %d items, want at most 16", got)
	}
}
