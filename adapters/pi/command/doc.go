// Package command brings each command of a pi client to exactly one outcome.
//
// [Decode] decodes a frame. [Table] says which fields each type of command has and how long
// it may take. [Engine.Submit] refuses a command, replays the outcome of an equal one, or
// admits it. An admitted command waits in the lane of its session and for its
// dependencies, is performed by the [Host], and ends with an [Outcome]: when its handler
// returns one, when [Execution.Finish] is called, or when its time is over. An outcome that
// has to outlive the process is written to the journal before it is sent.
//
// The engine is a monitor: it calls the host in its turns. It knows sessions and connections
// only as [Session], [Client] and [Sink]. [AgentCircuits] and [Jobs] have locks of their own.
package command
