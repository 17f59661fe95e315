package hub

import (
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
)

// end ends a task in the name of the hub. It reports false when the task had
// ended before.
func (t *Task) end(body core.Body, foreign *core.Foreign) bool {
	t.mu.Lock()
	if t.state == Ended {
		t.mu.Unlock()
		return false
	}
	t.append(body, foreign)
	worker := t.worker
	t.mu.Unlock()
	t.endedWithout(worker)
	return true
}

// endedWithout does what follows when a task ended and its agent, if it has one,
// has not ended it.
func (t *Task) endedWithout(worker *Session) {
	if worker != nil {
		t.hub.linger(worker, t)
	}
	t.hub.ended(t)
}

// ended does what follows the end of a task: the queue it stood in, and what is kept
// in memory.
func (h *Hub) ended(t *Task) {
	t.mu.Lock()
	waiting, bytes, req, log, agent := t.waiting, t.weight(), t.request, t.log, t.agent
	done := log.last().Body.Kind() == core.KindDone
	t.waiting = nil
	t.mu.Unlock()

	t.opener.mu.Lock()
	delete(t.opener.opened, t)
	t.opener.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if waiting != nil {
		for i, q := range waiting.queue {
			if q == t {
				waiting.queue = append(waiting.queue[:i:i], waiting.queue[i+1:]...)
				h.queued(waiting)
				break
			}
		}
	}
	if done && req.Intent != core.IntentNotify {
		h.notePace(agent, &log)
	}
	h.running--
	if h.running == 0 && h.draining != "" {
		close(h.idle)
	}
	h.retain(t, bytes)
}

// retained are the ended tasks in memory, oldest first.
type retained struct {
	tasks fifo.Queue[*Task]
	bytes int
}

// What a task and an event take in memory beside what is said.
const (
	taskOverhead  = 2 << 10
	eventOverhead = 128
)

// weight is about how many bytes of memory an ended task takes. Callers hold mu.
func (t *Task) weight() int { return taskOverhead + t.bytes + t.log.len()*eventOverhead }

// retain keeps an ended task in memory. Callers hold mu.
func (h *Hub) retain(t *Task, bytes int) {
	h.finished.tasks.Push(t)
	h.finished.bytes += bytes
	h.trim()
}

// trim drops the oldest ended tasks beyond the limits, as far as the journal has
// them. Callers hold mu.
func (h *Hub) trim() {
	f := &h.finished
	for f.tasks.Len() > h.limits.FinishedTasks || f.bytes > h.limits.FinishedBytes {
		oldest := f.tasks.First()
		oldest.mu.Lock()
		size, safe, last := oldest.weight(), oldest.recorded >= oldest.last(), oldest.log.last()
		oldest.mu.Unlock()
		if !safe {
			return // the recorder has not got there yet; what comes next tries again
		}
		delete(h.tasks, oldest.id)
		h.catalog.settle(oldest.id, last)
		f.tasks.Pop()
		f.bytes -= size
	}
}
