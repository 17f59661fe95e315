// Package pack makes an MCP server a pack of the hub: the hub is its client, and its tools
// are offered as <pack>.<tool>.
//
//	p, err := pack.New(pack.Options{Name: "files", Dial: dial})
//	err = p.Run(ctx, session, ready) // until ctx ends or the server is lost; may be called again
//	p.Stop()
//
// The server is a child process that speaks lines ([Options.Dial]) or an address of
// streamable HTTP ([Options.URL]). [Pack.Run] finds out by a probe whether it speaks the
// stateless protocol of 2026-07-28 or one with initialize (2024-11-05 to 2025-11-25), lists
// its tools, offers them, and lists them again whenever the server says that they changed.
//
//	Session.Consume ──▶ queue ──▶ at most Calls goroutines ──▶ tools/call ──▶ Session.AnswerTool
//
// A call ends with its result, at its deadline, when Options.Timeout has passed without
// progress, when its caller withdraws it, or with the server. Progress becomes a tool state of
// the calling task; a question of the server (elicitation) becomes a question to the people
// of that task. Sampling and roots are not declared.
//
// Between two runs the tools stay listed, and calls of them fail as unreachable.
//
// The messages are read by package jsonrpc and not by the client of the official SDK: that
// client drops the taskSupport of tools, fails a call for one content block that it does not
// know, and ends its connection for one message that it cannot read. The servers of the
// SDK, of both eras, are the peers of the tests.
package pack
