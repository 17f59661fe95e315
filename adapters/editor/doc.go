// Package editor is the hub as an agent of editors: the agent's side of the Agent Client
// Protocol (agentclientprotocol.com, version 1), JSON-RPC over any connection of whole
// messages, in practice a WebSocket at [Path] to which "dragoman editor" carries the stdin and
// stdout that an editor gives it.
//
// A session of the editor is a thread of the hub, and a prompt is a task for the address that
// the connection names. [Serve] runs one connection; it opens no socket. A connection is the
// state of one: its reader handles what the editor sends, its pump what happens on the hub.
// Whatever waits for the journal, such as session/load, runs in the pump, so that the replay
// and what follows it are in order.
//
//	receive.go       a message of the editor, dispatched to its handler; errors
//	initialize.go    initialize and what is declared
//	conversation.go  session/new, session/close, session/cancel
//	replay.go        session/load and session/resume, from the journal
//	list.go          session/list
//	offer.go         session/set_mode and session/set_config_option
//	prompt.go        session/prompt to a task, and its end to the result
//	content.go       content blocks to a request and back
//	turn.go          the events of a task to session/update
//	permission.go    approvals to session/request_permission
//	question.go      questions to people to elicitation/create
//
// The codec is the package wire. What becomes of each kind of event is in [Translation].
package editor
