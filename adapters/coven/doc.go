// Package coven speaks the Coven agent protocol with agents: the hub's end of
// CovenControl.AgentStream, and the agent's.
//
// [Serve] holds one agent's connection from RegisterAgent to the end. The reader
// loop takes the agent's messages in order; the pump, a goroutine that there is while
// there is news, takes what the hub has for the agent; both write through the link and are joined before
// Serve returns. [Work] is the other end: it registers as an agent and runs a
// [core.Handler] for each request. [NewService] is what a gRPC server registers;
// the package itself opens no socket and knows no transport.
//
// The codec is pure: codec.go turns a MessageResponse into an event and back,
// prompt.go a request into a SendMessage and back, steer.go what steers one,
// register.go a RegisterAgent into a card and back. What Coven cannot say is folded into what it can, as [Translation]
// declares; what the hub cannot name travels as it came.
//
// A Coven agent asks others with the hub's tools, by ExecutePackTool. [ServePack]
// holds the connection of a pack, whose tools it calls in the same way.
//
// [ClientService] serves people's programs: their conversations are the threads of the
// hub. What is remembered of a task is its ledger (clientledger.go), what is told as
// it happens comes from a teller (clienttell.go).
package coven
