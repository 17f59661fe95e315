// Package hub is the engine: it takes requests in, gives them to agents, and
// keeps every task to its promises until it has ended.
//
// A connection is a [Session]: it may ask, answer, or both. What it asks becomes a
// [Task], an append-only log of events. Everybody who cares about a task (who
// asked, who answers, who looks on, the journal) is a reader of that log with a
// place and a pace of its own, so nobody waits for anybody. A session reads all of
// its tasks through one call, [Session.Next], or is called itself ([Session.Attend]).
//
//	requester ── Open ──▶ Task log ── Next ──▶ agent
//	requester ◀── Next ── Task log ◀── Report ── agent
//	journal   ◀── Next ──────┘
//
// No method waits but Next, NextOr and Take. The hub starts one goroutine, the recorder,
// and timers.
//
// Locks, from the outermost: Hub.mu (who is here, slots, queues), Task.mu (one log
// and its state), Session.mu (what a session works on and reads). None is held
// while anything waits.
package hub
