package hub

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/lru"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/thread"
)

// conversations are what this hub knows of tasks of the others, so that a thread is one at all hubs: who
// owns a task tells the others that it was opened, and who gives one of the thread to an agent asks for the
// turns of those before. Hub.mu guards it.
type conversations struct {
	joins    uint64                                   // how many times a hub has come up
	known    *lru.Cache[core.ThreadID, *conversation] // the latest threads
	waiting  map[core.ThreadID][]waitingTurn          // the tasks that wait until their thread is whole
	wanted   chan core.ThreadID                       // the threads of those
	watching []*Session                               // those that are to be shown what runs at other hubs
	watched  chan struct{}                            // has a token when there are such
	expected map[core.TaskID]struct{}                 // tasks of other hubs that somebody here is to be shown
}

// conversation is what this hub knows of a thread.
type conversation struct {
	// joins is that of the time when all hubs were asked for the tasks of the thread; 0 if they were not.
	joins uint64
	// unread are tasks of other hubs whose turns are not here, if they have any.
	unread []core.TaskID
}

func newConversations(threads int) conversations {
	return conversations{
		known: lru.New(lru.Options[core.ThreadID, *conversation]{Count: threads}), waiting: map[core.ThreadID][]waitingTurn{},
		wanted: make(chan core.ThreadID, mostWanted), watched: make(chan struct{}, 1), expected: map[core.TaskID]struct{}{},
	}
}

// openedTask is a task that was opened.
type openedTask struct {
	Task   core.TaskID   `json:"task"`
	Thread core.ThreadID `json:"thread,omitempty"` // "" for a notice; the task itself if it is alone there
}

// tasksOpened tells hubs of a task that this one owns.
func tasksOpened() news[openedTask] {
	return news[openedTask]{what: "task.opened", told: (*Hub).openedAt, missed: (*Hub).missOpened}
}

// tellOpened tells the other hubs of a task that this one owns. Callers hold mu.
func (h *Hub) tellOpened(t *task.Task) {
	if len(h.others.up) == 0 {
		return
	}
	told := openedTask{Task: t.ID()}
	if !t.IsNotice() {
		told.Thread = t.Thread()
	}
	tasksOpened().tellAll(h, told)
}

// openedAt hears that another hub has a new task.
func (h *Hub) openedAt(hub string, o openedTask) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, own := h.mirrors[o.Task]; own || !task.IsID(string(o.Task)) {
		return // it was opened here, noted and shown
	}
	h.tasks.Learn(o.Task)
	h.begins(o.Thread, o.Task, thread.Unknown)
	if h.followers.wake(o.Thread) || len(h.watchers) > 0 || h.broadcast != nil {
		h.expect(hub, o.Task)
	}
}

// begins notes a task of an account in its thread; "" for none. Callers hold mu.
func (h *Hub) begins(in core.ThreadID, id core.TaskID, account string) {
	switch in {
	case "":
		return
	case core.ThreadID(id):
		if len(h.others.up) > 0 { // they will tell what belongs to it
			h.talk.known.Put(in, &conversation{joins: h.talk.joins})
		}
	default:
		h.index.Add(in, id, account)
	}
	if _, remote := h.ownerOf(task.OwnerOf(id)); remote {
		h.noteUnread(in, id)
	}
}

// noteUnread notes a task of another hub whose turns are to be asked for. Callers hold mu.
func (h *Hub) noteUnread(in core.ThreadID, id core.TaskID) {
	c, known := h.talk.known.Get(in)
	switch {
	case !known: // all are asked for when the thread is wanted
	case len(c.unread) >= rememberable:
		h.talk.known.Remove(in)
	default:
		c.unread = append(c.unread, id)
	}
}

// expect shows a task of another hub to those who watch it, once it is here. Callers hold mu.
func (h *Hub) expect(hub string, id core.TaskID) {
	if t := h.tasks.Get(id); t != nil {
		h.show(t)
		return
	}
	h.talk.expected[id] = struct{}{}
	_ = h.others.peers.Follow(hub, id, core.Cursor{}) // else over the next connection, or from the journal
}

// came shows a task of another hub that was expected, if it is here. Callers hold mu.
func (h *Hub) came(id core.TaskID) {
	if _, ok := h.talk.expected[id]; !ok {
		return
	}
	delete(h.talk.expected, id)
	if t := h.tasks.Get(id); t != nil {
		h.show(t)
	}
}

// show shows a task of another hub to those who watch it. Callers hold mu.
func (h *Hub) show(t *task.Task) {
	for w := range h.watchers {
		w.viewOnce(t, nil)
	}
	if h.broadcast != nil {
		h.broadcast.opened(t)
	}
	if t.IsTurn() {
		h.followers.opened(t, nil)
	}
}

// toldTurn is a turn with the id of who asked.
type toldTurn struct {
	core.Turn
	From string `json:"from,omitempty"`
	// Earlier is that of [core.Turn].
	Earlier bool `json:"earlier,omitempty"`
	// Files are without what is in them, which is kept where the task was.
	Files []core.File `json:"files,omitempty"`
}

func turnsOf(told []toldTurn) []core.Turn {
	all := make([]core.Turn, len(told))
	for i, t := range told {
		all[i] = t.Turn
		all[i].From, all[i].Earlier, all[i].Files = t.From, t.Earlier, t.Files
	}
	return all
}

func toldOf(turns []core.Turn) []toldTurn {
	all := make([]toldTurn, len(turns))
	for i, t := range turns {
		all[i] = toldTurn{Turn: t, From: t.From, Earlier: t.Earlier}
		for _, f := range t.Files {
			all[i].Files = append(all[i].Files, core.File{Name: f.Name, MediaType: f.MediaType})
		}
	}
	return all
}

// settleExpected reads from the journal the tasks of a hub that is gone, which were told of and have
// not come. It returns the first error of the journal.
func (h *Hub) settleExpected(ctx context.Context, hub string) error {
	expected := h.expectedOf(hub)
	failed := make([]error, len(expected))
	eachAtOnce(expected, func(i int, id core.TaskID) {
		events, _, err := h.stored(ctx, id)
		var gap *journal.GapError
		switch {
		case errors.Is(err, journal.ErrUnknown): // the hub has told of it and stored nothing
			h.arrived(id)
		case err != nil && !errors.As(err, &gap):
			failed[i] = err
		default:
			h.extendWith(id, events, h.extend)
		}
	})
	return cmp.Or(failed...)
}

// expectedOf returns the tasks of a hub that were told of and have not come, in order.
func (h *Hub) expectedOf(hub string) []core.TaskID {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.expected(hub)
}

// expected is expectedOf. Callers hold mu.
func (h *Hub) expected(hub string) (all []core.TaskID) {
	for id := range h.talk.expected {
		if owner, _ := h.ownerOf(task.OwnerOf(id)); owner == hub {
			all = append(all, id)
		}
	}
	slices.Sort(all)
	return all
}
