package peer_test

import (
	"context"
	"slices"
	"strconv"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/task"
)

// view is what somebody has read of a task.
type view struct {
	task *simTask
	who  string
	late bool // it began to read once the task had ended
	// items are the events by sequence number, from 1.
	items []item
	ended bool
	// reads is the session that reads it, looks the one that looks for it.
	reads, looks *hub.Session
}

// item is an event in a form that all who tell of it must tell alike.
type item struct {
	text  string
	epoch uint32
	ends  bool
	bare  string // the text of the first event of a task that is refused, which keeps no content
}

// itemsOf returns the items of an event: text may be merged on its way.
func itemsOf(out []item, e core.Event) []item {
	if !e.Mergeable() {
		b, err := e.AppendJSON(nil)
		if err != nil {
			panic(err)
		}
		bare := e
		if o, ok := e.Body.(core.Opened); ok {
			o.Request.DropContent()
			o.Key = ""
			bare.Body = o
		}
		w, err := bare.AppendJSON(nil)
		if err != nil {
			panic(err)
		}
		return append(out, item{string(b), e.Epoch, e.Body.Kind().Ends(), string(w)})
	}
	for _, p := range core.Unmerge([]core.Event{e}) {
		out = append(out, item{text: "text " + p.Body.(core.Text).Text, epoch: p.Epoch})
	}
	return out
}

// cursor returns where to go on.
func (v *view) cursor() core.Cursor {
	n := len(v.items)
	if n == 0 {
		return core.Cursor{}
	}
	return core.Cursor{Epoch: v.items[n-1].epoch, Seq: uint64(n)}
}

// take takes a batch.
func (s *sim) take(v *view, b hub.Batch) {
	if g := b.Gap; g != nil { // the journal of a schedule loses nothing
		s.breaks("gap: %s is at %d of %s and got a gap from %d to %d", v.who, len(v.items), v.task.name, g.From, g.To)
		return
	}
	for _, e := range b.Events {
		s.note(v.who, " ", v.task.name, " ", strconv.FormatUint(e.Seq, 10), " ", e.Body.Kind().String())
		if n := uint64(len(v.items)); e.Seq != n+1 {
			s.breaks("numbers: %s is at %d of %s and got %d", v.who, n, v.task.name, e.Seq)
			return
		}
		if v.ended {
			s.breaks("end: %s got %s after the end of %s", v.who, e.Body.Kind(), v.task.name)
		}
		v.items = itemsOf(v.items, e)
		v.ended = e.Body.Kind().Ends()
	}
}

// view returns what the person has read of a task.
func (p *person) view(t *simTask) *view {
	for _, v := range p.views {
		if v.task == t {
			return v
		}
	}
	v := &view{task: t, who: p.name}
	p.views = append(p.views, v)
	return v
}

// canonical returns what the journal has of a task; nothing if it has never had any.
func (s *sim) canonical(t *simTask) (all []item) {
	events := s.stored(t)
	for i, e := range events {
		if i > 0 && e.Seq != events[i-1].End()+1 || i == 0 && e.Seq != 1 {
			s.breaks("numbers: in the journal, %s has %d at place %d", t.name, e.Seq, i)
		}
		all = itemsOf(all, e)
	}
	return all
}

// stored returns the events of a task in the journal: those of the hub that first had it, or of the one that has taken it
// back, up to the record of a move, then those of the hub that the record names, and so on.
func (s *sim) stored(t *simTask) (all []core.Event) {
	of := s.hubs[task.OwnerOf(t.id)].name
	if len(s.part(of, t, 0)) == 0 {
		line, _ := task.LineOf(t.id)
		if of = s.hubs[line.Maker()].name; s.isCopy(of, t) {
			return nil
		}
	}
	for moved := true; moved; {
		moved = false
		after := uint64(0)
		if len(all) > 0 {
			after = all[len(all)-1].End()
		}
		for _, e := range s.part(of, t, after) {
			all = append(all, e)
			if r, ok := e.Body.(core.Retrying); ok && r.Hub != "" && r.Hub != of {
				of, moved = r.Hub, true
				break
			}
		}
	}
	return all
}

// isCopy reports whether what a hub has stored of a task is a copy: the task was to move there.
func (s *sim) isCopy(of string, t *simTask) bool {
	return slices.ContainsFunc(s.part(of, t, 0), func(e core.Event) bool { r, ok := e.Body.(core.Retrying); return ok && r.Hub == of })
}

// part returns what a hub has stored of a task.
func (s *sim) part(of string, t *simTask, after uint64) []core.Event {
	part, err := s.store.checker.ReadOf(context.Background(), of, t.id, after, 0)
	if err != nil && err != journal.ErrUnknown {
		s.breaks("journal: %s: %v", t.name, err)
	}
	return part
}
