// Package pi speaks pi-server: people and programs that use a pi client ask every
// agent of the hub with it.
//
// A pi session is a conversation bound to an agent, and the agents of the hub are
// its models. A [Server] holds the sessions of one hub; [Server.Serve] holds one
// connection, over WebSocket or over lines of JSON, until it ends. Sessions belong
// to the server and not to a connection: a run goes on when its client leaves, and
// whoever subscribes to its session sees it from its beginning.
//
// A frame from a client becomes a command (envelope.go, validate.go), is admitted
// or refused (admission.go), or is known already and replayed (replay.go), waits its
// turn in the lane of its session (lane.go) and for what it depends on (dependency.go),
// and runs until it has come to an outcome or its time is over (execution.go,
// deadline.go; table.go says which function). Outcomes that have to outlive the process
// go through the journal before anybody is told (keep.go, recover.go); again.go says which of
// them hold after a restart. A prompt becomes a task of the hub; its lane
// goes on when the task has ended.
//
// What all commands are held against is in limits.go and rates.go. Idle sessions leave
// memory when others need room, and come back when they are named (room.go, parking.go).
// Agents that keep failing are not asked for a while (agentcircuits.go). Where the operator allows
// it a client may run programs (bash.go, package shell).
//
// What happens to a command is told to its own client at once and to others gathered,
// as far as they want it (audience.go). What a client is sent goes through its outbox in order: the outcome of a prompt
// stands there behind a fence, which opens once the client has been told the end of
// the task. The events of the task themselves come from the client's own place in
// the task's log, at the client's own pace: a view (package render) turns them into
// AgentSession events.
//
// What was said in a session is a tree of entries (tree.go), of which the path to its
// leaf is the conversation (context.go). A file of pi's format gets the entries as
// they come, beside the lock (filing.go), and sessions are listed and loaded from such
// files (listing.go, loading.go, place.go). Clients look at the tree and move in it
// (treeview.go, navigate.go, branching.go). What became too long is summed up by the
// agent itself: cut.go says what of it, compaction.go how, autocompaction.go when.
//
// The codec is pure: frames to commands, events to frames. [Client] is the other
// end of the dialect. The package opens no socket.
package pi
