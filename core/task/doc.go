// Package task holds tasks: the log of what happened in each, its readers, its end.
//
// A [Task] is an append-only log of events with exactly one end (promises P1 and P2).
// Everybody who cares about it (who asked, who answers, who looks on, the journal) is a
// [Reader] with a place of its own, so that nobody waits for anybody: appending an event
// marks the readers as ready and tells their inboxes; each takes what is new at its own
// pace.
//
//	hub ── New, Assign ──▶ Task ── Ready ──▶ Inbox ── Take ──▶ connection
//	agent ── Report ─────▶
//
// A [Store] has the tasks of one hub: those in memory, and a catalog of the latest of
// which some are in the journal alone.
//
// Locks: Store.mu before Task.mu. Task.mu is held while an [Inbox] is told and while
// the methods of [Host] run, but for those that say otherwise: these call no task.
package task
