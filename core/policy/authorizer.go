package policy

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Authorizer decides who has which right on what. It is safe for concurrent use, returns at
// once and does not call the hub.
type Authorizer interface {
	// Allow returns a not_authorized Fault unless the principal may give the command about the
	// object. A command that only finds things, such as List, Follow or an Open that names no
	// agent yet, passes: the hub asks May about each thing that it finds.
	Allow(p core.Principal, c core.Command, o Object) error
	// May reports whether the principal has the right on the object: for lists and addresses.
	May(p core.Principal, right core.Right, o Object) bool
}

// Object is what a command or a right is about. The zero Object is the hub itself.
type Object struct {
	// Owner asked for the task or the question; zero if it is neither.
	Owner core.Principal
	// Target is the agent that works on it, that it is assigned to or that is found; or the pack.
	Target Target
	// Provider is the principal whose connection the agent or pack of Target has; zero if it
	// is not known.
	Provider core.Principal
}

// Anticipate makes the first decision about an agent, for which a [Table] of 10,000 rules needs
// up to 0.3 ms. It remembers what it found, so that later ones are quick, which are made while a
// lock is held.
func Anticipate(a Authorizer, card core.Card) {
	a.May(core.Principal{}, core.RightSee, Object{Target: TargetOf(card)})
}

// Limiter bounds what each principal may ask for. It is safe for concurrent use and
// returns at once.
type Limiter interface {
	// Admit returns a rate_limited or overloaded Fault if the caller has to wait.
	Admit(core.Call) error
}

// Auditor records audited calls. It is safe for concurrent use and returns at once.
type Auditor interface {
	Audit(Entry)
}

// AuditReader is an [Auditor] whose entries can be read.
type AuditReader interface {
	// Read calls yield for every line of the audit with a number above after, oldest first,
	// until yield returns false. What was audited before the call is among them.
	Read(ctx context.Context, after uint64, yield func(line []byte) bool) error
}

// ConnectionAuditor is an [Auditor] that also records who came in, or was refused.
type ConnectionAuditor interface {
	// Connected records a connection of a principal with a dialect, from an address if that is
	// known, or why it was refused.
	Connected(p core.Principal, dialect, from string, err error)
}

// Entry is one entry of the audit: an audited call and its outcome.
type Entry struct {
	At   time.Time
	Call core.Call
	// Task is the task that the call opened; "" if none.
	Task core.TaskID
	// Err is the error of the call; nil if it succeeded.
	Err error
}

// Tracer ties tasks to traces. It is safe for concurrent use and returns at once.
type Tracer interface {
	// Open returns the trace of a task that is opened.
	Open(Opening) core.Trace
	// Tool returns the trace of a tool call that a task of a trace shows.
	Tool(task core.Trace, call string) core.Trace
	// Ended says that a task which is sampled has ended.
	Ended(core.TaskID)
	// Missed reports whether a task that ended then may have been lost with an earlier process of
	// the hub.
	Missed(end time.Time) bool
	// Recovered says, once after a restart and before any Ended, which tasks the restart cut off and
	// which were missed, in the order of their ids, sampled or not.
	Recovered([]core.TaskID)
}

// Opening is what decides the trace of a task.
type Opening struct {
	// Given is the trace of the call that opens it; zero for none.
	Given core.Trace
	// IsCaused reports that it has a cause, whose trace is Cause, zero if it has none.
	IsCaused bool
	Cause    core.Trace
	// Tool is the tool of the hub that opens it, and Call the id of the call if the cause shows
	// it; "" for none.
	Tool, Call string
	// IsNotice reports that it is a notice, which nobody waits for.
	IsNotice bool
}
