// Package web is the HTTP server under all HTTP surfaces: a chi router behind the limits and
// checks that a server on a user's own machine needs.
//
// Each request passes these checks, in this order and before its route:
//
//   - recovery: a panic becomes a 500, or cuts the connection if an answer had begun, so
//     that a client never takes a part of an answer for the whole;
//   - the Host check: a connection over loopback must ask for a loopback name or a
//     configured one, which prevents DNS rebinding: a page that points its own name to
//     the hub;
//   - the Origin check: a browser must come from the hub's own pages or from a
//     configured origin, WebSocket upgrades included;
//   - the limit on the body's size and on the time it may take.
//
// Routes serve GET and what changes something. The server answers HEAD as GET without the body, and
// OPTIONS with the methods that a route names in the Allow header of its 405.
//
// Refusals are answered as application/problem+json with a message that tells the client what
// to change, and reported to [Options].OnDenied.
//
// Every write has a deadline, so that a client which stops reading delays a handler for a
// bounded time.
//
// The package imports net/http and chi and knows no dialect: its user mounts the routes.
package web
