// Package command brings each command of a pi client to exactly one outcome.
//
// [Decode] reads a frame; the table of types says which fields it has and how long it may
// take. [Engine.Submit] refuses a command, answers it with what it came to before, or
// admits it. An admitted command waits its turn in the lane of its session and for the
// commands that it depends on, is performed by the [Host], and ends with an [Outcome]:
// when its handler returns one, when [Execution.Finish] is called, or when its time is
// over. Outcomes that have to outlive the process go through the journal before anybody is
// told.
//
// The engine is a monitor: what a host does for commands happens in its turns. It knows
// of sessions and connections only what [Session], [Client] and [Sink] say. [AgentCircuits]
// and [Jobs] have locks of their own.
package command
