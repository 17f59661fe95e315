// Package link runs one connection: its reader, its writer, its limits and its end.
//
// A transport returns a [Conn], a pipe of whole messages. [New] wraps it in a [Link], and
// [Link.Run] is the only reader loop and the only writer loop of the connection:
//
//	l := link.New(conn, link.Options{PingEvery: 30 * time.Second, PingTimeout: 10 * time.Second})
//	reason := l.Run(ctx, session.receive, session.rejected)
//	// the socket is closed and nothing of the link runs any more
//
// The reader loop is the goroutine that called Run; it passes each message to receive, in
// order. The writer loop is a second goroutine, which exists while something is queued; it
// writes everything that [Link.Send] has queued at once. Neither allocates per message, and
// an idle link costs a few hundred bytes besides the goroutine that called Run. A goroutine
// that only sends may collect messages with [Link.Hold] and write them with [Link.Flush]; a
// few messages then need no writer loop. Never call Flush from receive: it would wait for
// the peer.
//
// The queue is bounded in bytes. When it is full, Send waits: a slow peer slows down only
// those who send to it, and nothing is dropped. A peer that reads nothing within the write
// timeout is closed as [Slow].
//
// The first close reason is kept. A close that the peer should understand (any but
// [PeerGone], [Slow] and [Unresponsive]) first flushes the queue, within 2 s,
// so that an error message sent just before Close arrives.
package link
