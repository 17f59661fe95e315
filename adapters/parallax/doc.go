// Package parallax is the hub's end of the Parallax agent protocol: JSON messages over
// any pipe of whole messages, in practice a WebSocket at /ws/agent.
//
// An agent connects, says who it is (register), and is then given tasks (task), which
// it answers with task_result or task_error. [Serve] holds one connection; it opens no
// socket. A session is the state of that connection: which tasks it holds, what it
// declared, when it was last heard of. Three goroutines run for a connection: the reader
// and the writer of its link, and the pump that turns what happens on the hub into
// frames.
//
// The codec is the package wire. [ServeGateway] is the hub's end of the gRPC stream that
// published agents speak: its messages are turned into those of a WebSocket and back
// (gateway.go, gatewayin.go, gatewayout.go), so that one session serves both. The package
// registry does the same for agents that are gRPC servers themselves.
//
// What the protocol's page leaves open is decided in docs/dialects/parallax.md, together
// with the extensions: task_accepted and task_progress, by which answers stream, and
// task_request, by which an agent asks another. They are used only with an agent that
// declared them in register.payload.config.extensions.
package parallax
