// Package hub is the engine: it lets agents and those who ask meet, gives each task to
// the agent that is to have it, and keeps it to its promises until it has ended.
//
// A connection is a [Session]: it may ask, answer, or both. What it asks becomes a
// [task.Task], an append-only log of events with readers. A session reads all of its
// tasks through one call, [Session.Next], or is called itself ([Session.Consume]).
//
//	requester ── Open ──▶ Task log ── Next ──▶ agent
//	requester ◀── Next ── Task log ◀── Report ── agent
//	journal   ◀───────────┘ recorder
//
// No method waits but Next, NextOr and Take. The hub starts two goroutines, the recorder
// and one that reads results from the journal for tools, and timers.
//
// Locks, from the outermost: Hub.mu (sessions, slots, queues), the views of a session
// (which tasks it watches), the store of tasks, a task, Session.mu (what a session works
// on and has opened). The questions to people ([question.Book]), the packs
// ([pack.Registry]) and the topics ([topic.Book]) have a lock each, which may be taken
// under any of these. None is held while anything waits.
package hub
