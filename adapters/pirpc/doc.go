// Package pirpc runs pi as an agent: child processes of `pi --mode rpc` of any version.
//
//	a := pirpc.New(pirpc.Options{Dial: dial, Warm: 1})
//	err := a.Run(ctx, ready) // an [agent.Agent]; a host gives it tasks meanwhile
//
// Each thread has a process of its own while it is in use, for a process has one session. A
// [pool] keeps processes ready and ends idle ones. A [process] matches answers to commands and
// passes events to the [run] of the task that it works on. What a run says is put together by a
// [speech], which tells every piece of the answer once although pi retries failed calls of the
// model.
//
// Files: agent.go (the agent), pool.go, process.go, threads.go (which session a thread has),
// prompt.go (a request as pi gets it), extension.go (the tools of the hub). A run: run.go (from the
// prompt to the end), events.go (what pi says), told.go (what pi is told meanwhile), settle.go
// (whether pi still works), failure.go, speech.go, tool.go, dialog.go (approvals and questions).
package pirpc
