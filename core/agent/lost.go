package agent

import (
	"errors"

	"github.com/dragoman-hub/dragoman/core"
)

var errLost = errors.New("the connection to the agent was lost")

// Lost returns the error of an [Agent.Work] whose agent is lost as a whole, so that Run is about
// to return: a retryable unreachable Fault. The host gives the agent no further tasks until Run
// is ready again. why is for people: how the agent ended.
func Lost(why error) *core.Fault {
	text := "its connection ended"
	if why != nil {
		text = why.Error()
	}
	return core.NewFault(core.CodeUnreachable, "the agent was lost: %s", text).Because(errLost)
}

// IsLost reports whether an error is one of [Lost].
func IsLost(err error) bool { return errors.Is(err, errLost) }
