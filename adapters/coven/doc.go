// Package coven is the hub's end of the Coven agent protocol, for agents and packs.
//
// [Serve] holds one agent's connection from RegisterAgent to the end. The reader loop
// handles the agent's messages in order; a delivery goroutine, which runs while the hub
// has something for the agent, sends that. Both write through the link and are joined
// before Serve returns. [ServePack] holds the connection of a pack, whose tools agents
// call as they call those of the hub. [NewService] and [NewPackService] are what a gRPC
// server registers; the package opens no socket.
//
// The codec is package wire, ClientService package conversation, and an agent's end
// package client.
package coven
