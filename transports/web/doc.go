// Package web is the HTTP surface that every other HTTP surface stands on: a chi
// router behind the limits and checks that a server on a user's own machine needs.
//
// Each request passes, in this order and before any route sees it:
//
//   - recovery: a panic becomes a 500, or a connection cut off where an answer had
//     begun, so that half an answer is never taken for a whole one;
//   - the Host check: a connection over loopback must ask for a loopback name or a
//     configured one, so that a page cannot reach the hub under a name of its own
//     whose address it has changed (DNS rebinding);
//   - the Origin check: a browser must come from the hub's own pages or from a
//     configured origin, WebSocket upgrades included;
//   - the limit on the body's size and on the time it may take.
//
// What is refused is answered as application/problem+json with a sentence that
// says what to change, and is told to [Options].OnDenied.
//
// Every write has a deadline, so that a client which stops reading costs a handler
// a bounded time. Streaming answers are written with [NewSSE] and [NewNDJSON]; they
// work behind any server, this one or another.
//
// The package imports net/http and chi and knows no dialect: routes are mounted by
// whoever makes the server.
package web
