// Package native is the hub's end of the native dialect: the events and commands of the hub
// themselves, a JSON object in each message. docs/dialects/native.md specifies the frames, and
// the package wire is their codec.
//
// [Accept] serves a connection that comes to the hub. [Serve] serves the connection of a child
// or a remote of the hub's own, over a session that has joined as its agent.
//
// A session is the state of a connection. These goroutines serve it: the reader and the writer
// of its link, a pump for what the hub says (two in [Serve]), and while calls wait for the
// journal or for another connection, one that makes them in order; and one for each question that
// waits for people.
//
//	receive.go  a frame of the peer
//	calls.go    the commands that are executed at once
//	later.go    those that may wait
//	list.go     the lists
//	ask.go      questions of the peer to people
//	deliver.go  what the hub says
package native
