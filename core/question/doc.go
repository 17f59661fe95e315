// Package question holds the questions that agents ask people, until they are settled.
//
// A [Book] shows a question to every [View] of the conversation in which it was asked, or,
// without one, to every view of a conversation with the agent. Where there is no view either, it
// waits for those who read the list of questions: see [Book.Attend]. The first answer settles it;
// so do its timeout, the end of the last task that it was asked for, and the end of its
// asker's connection. Asker and views are told through [Peer].
//
// The Books of a cluster tell each other of their questions, see [Word]: all show and list them, and the
// hub where one was asked takes its answer. A hub that is gone takes its questions along.
//
//	agent ── Put ──▶ Book ── Show ──▶ people
//	agent ◀─ Settled ── Book ◀─ Answer ── people
//
// A Book has one lock. While it holds it, it calls only views, other Books and the rules on who may
// read. It tells how a question ended, to its asker and to its tasks, without the lock: only who tells of the
// end of a task may hold the lock of that task.
//
// A task, or the connection of a peer, may end while a question or a view is registered.
// Whoever registers checks again afterwards; whoever ends marks the end first and then
// tells the Book. So one of the two sees the other:
//
//   - Put binds a question to its tasks, then calls [Task.Working] of each without the
//     lock, then opens the question. A task is marked before [Book.TaskEnded] is called.
//   - The caller of Put or Watch checks afterwards whether its peer has left, and if so
//     calls [Book.Leave], which may be called more than once. A peer is marked as left
//     before Leave is called for it.
package question
