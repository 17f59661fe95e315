// Package pi speaks pi-server: people and programs that use a pi client ask every
// agent of the hub with it.
//
// A pi session is a conversation bound to an agent, and the agents of the hub are
// its models. A [Server] holds the sessions of one hub; [Server.Serve] holds one
// connection, over WebSocket or over lines of JSON, until it ends. Sessions belong
// to the server and not to a connection: a run goes on when its client leaves, and
// whoever subscribes to its session sees it from its beginning.
//
// The work is divided into packages, which know nothing of this one:
//
//   - command brings a frame to its one outcome: admission, lanes, replay, journal;
//   - conversation keeps what was said, and its file;
//   - render turns the events of a task into frames;
//   - shell runs a program of a client;
//   - wire writes JSON text, sessionfile knows pi's file format, reaper ends programs;
//   - client is the other end of the dialect.
//
// A frame is read by its connection (serve.go) and submitted to the engine of commands.
// When its turn has come the engine has the server perform it (request.go), which calls
// the handler of its type (commands.go). A handler answers at once, hands work to a job,
// or begins a run (prompt.go): a series of steps, each a task of the hub (run.go,
// retry.go), followed for the session's sake by [Server.record]. All that sessions are
// made of is touched in turns of the engine, one at a time.
//
// A subscriber (subscribers.go) gets frames and steps through its outbox in order
// (outbox.go): the outcome of a prompt waits there behind a fence, which opens once the
// client has been told the end of the task. The events of the task come from the client's
// own place in its log, at the client's own pace (deliver.go). What happens to a command
// is told to its own client at once and to others gathered (audience.go).
//
// Tasks that others open in the thread of a session are shown as runs of it (sharing.go,
// joining.go). Idle sessions leave memory when others need room, and come back when they
// are named (sessionlimits.go, parking.go). A conversation that became too long is summed
// up by its agent (compaction.go, autocompaction.go). What pi decides alone of who may do
// what is in rights.go.
//
// The package opens no socket.
package pi
