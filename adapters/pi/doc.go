// Package pi serves pi clients: with one, people and programs ask every agent of the hub.
//
// A pi session is a conversation bound to an agent; to a client, agents are models. A
// [Server] holds the sessions of one hub, and [Server.Serve] serves one connection, over
// WebSocket or lines of JSON, until it ends. Sessions belong to the server: a run goes on
// when its client leaves, and a later subscriber sees it from its beginning.
//
// Parts of the work have packages of their own, which do not import this one:
//
//   - command brings a frame to its one outcome: admission, lanes, replay, journal;
//   - conversation keeps the messages of a session, and their file;
//   - render turns the events of a task into frames;
//   - shell runs a program of a client;
//   - sessionfile knows pi's file format, reaper ends programs;
//   - pitest is the other end of the dialect, for tests.
//
// A connection (connection.go, serve.go) submits each frame to the engine of package
// command. In its turn the engine has the server perform the command: request.go calls the
// handler of its type. A handler answers at once, hands the work to a job, or begins a run
// (prompt.go). A run is a series of steps, each a task of the hub (run.go, retry.go), whose
// events [Server.record] adds to the session. All state of sessions is touched in turns of
// the engine only.
//
// An outbox (outbox.go) holds what a client is to be sent, in order: frames, and steps. The
// events of a step come from the client's own place in the log of the task, at the client's
// own pace (deliver.go); a fence keeps what follows until the client has the end of the task.
// Lifecycle events of commands go to their own client at once, to others in batches
// (audience.go).
//
// A task that somebody else opens in the thread of a session is shown as a run of it
// (sharing.go). An idle session leaves memory when others need room, and returns with the
// next command that names it (parking.go). A conversation that no longer fits its agent is
// summarized by it (compaction.go, summary.go). rights.go has what pi alone decides about
// who may do what.
//
// The package opens no socket.
package pi
