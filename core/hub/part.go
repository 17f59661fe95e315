package hub

import (
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// Part is who a part of the program itself is, such as the server of a dialect that
// follows every task for its own sake. It may do everything, so that what it learns is
// told only to those who may know it.
func Part(name, dialect string) Identity {
	return Identity{Principal: core.Principal{ID: name, Dialect: dialect, Operator: true}, Dialect: dialect}
}

// MayRead reports whether the principal may read a task that a part of the program has.
func (h *Hub) MayRead(p core.Principal, t *task.Task) bool { return h.mayRead(p, t.From()) }
