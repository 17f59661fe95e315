// Package mcp serves the tools of the hub and its packs to MCP clients over streamable HTTP,
// on behalf of the holder of a token.
//
//	POST tools/call ──▶ token ──▶ session of an agent ──▶ Session.Call
//	GET             ──▶ token ──▶ session of an agent ──▶ Session.WatchTools
//
// [New] returns an http.Handler for /mcp and the paths below it. It opens no socket and does
// not check Host or Origin: the server before it does. The official SDK implements the
// protocol. This package identifies the caller, reads each message strictly before the SDK
// gets it, returns request ids exactly as they were sent, and limits what an answer may
// take.
//
// Only tokens are kept between requests. A client need not send a session header; one that
// does can cancel its own requests. A request runs in its goroutine of net/http; the one
// that watches tools for a subscription ends with the request.
package mcp
