// Package client makes a remote agent that speaks A2A 1.0 an agent of the hub: [New] returns
// an [agent.Agent] for a URL. It opens no socket itself; all requests go through an
// [http.Client].
//
// Run fetches the agent's card, checks it, and looks after it: it fetches the card again when
// a request failed and every few minutes, and returns once the remote is gone. Work gives the
// remote a task by SendStreamingMessage, or by SendMessage and GetTask where it does not
// stream, in JSON-RPC or HTTP+JSON, whichever the card prefers.
//
// A task has two goroutines beside its connection: that of Work reads what the remote says
// ([source]), tells it to the hub ([told]), and finds the task again after a cut; the other
// listens to the hub for cancels and decisions. A third exists while people are asked.
//
// The remote keeps the conversation: the context id of each thread is remembered between
// turns, and in Options.Sessions across restarts ([sessions]).
package client
