package nats

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// head is what is known of a task while the stream is read.
type head struct {
	task   core.TaskID
	key    taskKey // of the task; zeros if its id has another form
	thread core.ThreadID
	opened *repeatable // nil for a task without a key
	begun  uint64      // the place of the message with its first event
	place  uint64      // the place of the message with its last event
	seq    uint64      // the sequence number of its last event
	at     int64       // when it ended, in nanoseconds of Unix time
	last   string      // the line of its last event; "" if that is the end, or did not fit
	end    core.Kind
	lost   bool // only its existence is known: the rest was damaged

	queued, dropped bool // it is in ends; it is in order for the last time
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

// taskKey is the id of a task in the fewest bytes.
type taskKey [16]byte

// heads has the heads of the tasks, as far as the stream was read: of all that have no end, and of the latest others.
// There may be millions, of which a hub that starts needs few.
type heads struct {
	of    map[core.TaskID]*head
	order []*head            // as they were found: almost by their ids, which begin with the time
	free  []*head            // for the next ones
	keep  int                // how many heads with an end are kept at least
	ends  []*head            // those that have an end and a key, in the order of the ends
	past  map[taskKey]uint32 // the tasks whose heads were dropped, with the sequence numbers of their ends
	room  int                // bytes left for long lines
	place uint64             // of the last message
	gap   uint64             // the last place without a message that has messages before it
	first uint64             // the place of the first message that retention left
}

// Heads implements journal.Journal.
func (j *Journal) Heads(ctx context.Context, yield func(journal.Head) bool) error {
	return j.tasks.heads(ctx, 1, 0, j.latestHeads, yield)
}

// heads is journal.Journal.Heads, with at least so many heads of tasks that have an end. It reads the stream once, in
// order, from a place on to the place last; 0 is the present end.
func (h *hubTasks) heads(ctx context.Context, from, last uint64, keep int, yield func(journal.Head) bool) error {
	all, err := h.readHeads(ctx, from, last, keep)
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
			out.Thread, out.ThreadTask = d.thread, all.knows(core.TaskID(d.thread))
			if d.opened != nil {
				out.Key, out.From = d.opened.key, d.opened.from
			}
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
func (h *hubTasks) readHeads(ctx context.Context, from, last uint64, keep int) (heads, error) {
	j := h.j
	j.reopening.RLock()
	defer j.reopening.RUnlock()
	all := heads{keep: keep, past: map[taskKey]uint32{}, room: j.lines}
	own := last == 0
	if own {
		now, err := h.awaitState(ctx)
		if err != nil {
			return all, fmt.Errorf("reading the journal: %w", err)
		}
		last = now.LastSeq
	}
	const many, tasksInMessage = journal.LatestHeads + leastDropped, 16
	all.of = make(map[core.TaskID]*head, min(tasksInMessage*(last-from+1), many))
	var parts assembly
	told := time.Now()
	err := h.replayTo(ctx, from, last, "the journal", func(m message) (bool, error) {
		if all.first == 0 {
			all.first = m.place
		}
		all.pass(m.place)
		if now := time.Now(); now.Sub(told) >= j.tellEvery {
			told = now
			j.log.Info("reading the journal", "read", fmt.Sprintf("%d%%", 100*(m.place-from+1)/(last-from+1)), "tasks", len(all.of)+len(all.past))
		}
		if m.owner {
			return true, nil
		}
		data, whole := parts.add(m.header, m.data)
		if !whole {
			return true, nil
		}
		for task, lines := range tasks(data) {
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
	all.addLost(j.lost)
	return all, nil
}

// addLost adds the tasks of which damage left nothing, each with the sequence number of its last event.
func (h *heads) addLost(lost map[core.TaskID]uint64) {
	for task, seq := range lost {
		if !h.knows(task) {
			d := h.begin(task, taskKeyOf(task))
			d.seq, d.place, d.lost = seq, h.first, true
		}
	}
}

// pass notes that the next message of the stream is at a place.
func (h *heads) pass(place uint64) {
	if h.place > 0 && place > h.place+1 {
		h.gap = place - 1
	}
	h.place = place
}

// begin adds the head of a task.
func (h *heads) begin(task core.TaskID, key taskKey) *head {
	if len(h.free) == 0 {
		more := make([]head, 256)
		for i := range more {
			h.free = append(h.free, &more[i])
		}
	}
	d := h.free[len(h.free)-1]
	h.free = h.free[:len(h.free)-1]
	*d = head{task: task, key: key}
	h.of[task], h.order = d, append(h.order, d)
	return d
}

// taskKeyOf returns the key of a task; zeros if its id has another form.
func taskKeyOf(task core.TaskID) taskKey {
	const length = len("00000000-0000-0000-0000-000000000000")
	if len(task) != length {
		return taskKey{}
	}
	for _, c := range []byte(task) {
		if c >= 'A' && c <= 'F' { // the same key stands for small letters
			return taskKey{}
		}
	}
	return task.Bytes()
}

// knows reports whether the stream has something of a task.
func (h *heads) knows(task core.TaskID) bool {
	if h.of[task] != nil {
		return true
	}
	_, past := h.past[taskKeyOf(task)]
	return past
}

// leastDropped is how many heads are dropped at once at least: all others are passed over.
const leastDropped = 1 << 13

// drop forgets the heads of the tasks that have an end, but for those of the latest ends.
func (h *heads) drop() {
	over := len(h.ends) - h.keep
	if over < leastDropped {
		return
	}
	for _, d := range h.ends[:over] {
		if d.queued = false; d.end == 0 || d.seq > math.MaxUint32 {
			continue // it goes on
		}
		h.past[d.key], d.dropped = uint32(d.seq), true
		delete(h.of, d.task)
	}
	h.ends = slices.Delete(h.ends, 0, over)
	left := h.order[:0]
	for _, d := range h.order {
		if !d.dropped {
			left = append(left, d)
			continue
		}
		*d = head{} // the texts
		h.free = append(h.free, d)
	}
	clear(h.order[len(left):])
	h.order = left
}

// add notes the events of a task in a message.
func (h *heads) add(place uint64, task core.TaskID, lines []byte) error {
	last := lines[bytes.LastIndexByte(lines, '\n')+1:]
	seq := seqOf(last)
	d, err := h.headOf(task, seq, last)
	if d == nil || err != nil {
		return err
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
		if d.opened, err = repeatableOf(first); err != nil {
			return fmt.Errorf("task %s: %w", task, err)
		}
	}
	if seq > 0 && seq < d.seq {
		return nil // these were appended again
	}
	h.room += longBytes(d.last)
	end, at, err := endOf(last)
	if err != nil {
		return fmt.Errorf("task %s: %w", task, err)
	}
	d.seq, d.last, d.place, d.end = seq, "", place, end
	if end != 0 {
		d.at = at.UnixNano()
		if !d.queued && d.key != (taskKey{}) {
			d.queued, h.ends = true, append(h.ends, d)
			h.drop()
		}
	} else if size := longBytes(string(last)); size == 0 || size <= h.room {
		d.last, h.room = string(last), h.room-size
	}
	return nil
}

// headOf returns the head of a task, and begins one if there is none. A message has events of the task: last is the line
// of the last of them, and seq its sequence number. The head is nil if it was dropped after the task had ended, and
// these events were only appended again.
func (h *heads) headOf(task core.TaskID, seq uint64, last []byte) (*head, error) {
	if d := h.of[task]; d != nil {
		return d, nil
	}
	if !plain(task) {
		return nil, errNoTask
	}
	key := taskKeyOf(task)
	if before, past := h.past[key]; past {
		end, _, err := endOf(last)
		if seq < uint64(before) || seq == uint64(before) && (end != 0 || err != nil) {
			return nil, nil
		}
	}
	delete(h.past, key)
	return h.begin(task, key), nil
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

// repeatable is a request that may be sent again: its key, and the id of its requester.
type repeatable struct{ key, from string }

// repeatableOf returns the key of the first event of a task, given its line; nil if there is none. The key is
// the last member of the event.
func repeatableOf(line []byte) (*repeatable, error) {
	const member, end = `,"key":"`, `"}}`
	i := bytes.LastIndex(line, []byte(member))
	if i < 0 || !bytes.HasSuffix(line, []byte(end)) || bytes.IndexByte(line[i+len(member):len(line)-len(end)], '"') >= 0 {
		return nil, nil //nolint:nilnil // it has no key
	}
	var e core.Event
	if err := json.Unmarshal(line, &e); err != nil {
		return nil, err
	}
	o, ok := e.Body.(core.Opened)
	if !ok || o.Key == "" {
		return nil, nil //nolint:nilnil // as above
	}
	return &repeatable{o.Key, o.From.ID}, nil
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
