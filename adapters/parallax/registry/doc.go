// Package registry serves parallax.registry.Registry, where published Parallax agents
// make themselves known that are gRPC servers themselves (serveAgent of the SDK).
//
// Such an agent says at which address it listens, and is called there. To the rest of
// the hub it is an agent of the gateway: [Registry] makes a stream of each lease, on
// which the registration is the hello, a renewal a heartbeat, and a call the way of a
// task and its answer. The rules of the gateway hold, and are written once.
//
// The package opens no socket: whoever makes a Registry connects to the agents.
package registry
