// Package mcp is the hub's door for MCP clients: the tools of the hub and of its
// packs over streamable HTTP, called in the name of whoever holds the token.
//
//	POST tools/call ──▶ token ──▶ session of an agent ──▶ Session.Call
//	GET             ──▶ token ──▶ session of an agent ──▶ Session.WatchTools
//
// [New] makes an http.Handler for /mcp and what is below it. It opens no socket and
// checks neither Host nor Origin: it stands behind a server that does. The official
// SDK speaks the protocol; this package decides who asks, reads each message strictly
// before the SDK sees it, gives the id of a request back as it was sent, and keeps
// what an answer may take within limits.
//
// Nothing is kept between two requests but the tokens: a client that never sends a
// session header works, and one that does has it only so that what it cancels is its
// own. A request is served by the goroutine of its own that net/http gives it; the
// one that watches the tools for a subscription ends with it.
package mcp
