// Package mcp serves the tools of the hub and its packs to MCP clients over streamable HTTP,
// on behalf of the holder of a token.
//
//	POST tools/call ──▶ token ──▶ session of an agent ──▶ Session.Ask, Session.CallTool
//	GET             ──▶ token ──▶ session of an agent ──▶ Session.WatchTools
//
// [New] returns an http.Handler for /mcp and the paths below it. It opens no socket and does
// not check Host or Origin: the server before it does.
//
// Two eras of the protocol are served. Clients of the versions up to 2025-11-25 begin with
// initialize and may send a session header; those of 2026-07-28 say in each request what they
// are and can do. Nothing is kept of either: what the server has to know of initialize stands in
// the session header that it gives out.
//
// A call is an exchange: the goroutine of net/http that serves the request reads the session of
// the call, its run, and writes progress and the answer. A run may outlast its request: parked
// until the client returns with an answer of its user (askUser), or kept because the
// client follows it as a task. A task of the extension io.modelcontextprotocol/tasks is the
// task of the hub under the same id: nothing about it is stored here.
package mcp
