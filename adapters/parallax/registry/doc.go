// Package registry serves parallax.registry.Registry, where published Parallax agents
// register that are gRPC servers themselves (serveAgent of the SDK).
//
// To the rest of the hub such an agent is one of the gateway: [Registry] makes a stream of
// the gateway for each lease (direct.go). The registration is its hello, a renewal a
// heartbeat, and a task a call of the agent.
//
// The package opens no socket: [Options] has the function that connects to an agent.
package registry
