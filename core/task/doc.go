// Package task holds tasks: the log of each, its readers, its end.
//
// A [Task] is an append-only log of events with exactly one end (promises P1 and P2).
// Requester, agent, viewers and journal each have a [Reader] with a position of its own and
// never wait for one another: appending an event marks the readers as ready and notifies
// their inboxes; each reader takes new events at its own pace.
//
//	hub ── New, Assign ──▶ Task ── Ready ──▶ Inbox ── Take ──▶ connection
//	agent ── Report ─────▶
//
// A [Store] has the tasks of one hub: those in memory, and a catalog of the latest ones,
// some of which are only in the journal.
//
// Locks: Store.mu before Task.mu. Task.mu is held during calls of an [Inbox] and of [Host],
// except for the methods that say otherwise; they call no task.
package task
