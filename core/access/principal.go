package access

import (
	"fmt"

	"github.com/dragoman-hub/dragoman/core"
)

// MaxPrincipalBytes bounds the name of a principal, which stands in every task.
const MaxPrincipalBytes = 256

// CheckPrincipal returns an error that says what is allowed when name cannot be the
// name of a principal. The rules are those of agent ids: a principal that shows a
// token may join under its own name. The error does not repeat the name, for
// somebody may have written the token in its place.
func CheckPrincipal(name string) error {
	if len(name) > MaxPrincipalBytes || core.CheckAgentID(core.AgentID(name)) != nil {
		return fmt.Errorf("principal: want a name of 1 to %d bytes, such as alice, on one line, without control characters or blanks around it, "+
			"and none that is an address (hub, *, capability:..., domain:...)", MaxPrincipalBytes)
	}
	return nil
}
