// Package notify posts messages to the webhooks of the settings: what waits for people, which tasks of theirs
// have ended, and which agents are down.
//
// A [Notifier] is the observer of a hub. It notes what happens in a queue, and one goroutine reads the tasks,
// writes the messages and gives them to a [webhook.Sender], which posts them and tries again. No task waits for any
// of this: what a queue has no room for is dropped, counted as notify.dropped and logged. All of it is in memory.
//
// Each hub of a cluster tells of the tasks that it owns, and of the agents that were connected to it. An end is told
// once the journal has it, so that it stays what it was.
package notify
