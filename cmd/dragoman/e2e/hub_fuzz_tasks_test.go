package e2e

import (
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
)

// taskList is the tasks of a hub and how they ended, in the order in which they were opened.
type taskList struct {
	mu     sync.Mutex
	opened []core.TaskID
	ends   map[core.TaskID]core.Kind
	pairs  map[core.TaskID]string // the dialects of who asked and who answers

	recorded map[core.TaskID]uint64
}

func newTaskList() *taskList {
	return &taskList{ends: map[core.TaskID]core.Kind{}, pairs: map[core.TaskID]string{}, recorded: map[core.TaskID]uint64{}}
}

// Joined implements hub.Observer.
func (l *taskList) Joined(core.Card) {}

// Left implements hub.Observer.
func (l *taskList) Left(core.AgentID, bool) {}

// Recorded implements hub.Observer.
func (l *taskList) Recorded(id core.TaskID, seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recorded[id] = seq
}

func (l *taskList) recordedUpTo(id core.TaskID) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.recorded[id]
}

// Appended implements hub.Observer.
func (l *taskList) Appended(id core.TaskID, e core.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.Seq == 1 {
		l.opened = append(l.opened, id)
	}
	switch b := e.Body.(type) {
	case core.Opened:
		l.pairs[id] = b.From.Dialect
	case core.Assigned:
		l.pairs[id] += "-" + b.Dialect
	}
	if e.Body.Kind().Ends() {
		l.ends[id] = e.Body.Kind()
	}
}

func (l *taskList) all() []core.TaskID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.opened)
}

func (l *taskList) end(id core.TaskID) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends[id] == 0 {
		return "" // it runs
	}
	return l.ends[id].String()
}

// summary returns how the tasks ended, in their order, as "rest-coven done".
func (l *taskList) summary() string {
	var all []string
	for _, id := range l.all() {
		all = append(all, strings.TrimSpace(l.pair(id)+" "+l.end(id)))
	}
	return strings.Join(all, ", ")
}

func (l *taskList) pair(id core.TaskID) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pairs[id]
}
