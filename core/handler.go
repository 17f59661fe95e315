package core

import "context"

// Handler answers requests, as the agent of any dialect. It reports events by say, in order,
// and returns nil when it is done, or an error when it failed (a [Fault] is passed on
// unchanged). It may report [Done], [Failed] or [Cancelled] itself; otherwise its return
// ends the task.
//
// say blocks while the connection is full, and returns an error once nothing more can be
// reported. ctx ends when the request is cancelled.
type Handler func(ctx context.Context, r Request, say func(Body) error) error
