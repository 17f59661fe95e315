package policy

import (
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Authorizer decides which principal may give which command, and ask which agent. It is safe
// for concurrent use, returns at once and does not call the hub.
type Authorizer interface {
	// Allow returns a not_authorized Fault unless the principal may give the command. owner
	// owns the object of the command; the zero Principal means no owner.
	Allow(p core.Principal, c core.Command, owner core.Principal) error
	// AllowAgent returns a not_authorized Fault unless the agent may get what the principal
	// asks. It is called for every agent that an address may reach.
	AllowAgent(p core.Principal, agent core.AgentID) error
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

// Entry is one entry of the audit: an audited call and its outcome.
type Entry struct {
	At   time.Time
	Call core.Call
	// Err is the error of the call; nil if it succeeded.
	Err error
}

// Tracer ties calls to traces.
type Tracer interface {
	// Begin returns the trace for the call, and a function that is called with the outcome
	// once the call has been executed.
	Begin(core.Call) (core.Trace, func(error))
}
