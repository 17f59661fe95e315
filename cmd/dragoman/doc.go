// Command dragoman is a hub that interprets between AI agents: an agent joins in
// the dialect that it speaks, and can ask and be asked by all the others.
//
// The program stands in internal: command has the commands, over config (settings), service
// (the hub put together), client (how a command talks to a running hub), agent, bridge
// and demo. The tests here hold the repository and its documentation to their rules; those
// that run whole hubs are in e2e.
package main
