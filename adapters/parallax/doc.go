// Package parallax is the hub's end of the Parallax agent protocol: JSON messages over any
// connection of whole messages, in practice a WebSocket at /ws/agent.
//
// An agent connects, registers, gets tasks and answers each with task_result or
// task_error. [Serve] runs one connection; it opens no socket. A session is the state of
// a connection. Three goroutines serve it: the reader and the writer of its link, and one
// that delivers what happens on the hub. The latter two exist only while there is something to send.
//
// receive.go dispatches a message of the agent to its handler, and session.go a batch of
// the hub:
//
//	registration.go  register
//	status.go        heartbeat, status_update, disconnect; config_update
//	report.go        task_accepted, task_progress, task_result, task_error of a task
//	assign.go        task and task_cancelled for the agent that works
//	request.go       task_request, task_cancel of an agent that asks
//	requester.go     task_accepted and task_progress for the agent that asks
//	outcome.go       task_result and task_error for the agent that asks
//
// The codec is the package wire. [ServeGateway] serves the gRPC stream of published agents
// with the same session: a gatewayConn makes it a connection of frames (gateway.go), with
// the codec in the package gateway. The package registry makes such a stream for each
// agent that is a gRPC server itself.
//
// docs/dialects/parallax.md decides what the protocol's page leaves open, and defines the
// extensions: task_accepted and task_progress stream answers, task_request lets an agent
// ask another. An agent declares them in register.payload.config.extensions.
package parallax
