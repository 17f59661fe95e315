package command

import (
	"context"
	"fmt"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// findAgent returns nil unless nobody can answer for an address yet: then an error that
// [client.IsAbsent] accepts. refused is the refusal of a question to the address, nil before the first one.
func findAgent(ctx context.Context, at *client.Client, to string, refused error) error {
	address, err := core.ParseAddress(to)
	if err != nil {
		return refused // the hub says what is wrong with it
	}
	here, err := at.Addressed(ctx, address)
	switch {
	case err != nil:
		return err
	case len(here) == 0:
		return refused // there may be one that may be asked and not be seen
	}
	for _, a := range here {
		switch {
		case a.Child == nil || a.Child.State != core.ChildFailed:
			return nil // the hub queues a question to one that it starts
		case a.Child.RetryMS > 0:
			err = client.FailedError{Agent: a}
		}
	}
	return err // nil: the hub says why they have failed, and waiting does not help
}

// whyQueued returns why no agent that answers for an address takes a task; "" if one is about to.
func whyQueued(ctx context.Context, at *client.Client, to string) string {
	address, err := core.ParseAddress(to)
	if err != nil {
		return ""
	}
	here, err := at.Addressed(ctx, address)
	if err != nil {
		return ""
	}
	for _, a := range here {
		if stateOf(a) == core.LoadIdle.String() {
			return ""
		}
	}
	if len(here) != 1 {
		return fmt.Sprintf("no agent for %s is free", to)
	}
	state := stateOf(here[0])
	if state == core.LoadOverloaded.String() { // it has as many tasks as it takes
		state = core.LoadBusy.String()
	}
	return fmt.Sprintf("%s is %s", here[0].ID, state)
}

// stateOf returns the state of an agent as it is shown: how far the hub has started it, unless it is ready.
func stateOf(a hub.AgentStatus) string {
	if a.Child != nil && a.Child.State != core.ChildReady {
		return a.Child.State.String()
	}
	return a.Load.State.String()
}
