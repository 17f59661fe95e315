package access

import (
	"fmt"

	"github.com/dragoman-hub/dragoman/core"
)

// MaxPrincipalBytes bounds the name of a principal, which is part of every task.
const MaxPrincipalBytes = 256

// CheckPrincipal returns an error that says what is allowed if name cannot be the name of a
// principal. The rules are those of agent ids, since a principal may join under its own
// name. The error does not repeat the name, which may be a token written in the wrong place.
func CheckPrincipal(name string) error {
	if len(name) > MaxPrincipalBytes || core.CheckAgentID(core.AgentID(name)) != nil {
		return fmt.Errorf("principal: want a name of 1 to %d bytes, such as alice, on one line, without control characters or blanks around it, "+
			"and none that is an address (hub, *, capability:..., domain:...)", MaxPrincipalBytes)
	}
	return nil
}
