package coretest

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
)

// questions checks the questions of agents to people: each is settled once, and none stays
// open when the last of its tasks has ended.
type questions map[string]question.Question

var _ question.Observer = (*Promises)(nil)

// Asked implements question.Observer.
func (p *Promises) Asked(q question.Question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.questions[q.ID] = q
	for _, id := range q.Tasks {
		p.waits(id)
	}
	if next, ok := p.next.(question.Observer); ok {
		next.Asked(q)
	}
}

// Settled implements question.Observer.
func (p *Promises) Settled(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q, open := p.questions[id]
	if !open {
		p.breaks("P1", "", "question %s was settled and is not open", id)
	}
	if end, ended := p.endOf(q); ended && time.Since(end) > time.Second {
		p.breaks("P1", q.Tasks[0], "question %s stayed open %s after the end", id, time.Since(end))
	}
	delete(p.questions, id)
	if next, ok := p.next.(question.Observer); ok {
		next.Settled(id)
	}
}

// endOf returns when the last task of a question ended, if all of them have. Callers
// hold mu.
func (p *Promises) endOf(q question.Question) (end time.Time, ended bool) {
	for _, id := range q.Tasks {
		t := p.tasks[id]
		if t == nil || t.ends == 0 {
			return end, false
		}
		if t.ended.After(end) {
			end = t.ended
		}
	}
	return end, len(q.Tasks) > 0
}

// leftOpen reports the questions that were not settled. Callers hold mu.
func (p *Promises) leftOpen() {
	for id, q := range p.questions {
		var task core.TaskID
		if len(q.Tasks) > 0 {
			task = q.Tasks[0]
		}
		p.breaks("P1", task, "question %s of agent %s is open though the hub is closed", id, q.Agent)
	}
}
