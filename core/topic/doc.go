// Package topic holds a log of the latest notices, and who subscribes to which topics.
//
// A [Book] keeps each published notice once, with a number. A subscription is a place in
// that log: a slow subscriber slows nobody, and is told a gap where notices were dropped
// before it read them. Notices are delivered at least once. When a connection detaches
// its subscription stays: the next connection of the same [Identity] that calls
// [Book.Resume] goes on at its place, moved back by what the connection's transport
// accepted so recently that it may not have arrived.
//
//	publisher ── Publish ──▶ log ── Next ──▶ subscriber
//	subscriber ── Ack ─────▶ its place
//
// A Book has one lock, under which it calls [Subscriber.Wake] and the rule on who may
// hear; these must not call back. Next calls [Task.IsDone] without the lock, and looks
// again afterwards whether its place in the log is still the same. So callers may hold
// locks of their own; that of Next none which IsDone takes.
//
// What one lock makes atomic:
//
//   - A notice and a subscription that begins in the same moment: the notice has a number
//     before or after the beginning of the subscription, and is heard only if after.
//   - A detaching connection and a resuming one: the subscription goes to whichever of
//     the two calls comes second, so it is neither lost nor had by both.
//
// What it does not, and the caller does: Subscribe, Resume, Identify and Detach of one
// connection must not overlap, and none of the others may follow Detach. The hub calls
// them under its own lock, which says whether a connection is still there. The other
// methods may be called at any time; they do nothing for a connection that has detached.
package topic
