package hub

import (
	"cmp"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
)

// Limits bound the hub. A zero field means its default.
type Limits struct {
	// Hops is how many tasks may be above one in its chain of causes; default 8.
	Hops int
	// QueueLength is how many tasks may wait for one agent; default 64.
	QueueLength int
	// Retries is how many times a task that failed before any output is given to another
	// agent; default 2, negative for never.
	Retries int
	// CancelGrace is how long an agent has to answer a cancel before the task ends without
	// it; default 5 s.
	CancelGrace time.Duration
	// SlotGrace is how long a task that ended without its agent keeps its slot; default 5
	// s.
	SlotGrace time.Duration
	// Disconnect says whether an agent is disconnected that does not end a task within
	// SlotGrace; default DisconnectSingle.
	Disconnect Disconnect
	// QuestionTimeout is how long a person has to decide, or to answer a question without a
	// timeout; default 24 h. Questions is how many questions may wait for people; default 1000.
	QuestionTimeout time.Duration
	Questions       int
	// Deadline is how long a task may take when neither its request nor its dialect says;
	// default 4 h.
	Deadline time.Duration
	// Silence is how long the agent of a task with a default deadline ([core.Opened]) may say
	// nothing while neither people nor tasks below are waited for; default 10 min, negative for
	// until the deadline.
	Silence time.Duration
	// MaxDeadline is how far away a deadline may be; default 7 days.
	MaxDeadline time.Duration
	// RequestBytes bounds a request; default 16 MiB.
	RequestBytes int
	// CardBytes bounds the card of an agent; default 64 KiB.
	CardBytes int
	// TaskBytes bounds what an agent may say in one task; default 64 MiB.
	TaskBytes int
	// HistoryBytes bounds the earlier turns that an agent without a memory gets with a
	// request; default 64 KiB.
	HistoryBytes int
	// Threads is how many threads are remembered; default 4096.
	Threads int
	// FinishedTasks and FinishedBytes bound the ended tasks that are kept in memory;
	// defaults 1024 and 64 MiB.
	FinishedTasks int
	FinishedBytes int
	// UnrecordedBytes bounds the ended tasks that are in memory beyond FinishedBytes
	// because the journal does not have them yet: above it new requests are refused;
	// default 256 MiB.
	UnrecordedBytes int
	// JournalLag is how far the journal may fall behind. While it is further behind, the
	// end of a task is told only once it is recorded; default 200 ms, negative to record
	// every end before it is told.
	JournalLag time.Duration
	// Packs is how many packs may be connected, and PackTools how many tools each
	// may provide; defaults 64 and 128.
	Packs     int
	PackTools int
	// PackCalls is how many calls may wait for one pack; default 256. RequestBytes bounds
	// the sum of their inputs.
	PackCalls int
	// ToolTimeout is how long a call of a tool without a timeout may take, and
	// MaxToolTimeout bounds the timeouts of tools; defaults 30 s and 300 s.
	ToolTimeout    time.Duration
	MaxToolTimeout time.Duration
	// CauseMemory is how long after the end of its last task what an agent asks counts as
	// caused by that task, so that a timer does not start a new chain; default 30 s,
	// negative for not at all.
	CauseMemory time.Duration
	// KeepNotices is how long a notice is kept for subscribers that are slow or away, and
	// NoticeBytes bounds the sum of their sizes; defaults 10 min and 4 MiB.
	KeepNotices time.Duration
	NoticeBytes int
}

// WithDefaults returns the limits with defaults in place of zeros.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Hops:            cmp.Or(l.Hops, policy.DefaultHops),
		QueueLength:     cmp.Or(l.QueueLength, 64),
		Retries:         cmp.Or(l.Retries, 2),
		CancelGrace:     cmp.Or(l.CancelGrace, 5*time.Second),
		SlotGrace:       cmp.Or(l.SlotGrace, 5*time.Second),
		Disconnect:      cmp.Or(l.Disconnect, DisconnectSingle),
		QuestionTimeout: cmp.Or(l.QuestionTimeout, 24*time.Hour),
		Questions:       cmp.Or(l.Questions, 1000),
		Deadline:        cmp.Or(l.Deadline, 4*time.Hour),
		Silence:         cmp.Or(l.Silence, 10*time.Minute),
		MaxDeadline:     cmp.Or(l.MaxDeadline, 7*24*time.Hour),
		RequestBytes:    cmp.Or(l.RequestBytes, 16<<20),
		CardBytes:       cmp.Or(l.CardBytes, 64<<10),
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

// Disconnect says whether an agent that did not end a task in time is disconnected. The
// zero Disconnect is unset and means DisconnectSingle.
type Disconnect uint8

// The choices (Fold enhancements, section 4, timeout behaviour).
const (
	_                Disconnect = iota
	DisconnectSingle            // agents that run a single task at a time, which are stuck
	DisconnectAlways            // all agents
	DisconnectNever             // no agent: its slot is free again, whatever it still does
)

var disconnects = [...]string{"", "single", "always", "never"}

// String returns the name in settings.
func (d Disconnect) String() string { return disconnects[min(int(d), len(disconnects)-1)] }

// UnmarshalText implements encoding.TextUnmarshaler. It returns an invalid Fault for an
// unknown name.
func (d *Disconnect) UnmarshalText(b []byte) error {
	for i, name := range disconnects {
		if i > 0 && name == string(b) {
			*d = Disconnect(i)
			return nil
		}
	}
	return core.NewFault(core.CodeInvalid, "unknown answer %q: send one of %s", b, strings.Join(disconnects[1:], ", "))
}
