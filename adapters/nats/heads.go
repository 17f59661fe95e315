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
	opened repeatable
	place  uint64    // of the message with its last event
	seq    uint64    // the sequence number of its last event
	at     time.Time // when it ended
	last   string    // the line of its last event; "" if that is the end, or is long
	end    core.Kind
	queued bool // it is in ends
}

// longLine is the length from which on the line of a last event is not kept, but read again.
const longLine = 4 << 10

// tellEvery is the time between two lines of the log about how much of the journal was read.
const tellEvery = 2 * time.Second

// taskKey is the id of a task in the fewest bytes.
type taskKey [16]byte

// heads has the heads of the tasks, as far as the stream was read: of all that have no end, and of the latest others.
// There may be millions, of which a hub that starts needs few.
type heads struct {
	of   map[core.TaskID]*head
	keep int                // how many heads with an end are kept at least
	ends []*head            // those that have an end and a key, in the order of the ends
	past map[taskKey]uint32 // the tasks whose heads were dropped, with the sequence numbers of their ends

	spare []head // for the next ones
}

// Heads implements journal.Journal.
func (j *Journal) Heads(ctx context.Context, yield func(journal.Head) bool) error {
	return j.tasks.heads(ctx, 1, 0, j.latestHeads, yield)
}

// heads is journal.Journal.Heads, with at least so many heads of tasks that have an end. It reads the stream once, in
// order, from a place on to the place last; 0 is the present end.
func (h *hubTasks) heads(ctx context.Context, from, last uint64, keep int, yield func(journal.Head) bool) error {
	all, unsure, err := h.readHeads(ctx, from, last, keep)
	if err != nil {
		return fmt.Errorf("reading the journal: %w", err)
	}
	h.mu.Lock()
	if h.open != nil && !h.open.whole {
		h.open.former(all, max(h.owner.From, 1))
	}
	h.mu.Unlock()
	for _, d := range all.sorted() {
		out := journal.Head{
			Task: d.task, Thread: d.thread, ThreadTask: all.knows(core.TaskID(d.thread)), Key: d.opened.key, From: d.opened.from,
			End: d.end, At: d.at, Damaged: d.end == 0 && d.place <= unsure,
		}
		if d.end == 0 {
			if out.Last, err = h.lastOf(ctx, d); errors.Is(err, journal.ErrUnknown) {
				continue // retention dropped it meanwhile
			}
			if err != nil {
				return err
			}
		}
		if !yield(out) {
			break
		}
	}
	return nil
}

// sorted returns the heads ordered by the ids of their tasks. They ended almost in that order.
func (h *heads) sorted() []*head {
	for _, d := range h.of {
		if !d.queued {
			h.ends = append(h.ends, d)
		}
	}
	slices.SortFunc(h.ends, func(a, b *head) int { return strings.Compare(string(a.task), string(b.task)) })
	return h.ends
}

// readHeads reads the heads from the stream. Records are missing somewhere after the place unsure: a task whose last
// event is there or before may have ended.
func (h *hubTasks) readHeads(ctx context.Context, from, last uint64, keep int) (all heads, unsure uint64, err error) {
	h.j.reopening.RLock()
	defer h.j.reopening.RUnlock()
	all = heads{keep: keep, of: map[core.TaskID]*head{}, past: map[taskKey]uint32{}}
	told := time.Now()
	var holes []hole
	for l, err := range lines(h.replay(ctx, getRequest{Seq: from}, last, &holes)) {
		if err == nil {
			err = all.add(l)
		}
		if err != nil {
			return all, 0, err
		}
		if now := time.Now(); now.Sub(told) >= h.j.tellEvery {
			told = now
			h.j.log.Info("reading the journal", "stream", h.stream, "message", l.place, "tasks", len(all.of)+len(all.past))
		}
	}
	unsure = h.cut()
	if n := len(holes); n > 0 {
		unsure = max(unsure, holes[n-1].From)
	}
	return all, unsure, nil
}

// taskKeyOf returns the key of a task; zeros if its id has another form.
func taskKeyOf(task core.TaskID) taskKey {
	const length = len("00000000-0000-0000-0000-000000000000")
	if len(task) != length || strings.ContainsAny(string(task), "ABCDEF") { // the same key stands for small letters
		return taskKey{}
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

// leastDropped is how many heads are dropped at once at least.
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
		h.past[d.key] = uint32(d.seq)
		delete(h.of, d.task)
	}
	h.ends = slices.Delete(h.ends, 0, over)
}

// add notes the events of a task in a message.
func (h *heads) add(l taskLines) (err error) {
	last := l.text[bytes.LastIndexByte(l.text, '\n')+1:]
	seq := seqOf(last)
	end, at, err := endOf(last)
	if err != nil {
		return l.unreadable(err)
	}
	d := h.headOf(l.task, seq, end != 0)
	if d == nil {
		return nil
	}
	if first, _, _ := bytes.Cut(l.text, []byte{'\n'}); bytes.HasPrefix(first, []byte(`{"seq":1,`)) {
		if err := d.begin(first); err != nil {
			return l.unreadable(err)
		}
	}
	if seq > 0 && seq < d.seq {
		return nil // these were appended again
	}
	d.seq, d.last, d.place, d.end, d.at = seq, "", l.place, end, at
	switch {
	case end != 0 && !d.queued && d.key != (taskKey{}):
		d.queued, h.ends = true, append(h.ends, d)
		h.drop()
	case end == 0 && len(last) < longLine:
		d.last = string(last)
	}
	return nil
}

// begin notes what the line of the first event of the task says.
func (d *head) begin(line []byte) (err error) {
	if d.thread, err = threadOf(line); err != nil {
		return err
	}
	if string(d.thread) == string(d.task) {
		d.thread = core.ThreadID(d.task) // one text for both
	}
	d.opened, err = repeatableOf(line)
	return err
}

// headOf returns the head of a task, and begins one if there is none. A message has events of the task: seq is the
// sequence number of the last of them, which may be its end. The head is nil if it was dropped after the task had
// ended, and these events were only appended again.
func (h *heads) headOf(task core.TaskID, seq uint64, ends bool) *head {
	if d := h.of[task]; d != nil {
		return d
	}
	key := taskKeyOf(task)
	if before, past := h.past[key]; past && (seq < uint64(before) || seq == uint64(before) && ends) {
		return nil
	}
	delete(h.past, key)
	if len(h.spare) == 0 {
		h.spare = make([]head, 256)
	}
	d := &h.spare[0]
	d.task, d.key, h.spare = task, key, h.spare[1:]
	h.of[task] = d
	return d
}

// lastOf returns the last event of a task.
func (h *hubTasks) lastOf(ctx context.Context, d *head) (last core.Event, err error) {
	if d.last != "" {
		if err = json.Unmarshal([]byte(d.last), &last); err != nil {
			err = taskLines{place: d.place, task: d.task}.unreadable(err)
		}
		return last, err
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

// repeatableOf returns the key of the first event of a task, given its line; zeros if there is none. Most lines have
// no such member, and are not decoded.
func repeatableOf(line []byte) (repeatable, error) {
	if !bytes.Contains(line, []byte(`,"key":"`)) {
		return repeatable{}, nil
	}
	var e core.Event
	err := json.Unmarshal(line, &e)
	if o, ok := e.Body.(core.Opened); ok && o.Key != "" {
		return repeatable{o.Key, o.From.ID}, err
	}
	return repeatable{}, err
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
