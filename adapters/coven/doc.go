// Package coven is the hub's end of the Coven agent protocol, and its codec. The agent's
// end is the package client below it.
//
// [Serve] holds one agent's connection from RegisterAgent to the end. The reader loop
// takes the agent's messages in order; the pump, a goroutine that lives while the hub
// has something for the agent, delivers that. Both write through the link and are
// joined before Serve returns. [NewService] is what a gRPC server registers; the
// package itself opens no socket and knows no transport.
//
// The codec is pure: codec.go turns a MessageResponse into an event and back,
// prompt.go a request into a SendMessage and back, steer.go the messages about a
// running request, register.go a RegisterAgent into a card and back. What Coven cannot
// say is folded into what it can, as [Translation] declares; what the hub cannot name
// passes unchanged.
//
// A Coven agent asks others with the hub's tools, by ExecutePackTool. [ServePack]
// holds the connection of a pack, whose tools it calls in the same way.
//
// [ClientService] serves people's programs: their conversations are the threads of the
// hub. A ledger (clientledger.go) records what happened in a task, a teller
// (clienttell.go) streams it as it happens.
package coven
