// Package question holds the questions that agents put to people, until somebody
// answers them or nobody's answer is waited for any more.
//
// A [Book] puts a question to every [View] of the conversation that it was asked in, or
// if there is none to every view of a conversation with the agent. The first answer
// settles it; so do its timeout, the end of the last task that it was asked for, and the
// end of its asker's connection. Asker and views are told through [Peer].
//
//	agent ── Put ──▶ Book ── Show ──▶ people
//	agent ◀─ Settled ── Book ◀─ Answer ── people
//
// A Book has one lock, under which it tells peers and calls the rules on who may read.
// It calls nothing else while it holds it, so callers may hold locks of their own.
//
// Two things may end while they are being registered: a task that a question is bound
// to, and the connection of a peer. Whoever registers checks again afterwards, and whoever
// ends first says so and then tells the Book, so that one of the two sees the other:
//
//   - Put binds a question to its tasks, then calls [Task.Working] of each without the
//     lock, then opens the question. A task stops being worked on before
//     [Book.TaskEnded] is called.
//   - The caller of Put and Watch checks afterwards whether its peer has left, and if so
//     calls [Book.Leave], which may be called more than once. A peer is marked as left
//     before Leave is called for it.
package question
