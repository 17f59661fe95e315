// Package rest is the HTTP interface of the hub, for the command line, a console and other
// HTTP clients: they ask agents and follow the answers.
//
// [New] returns an http.Handler for the paths below /v1. It opens no socket. A request is
// read strictly and has a session of the hub while it lasts. The answer is a JSON document,
// server-sent events, or JSON lines. Every error is an application/problem+json document
// with the code of a core.Fault. The OpenAPI document [schemas.OpenAPI] describes the
// interface and is served at /v1/openapi.json.
//
//	POST /v1/tasks ──▶ Session.Open ──▶ 201, the events, or the outcome
//	GET  /v1/tasks/{id}/events ──▶ Session.Watch ──▶ events after the cursor
//
// A task that was opened here belongs to the hub and outlives its request, unless the client
// sends keep: false; then the end of the connection cancels it. The goroutine of a request
// reads its session; the package starts no goroutines.
package rest
