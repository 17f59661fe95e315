// Package topic holds a log of the latest notices, and the subscriptions to their topics.
//
// A [Book] keeps each published notice once, with a number. A subscription is a position in
// that log: a slow subscriber delays no other, and gets a gap where notices were dropped
// before it read them. Notices are delivered at least once. When a connection detaches its
// subscription is kept: the next connection of the same [Identity] that calls [Book.Resume]
// continues at its position, moved back by what the transport accepted so recently that it
// may not have arrived.
//
// The Books of a cluster tell each other of subscriptions, see [Word]: one goes to the hub where its
// identity resumes.
//
//	publisher ── Publish ──▶ log ── Next ──▶ subscriber
//	subscriber ── Ack ─────▶ its position
//
// A Book has one lock, under which it calls [Subscriber.Wake] and the rule on what a subscriber
// may receive; these must not call back. Next calls [Task.IsDone] without the lock, and checks
// afterwards that the position is still the same. So callers may hold locks of their own;
// that of Next none which IsDone takes.
//
// What one lock makes atomic:
//
//   - A notice and a subscription that starts at the same moment: the notice has a number
//     before or after the start of the subscription, and is received only if after.
//   - A detaching connection and a resuming one: the subscription goes to whichever of the
//     two calls comes second, so it is neither lost nor duplicated.
//
// What the caller ensures: Subscribe, Resume, Identify and Detach of one connection do not
// overlap, and none of the others follows Detach. The hub calls them under its own lock,
// which also guards whether a connection has ended. The other methods may be called at any
// time; they do nothing for a connection that has detached.
package topic
