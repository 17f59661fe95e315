package coretest

import (
	"context"
	"fmt"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// reading is a reader of all tasks of a hub.
type reading struct {
	session *hub.Session
	life    sync.WaitGroup
	tasks   map[core.TaskID]*account
	holes   []string
}

// Read makes the checker a reader of every task of the hub, twice: one reads at once, the
// other only once the hub is closed. Both must get everything (promises P3 and P5), and the
// second must not slow the hub (promise P6).
func (p *Promises) Read(h *hub.Hub) {
	p.eager, p.idle = newReading(h, "eager"), newReading(h, "idle")
	if !p.clustered {
		p.alone = h
	}
	p.eager.life.Go(p.eager.read)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.tasks {
		t.unread = t.ends > 0
	}
}

func newReading(h *hub.Hub, id string) *reading {
	r := &reading{session: h.Connect(hub.ComponentIdentity("reader-"+id, "")), tasks: map[core.TaskID]*account{}}
	_ = r.session.WatchAll() // the program itself may
	return r
}

// read reads everything until the session ends.
func (r *reading) read() {
	for {
		b, err := r.session.Next(context.Background())
		switch {
		case err != nil:
			return
		case b.Gap != nil:
			r.holes = append(r.holes, fmt.Sprintf("task %s: got a gap from %d to %d", b.Task.ID(), b.Gap.From, b.Gap.To))
		case b.Task != nil:
			id := b.Task.ID()
			if r.tasks[id] == nil {
				r.tasks[id] = &account{}
			}
			for _, e := range b.Events {
				if hole := r.tasks[id].add(e); hole != "" {
					r.holes = append(r.holes, fmt.Sprintf("task %s: %s", id, hole))
				}
			}
		}
	}
}

// catchUp reads what the idle reader has left, once the hub is closed.
func (r *reading) catchUp() {
	if r != nil {
		r.read()
	}
}

func (r *reading) wait() {
	if r != nil {
		r.life.Wait()
	}
}

// compareReaders checks what the readers know of a task. Callers hold mu.
func (p *Promises) compareReaders(id core.TaskID, t *history) {
	for name, r := range map[string]*reading{"the eager reader": p.eager, "the idle reader": p.idle} {
		if r == nil {
			continue
		}
		for _, hole := range r.holes {
			p.broken = append(p.broken, "promise P5 is broken: "+name+": "+hole)
		}
		r.holes = nil
		got := r.tasks[id]
		if got == nil && t.unread {
			continue
		}
		if got == nil {
			p.breaks("P5", id, "%s never heard of it", name)
			continue
		}
		for _, d := range got.differs(&t.account) {
			p.breaks(d.promise, id, "%s: %s", name, d.how)
		}
	}
}
