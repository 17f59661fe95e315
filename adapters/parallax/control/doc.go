// Package control serves the part of a Parallax control plane's REST interface that a hub
// has: agents, and executions, which are tasks of the hub.
//
// [New] returns an http.Handler for the paths below /api; it opens no socket. A request
// has a session of the hub while it lasts. The id of an execution is that of its task, so
// that a task opened in any other way is an execution too.
//
// An execution may have a webhook. One goroutine reads the tasks that have one
// (webhooks.go), and a fixed number of workers delivers their events (delivery.go,
// queue.go) to the targets that the operator allows (target.go).
package control
