package tool

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Definition describes a tool of the hub or of a pack.
type Definition struct {
	Name        string
	Description string
	// Pack is the id of its pack, set by the hub; "" for the hub's own.
	Pack string
	// InputSchema is a JSON Schema of the input.
	InputSchema json.RawMessage
	// Checks says that the tool checks its input itself: an InputSchema that cannot be compiled here is
	// then no reason to refuse the tool.
	Checks bool
	// Timeout is the longest time that a call may take.
	Timeout time.Duration
	// Requires are the capabilities that a caller must have declared, all of them.
	Requires []string
	// Hubs are the ids of the hubs that it came through, the nearest first. It is not offered to
	// one of them again (promise P10).
	Hubs []string
}

// CheckCaller returns a not_authorized Fault for a caller that lacks a required capability.
func (d Definition) CheckCaller(capabilities []string) error {
	for _, c := range d.Requires {
		if !slices.Contains(capabilities, c) {
			return core.NewFault(core.CodeNotAuthorized, "tool %s is for agents that declared the capability %s", d.Name, c)
		}
	}
	return nil
}

// Progress says how far a call is.
type Progress struct {
	// Call is the id that the caller chose.
	Call string
	// Detail is what the pack says, in words.
	Detail string
}

// Result is the result of a call: Output, or a Fault. It has both when an agent that was
// asked failed after some text: Output is then what agent_result returns.
type Result struct {
	// Call is the id that the caller chose.
	Call string
	// Pack is the pack of the tool; "" for the hub's own.
	Pack   string
	Output json.RawMessage
	Fault  *core.Fault
	// Foreign is the result in the words of the pack, for a caller of the same dialect (promise P11);
	// nil for nothing. It says no more than Output or Fault to anybody else.
	Foreign *core.Foreign
}
