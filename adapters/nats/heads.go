package nats

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// head is what is known of a task while the stream is read. There may be a million of them.
type head struct {
	task   core.TaskID
	thread core.ThreadID
	begun  uint64 // the place of the message with its first event
	place  uint64 // the place of the message with its last event
	seq    uint64 // the sequence number of its last event
	at     int64  // when it ended, in nanoseconds of Unix time
	last   string // the line of its last event; "" if that is the end, or did not fit
	end    core.Kind
	lost   bool // only its existence is known: the rest was damaged
}

// The lines of last events are kept until all heads are known if they are short, or fit
// into the bytes for long lines. Others are read again.
const (
	shortLine = 512
	longLines = 256 << 20
)

// tellEvery is the time between two lines of the log about how much of the journal was read.
const tellEvery = 2 * time.Second

// longBytes returns how many of the bytes for long lines a line takes.
func longBytes(line string) int {
	if len(line) <= shortLine {
		return 0
	}
	return len(line)
}

// heads has the heads of all tasks, as far as the stream was read.
type heads struct {
	of    map[core.TaskID]*head
	order []*head // as they were found: almost by their ids, which begin with the time
	free  []head  // for the next ones
	room  int     // bytes left for long lines
	place uint64  // of the last message
	gap   uint64  // the last place without a message that has messages before it
	first uint64  // the place of the first message that retention left
}

// Heads implements journal.Journal.
func (j *Journal) Heads(ctx context.Context, yield func(journal.Head) bool) error {
	return j.tasks.heads(ctx, 1, 0, yield)
}

// heads is journal.Journal.Heads. It reads the stream once, in order, from a place on to the place last;
// 0 is the present end.
func (h *hubTasks) heads(ctx context.Context, from, last uint64, yield func(journal.Head) bool) error {
	all, err := h.readHeads(ctx, from, last)
	if err != nil {
		return err
	}
	h.mu.Lock()
	if h.open != nil && !h.open.whole {
		h.open.former(all, max(h.owner.From, 1))
	}
	h.mu.Unlock()
	slices.SortFunc(all.order, func(a, b *head) int { return strings.Compare(string(a.task), string(b.task)) })
	for _, d := range all.order {
		if d.place < all.first {
			continue // retention dropped it meanwhile
		}
		out := journal.Head{Task: d.task, End: d.end, Damaged: d.end == 0 && (d.lost || d.place < all.gap)}
		if d.begun >= all.first {
			out.Thread = d.thread
		}
		if d.end == 0 {
			if out.Last, err = h.lastOf(ctx, d); errors.Is(err, journal.ErrUnknown) {
				continue
			}
			if err != nil {
				return err
			}
		} else {
			out.At = time.Unix(0, d.at).UTC()
		}
		if !yield(out) {
			break
		}
	}
	return nil
}

// readHeads reads the heads from the stream, and adds the tasks of which damage left
// nothing else.
func (h *hubTasks) readHeads(ctx context.Context, from, last uint64) (heads, error) {
	j := h.j
	j.reopening.RLock()
	defer j.reopening.RUnlock()
	all := heads{of: map[core.TaskID]*head{}, room: j.lines}
	own := last == 0
	if own {
		now, err := h.awaitState(ctx)
		if err != nil {
			return all, fmt.Errorf("reading the journal: %w", err)
		}
		last = now.LastSeq
	}
	var parts assembly
	told := time.Now()
	err := h.replayTo(ctx, from, last, "the journal", func(m message) (bool, error) {
		if all.first == 0 {
			all.first = m.place
		}
		all.pass(m.place)
		if now := time.Now(); now.Sub(told) >= j.tellEvery {
			told = now
			j.log.Info("reading the journal", "read", fmt.Sprintf("%d%%", 100*(m.place-from+1)/(last-from+1)), "tasks", len(all.of))
		}
		if m.owner {
			return true, nil
		}
		data, whole := parts.add(m.header, m.data)
		if !whole {
			return true, nil
		}
		for task, lines := range tasks(data, h.taskOf(m.subject)) {
			if err := all.add(m.place, task, lines); err != nil {
				return false, err
			}
		}
		return true, nil
	})
	if err != nil {
		return all, err
	}
	if all.place < last {
		all.pass(last + 1)
	}
	if !own {
		return all, nil
	}
	now, err := h.awaitState(ctx)
	if err != nil {
		return all, fmt.Errorf("reading the journal: %w", err)
	}
	all.first = now.FirstSeq
	if all.gap < all.first {
		all.gap = 0 // retention made it
	}
	for task, seq := range j.lost {
		if all.of[task] == nil {
			*all.begin(task) = head{task: task, seq: seq, place: all.first, lost: true}
		}
	}
	return all, nil
}

