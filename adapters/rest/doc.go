// Package rest is the hub's HTTP interface: what the command line, a console and
// any HTTP client use to ask agents and to follow what they answer.
//
// [New] makes an http.Handler for the paths below /v1. It opens no socket. A
// request is read strictly, becomes a session of the hub for as long as it lasts,
// and is answered in one of three forms: a JSON document, server-sent events, or
// JSON lines. Every error is an application/problem+json document with the code of
// a core.Fault. The OpenAPI document that [schemas.OpenAPI] holds describes all of
// it, and is served at /v1/openapi.json.
//
//	POST /v1/tasks ──▶ Session.Open ──▶ 201, the events, or the outcome
//	GET  /v1/tasks/{id}/events ──▶ Session.Watch ──▶ events behind the cursor
//
// A task that was opened here belongs to the hub and outlives its request, unless
// the client says keep: false: then the end of the connection cancels it. The
// goroutine that serves a request is the one that reads its session; the package
// starts none.
package rest
