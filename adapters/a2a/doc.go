// Package a2a serves the hub's agents to clients of A2A 1.0 (a2a-protocol.org), in JSON-RPC,
// HTTP+JSON and gRPC.
//
// Each agent has a card and two interfaces of its own over HTTP; the hub has one card with all
// agents, told apart by tenant, as they are over gRPC. A task of A2A is a task of the hub, a context a thread. A task belongs
// to the hub: it goes on without its connection, and a client that was cut off subscribes
// again.
//
//	POST /a2a/{agent}              JSON-RPC   ─┐
//	POST /a2a/{agent}/rest/…       HTTP+JSON  ─┼─▶ operation ──▶ hub.Session ──▶ task
//	lf.a2a.v1.A2AService           gRPC       ─┘
//	GET  /a2a/{agent}/.well-known/agent-card.json          task events ──▶ items ──▶ outlet
//
// [New] returns the handler, and [Server.Register] serves gRPC. What the hub says of a task becomes the items of a stream in one
// place, the translator; the task that GetTask returns is what those items add up to. The
// goroutine of a request reads its session of the hub; the only others of the package deliver
// push notifications, and send a message of gRPC.
package a2a