// pass notes that the next message of the stream is at a place.
func (h *heads) pass(place uint64) {
	if h.place > 0 && place > h.place+1 {
		h.gap = place - 1
	}
	h.place = place
}

// begin adds the head of a task.
func (h *heads) begin(task core.TaskID) *head {
	if len(h.free) == 0 {
		h.free = make([]head, 256)
	}
	d := &h.free[0]
	h.free = h.free[1:]
	d.task = task
	h.of[task], h.order = d, append(h.order, d)
	return d
}

// add notes the events of a task in a message.
func (h *heads) add(place uint64, task core.TaskID, lines []byte) error {
	d := h.of[task]
	if d == nil {
		if !plain(task) {
			return errNoTask
		}
		d = h.begin(task)
	}
	if first, _, _ := bytes.Cut(lines, []byte{'\n'}); bytes.HasPrefix(first, []byte(`{"seq":1,`)) {
		thread, err := threadOf(first)
		if err != nil {
			return fmt.Errorf("task %s: %w", task, err)
		}
		if string(thread) == string(task) {
			thread = core.ThreadID(task) // one text for both
		}
		d.thread, d.begun = thread, place
	}
	last := lines[bytes.LastIndexByte(lines, '\n')+1:]
	seq := seqOf(last)
	if seq > 0 && seq < d.seq {
		return nil // these were appended again
	}
	h.room += longBytes(d.last)
	d.seq, d.last, d.place = seq, "", place
	end, at, err := endOf(last)
	if err != nil {
		return fmt.Errorf("task %s: %w", task, err)
	}
	if d.end = end; end != 0 {
		d.at = at.UnixNano()
	} else if size := longBytes(string(last)); size == 0 || size <= h.room {
		d.last, h.room = string(last), h.room-size
	}
	return nil
}

// lastOf returns the last event of a task.
func (h *hubTasks) lastOf(ctx context.Context, d *head) (last core.Event, err error) {
	if d.last != "" {
		if err = json.Unmarshal([]byte(d.last), &last); err != nil {
			err = unreadable(d.place, d.task, err)
		}
		return last, err
	}
	if d.lost {
		return core.Event{Seq: d.seq, Epoch: 1}, nil
	}
	events, err := h.read(ctx, d.task, d.seq-1, 0)
	if len(events) == 0 {
		return last, cmp.Or(err, journal.ErrUnknown)
	}
	return events[len(events)-1], nil
}

// seqOf returns the sequence number of the event in a line; 0 if there is none.
func seqOf(line []byte) uint64 {
	digits, _, _ := bytes.Cut(bytes.TrimPrefix(line, []byte(`{"seq":`)), []byte{','})
	n, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// endOf returns the kind and the time of the event in a line if it ends its task, else
// zeros. Nothing before the kind in a line contains text of a peer.
func endOf(line []byte) (end core.Kind, at time.Time, err error) {
	before, rest, _ := bytes.Cut(line, []byte(`"kind":"`))
	name, _, _ := bytes.Cut(rest, []byte{'"'})
	end, known := core.ParseKind(string(name))
	if !known || !end.Ends() {
		return 0, at, nil
	}
	_, text, _ := bytes.Cut(before, []byte(`"at":"`))
	text, _, _ = bytes.Cut(text, []byte{'"'})
	if err := at.UnmarshalText(text); err != nil {
		return 0, at, fmt.Errorf("the time of its end: %w", err)
	}
	return end, at, nil
}

// threadOf returns [journal.ThreadOf] the first event of a task, given its line. The
// members before the thread have a fixed order. A line with an escape in one of them is
// decoded.
func threadOf(line []byte) (core.ThreadID, error) {
	_, rest, found := bytes.Cut(line, []byte(`"request":{"intent":"`))
	intent, rest, _ := bytes.Cut(rest, []byte(`","to":"`))
	to, rest, _ := bytes.Cut(rest, []byte(`",`))
	thread, named := bytes.CutPrefix(rest, []byte(`"thread":"`))
	thread, _, closed := bytes.Cut(thread, []byte{'"'})
	switch {
	case !found || !closed && named || bytes.IndexByte(to, '\\') >= 0 || bytes.IndexByte(thread, '\\') >= 0:
		var e core.Event
		err := json.Unmarshal(line, &e)
		return journal.ThreadOf(e), err
	case !named || string(intent) == core.IntentNotify.String():
		return "", nil
	}
	return core.ThreadID(thread), nil
}
