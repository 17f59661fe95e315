package task

import "github.com/dragoman-hub/dragoman/core"

// ReaderStatus is a reader as others may see it.
type ReaderStatus struct {
	Principal core.Principal `json:"principal"`
	Role      Role           `json:"role"`
	// Seq is the last sequence number that was handed to its connection, and Behind the
	// number of events for it after that: an agent gets only what is said to it, a waiter
	// only the end.
	Seq    uint64 `json:"seq"`
	Behind int    `json:"behind"`
}

// Readers returns who reads the task, in the order in which they came, without the
// hub itself.
func (t *Task) Readers() []ReaderStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := []ReaderStatus{}
	for r := t.readers; r != nil; r = r.after {
		p := r.inbox.Principal()
		if p.ID == "" {
			continue
		}
		s := ReaderStatus{Principal: p, Role: r.role, Seq: r.next}
		for i := t.index(r.next); i < t.log.Len(); i++ {
			if r.wants(t.log.At(i).Body.Kind()) {
				s.Behind++
			}
		}
		all = append(all, s)
	}
	return all
}
