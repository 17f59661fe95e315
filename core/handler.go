package core

import "context"

// Handler answers requests: it is what stands behind the agent's end of every
// dialect. It says what it has to say through say, in order, and returns nil when
// it is done or an error when it failed (a [Fault] travels as it is). It may end
// by saying [Done], [Failed] or [Cancelled] itself; otherwise its return does.
//
// say blocks while the connection is full and returns an error once there is no
// use in saying more. ctx ends when the request is cancelled.
type Handler func(ctx context.Context, r Request, say func(Body) error) error
