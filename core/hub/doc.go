// Package hub is the engine: it connects those who ask with agents, gives each task to an
// agent, and keeps the promises until the task has ended.
//
// A connection is a [Session]: it may ask, answer, or both. What it asks becomes a
// [task.Task], an append-only log of events with readers. A session reads all of its tasks
// through one call, [Session.Next], or passes a function to [Session.Consume].
//
//	requester ── Open ──▶ Task log ── Next ──▶ agent
//	requester ◀── Next ── Task log ◀── Report ── agent
//	journal   ◀───────────┘ recorder
//
// In a cluster, each hub owns the tasks of its agents. Of the tasks of others it has mirrors:
// they read like any task, and commands on them pass to the owner. A task of which nothing was
// said yet may move: its owner hands a copy to another hub, and stores one record that names it
// (move.go). That hub stores the copy, and runs the task once the record is stored (arrive.go).
// The tasks of a hub that is gone end or move in the hands of the one that has taken it over
// (inherit.go); mirrors get from the journal what became of them (takeover.go, stored.go).
//
// The hub starts two goroutines, the recorder and one that reads the journal for tools, and
// timers; in a cluster some more, which wait for other hubs and for the journal.
//
// Locks, from the outermost: Hub.mu (sessions, slots, queues), the followers of threads,
// the views of a session (which tasks it watches), the store of tasks, a task, Session.mu
// (what a session works on and has opened). The questions to people ([question.Book]), the
// packs ([pack.Registry]), the topics ([topic.Book]) and the settings of agents have a lock
// each, which may be taken under any of these. None is held while anything waits.
package hub
