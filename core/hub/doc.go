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
// The hub starts two goroutines, the recorder and one that reads the journal for tools, and
// timers.
//
// Locks, from the outermost: Hub.mu (sessions, slots, queues), the followers of threads,
// the views of a session (which tasks it watches), the store of tasks, a task, Session.mu
// (what a session works on and has opened). The questions to people ([question.Book]), the
// packs ([pack.Registry]), the topics ([topic.Book]) and the settings of agents have a lock
// each, which may be taken under any of these. None is held while anything waits.
package hub
