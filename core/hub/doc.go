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
// In a cluster, an agent of another hub stands in the roster with the name of that hub, which runs its
// tasks: all that the engine knows of this is [Remote] (remote.go, place.go). Such a task reads like any
// other ([task.Task.IsRemote]), and commands on it pass to where it is run. What hubs ask and tell each
// other beside that, such as lists, is in package rpc.
//
// The hub starts two goroutines, the recorder and one that reads the journal for tools, and
// timers; in a cluster some more, which wait for other hubs.
//
// Locks, from the outermost: Hub.mu (sessions, slots, queues), the followers of threads,
// the views of a session (which tasks it watches), the store of tasks, Session.mu (what
// a session works on and has opened), a task. The questions to people ([question.Book]), the
// packs ([pack.Registry]), the topics ([topic.Book]) and the settings of agents have a lock
// each, which may be taken under any of these. None is held while anything waits.
package hub
