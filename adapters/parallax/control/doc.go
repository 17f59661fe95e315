// Package control serves the REST interface of a Parallax control plane, as far as a
// hub has what it speaks of: who is here, and executions, which are tasks of the hub.
//
// [New] makes an http.Handler for the paths below /api; it opens no socket. A request
// becomes a session of the hub for as long as it lasts. The id of an execution is that
// of its task, so that what was asked in any other way is found here too.
//
// An execution may have a webhook. One goroutine reads the tasks that have one, and a
// fixed number of others deliver what is to be told, signed and again until it is
// taken (webhook.go, delivery.go). Where they may deliver to is a matter of who runs the
// hub (target.go).
package control
