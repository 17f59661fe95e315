package hub

import (
	"cmp"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Limits are the numbers of the engine. A zero field takes its default.
type Limits struct {
	// QueueLength is how many tasks may wait for one agent; default 64.
	QueueLength int
	// Retries is how often a task that failed before any output is given to
	// another agent; default 2, negative for never.
	Retries int
	// CancelGrace is how long an agent has to answer a cancel before the task
	// ends without it; default 5 s.
	CancelGrace time.Duration
	// SlotGrace is how long the slot of a task that ended without its agent stays
	// taken; default 5 s.
	SlotGrace time.Duration
	// Disconnect says whether the connection of an agent that lets this pass is
	// closed; default DisconnectSingle.
	Disconnect Disconnect
	// ApprovalTimeout is how long a person has to decide; default 300 s.
	ApprovalTimeout time.Duration
	// QuestionTimeout is how long a person has to answer a question that does not say;
	// default 60 s. Questions is how many may wait for people; default 1000.
	QuestionTimeout time.Duration
	Questions       int
	// Deadline is how long a task may take when neither its request nor its
	// requester's dialect says; default 300 s.
	Deadline time.Duration
	// MaxDeadline is how far away a deadline may be; default 7 days.
	MaxDeadline time.Duration
	// RequestBytes bounds a request; default 16 MiB.
	RequestBytes int
	// TaskBytes bounds what an agent may say in one task; default 64 MiB.
	TaskBytes int
	// HistoryBytes bounds the earlier turns that an agent without a memory gets
	// with a request; default 64 KiB.
	HistoryBytes int
	// Threads is how many threads are remembered; default 4096.
	Threads int
	// FinishedTasks and FinishedBytes bound the ended tasks that are kept in
	// memory beside the journal; defaults 1024 and 64 MiB.
	FinishedTasks int
	FinishedBytes int
	// UnrecordedBytes bounds the ended tasks in memory beyond FinishedBytes, because
	// the journal has not taken them yet: while there are more, nothing new is taken
	// in; default 256 MiB.
	UnrecordedBytes int
	// JournalLag is how far the journal may be behind what happens: while it is further
	// behind, the end of a task is told once it is recorded; default 200 ms, negative to
	// record every end before it is told.
	JournalLag time.Duration
	// Packs is how many packs may be connected, and PackTools how many tools each
	// may provide; defaults 64 and 128.
	Packs     int
	PackTools int
	// PackCalls is how many calls may wait for one pack; default 256. Their inputs
	// have RequestBytes together.
	PackCalls int
	// ToolTimeout is how long a call of a pack's tool may take that does not say,
	// MaxToolTimeout how long it may say at most; defaults 30 s and 300 s.
	ToolTimeout    time.Duration
	MaxToolTimeout time.Duration
	// CauseMemory is how long after its last task an agent that asks is still
	// taken to act because of it, so that a timer does not begin a new chain;
	// default 30 s, negative for not at all.
	CauseMemory time.Duration
	// KeepNotices is how long a notice is kept for subscribers who are away or slow,
	// and NoticeBytes how many bytes of them; defaults 10 min and 4 MiB.
	KeepNotices time.Duration
	NoticeBytes int
}

// Or returns the limits with their defaults in place.
func (l Limits) Or() Limits {
	return Limits{
		QueueLength:     cmp.Or(l.QueueLength, 64),
		Retries:         cmp.Or(l.Retries, 2),
		CancelGrace:     cmp.Or(l.CancelGrace, 5*time.Second),
		SlotGrace:       cmp.Or(l.SlotGrace, 5*time.Second),
		Disconnect:      cmp.Or(l.Disconnect, DisconnectSingle),
		ApprovalTimeout: cmp.Or(l.ApprovalTimeout, 300*time.Second),
		QuestionTimeout: cmp.Or(l.QuestionTimeout, 60*time.Second),
		Questions:       cmp.Or(l.Questions, 1000),
		Deadline:        cmp.Or(l.Deadline, 300*time.Second),
		MaxDeadline:     cmp.Or(l.MaxDeadline, 7*24*time.Hour),
		RequestBytes:    cmp.Or(l.RequestBytes, 16<<20),
		TaskBytes:       cmp.Or(l.TaskBytes, 64<<20),
		HistoryBytes:    cmp.Or(l.HistoryBytes, 64<<10),
		Threads:         cmp.Or(l.Threads, 4096),
		FinishedTasks:   cmp.Or(l.FinishedTasks, 1024),
		FinishedBytes:   cmp.Or(l.FinishedBytes, 64<<20),
		UnrecordedBytes: cmp.Or(l.UnrecordedBytes, 256<<20),
		JournalLag:      cmp.Or(l.JournalLag, 200*time.Millisecond),
		Packs:           cmp.Or(l.Packs, 64),
		PackTools:       cmp.Or(l.PackTools, 128),
		PackCalls:       cmp.Or(l.PackCalls, 256),
		ToolTimeout:     cmp.Or(l.ToolTimeout, 30*time.Second),
		MaxToolTimeout:  cmp.Or(l.MaxToolTimeout, 300*time.Second),
		CauseMemory:     cmp.Or(l.CauseMemory, 30*time.Second),
		KeepNotices:     cmp.Or(l.KeepNotices, 10*time.Minute),
		NoticeBytes:     cmp.Or(l.NoticeBytes, 4<<20),
	}
}

// Disconnect says whether the connection of an agent is closed that did not end a
// task in time. The zero Disconnect is unset and means DisconnectSingle.
type Disconnect uint8

// The answers to an agent that did not end a task in time (Fold enhancements,
// section 4, timeout behaviour).
const (
	_                Disconnect = iota
	DisconnectSingle            // one that runs a single task at a time: it is stuck
	DisconnectAlways            // any
	DisconnectNever             // none: its slot is free again, whatever it still does
)

var disconnects = [...]string{"", "single", "always", "never"}

// String returns the name of the answer in a configuration.
func (d Disconnect) String() string { return disconnects[min(int(d), len(disconnects)-1)] }

// UnmarshalText implements encoding.TextUnmarshaler. It returns an invalid Fault for
// a name that is none.
func (d *Disconnect) UnmarshalText(b []byte) error {
	for i, name := range disconnects {
		if i > 0 && name == string(b) {
			*d = Disconnect(i)
			return nil
		}
	}
	return core.NewFault(core.CodeInvalid, "unknown answer %q: send one of %q", b, disconnects[1:])
}
