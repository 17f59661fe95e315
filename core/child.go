package core

import "time"

// Child is the state of an agent or a pack that the hub runs or connects to itself.
type Child struct {
	State ChildState `json:"state"`
	// Restarts is how often it was started again since the hub started, or since it was last
	// restarted by hand.
	Restarts int `json:"restarts"`
	// LastError is why it ended last, or could not be started; "" if it never did.
	LastError string `json:"last_error,omitempty"`
	// RetryMS is the interval in which one that failed is started again by itself; 0 if it stays
	// failed until it is restarted.
	RetryMS int64 `json:"retry_ms,omitempty"`
	// PID is the process id while a process runs, else 0.
	PID int `json:"pid,omitempty"`
}

// Retry returns RetryMS as a duration.
func (c Child) Retry() time.Duration { return time.Duration(c.RetryMS) * time.Millisecond }

// ChildState is a step in the life of a Child. The zero value is unset.
type ChildState uint8

// The states of a Child.
const (
	_               ChildState = iota
	ChildStarting              // for the first time; tasks wait in its queue
	ChildReady                 // it does tasks
	ChildRestarting            // it was lost and is started again; tasks wait in its queue
	ChildFailed                // it could not be started; tasks are refused as unreachable
)

var childStates = names{"", "starting", "ready", "restarting", "failed"}

// String returns the name of the state in JSON.
func (s ChildState) String() string { return childStates.name(uint8(s)) }

// MarshalText implements encoding.TextMarshaler.
func (s ChildState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *ChildState) UnmarshalText(b []byte) error {
	return childStates.parse((*uint8)(s), b, "child state")
}
