// Package link is the life of one connection.
//
// A transport yields a [Conn], a pipe of whole messages. [New] wraps it in a
// [Link] and [Link.Run] holds the only reader loop and the only writer loop
// that the program has for it:
//
//	l := link.New(conn, link.Options{PingEvery: 30 * time.Second, PingTimeout: 10 * time.Second})
//	reason := l.Run(ctx, session.receive, session.rejected)
//	// the socket is down, nothing runs any more: clean up at leisure
//
// The reader loop is the goroutine that called Run; it hands each message to
// receive, in order. The writer loop is one more goroutine, which there is while
// something is queued; it takes what [Link.Send] has queued, all of it in one go,
// and writes it. Between messages neither allocates, and an idle link costs a few
// hundred bytes beside the goroutine that called Run. A goroutine of its own that
// sends, such as a pump, may [Link.Hold] what it sends and write it with [Link.Flush]:
// little then needs no writer loop. Never do so where a message is received: it would
// wait for the peer. There is one writer at a time.
//
// The queue is bounded in bytes. When it is full, Send waits: a slow peer slows
// down those who send to it and nobody else, and nothing is ever dropped. A
// peer that takes nothing at all within the write timeout is closed as [Slow].
//
// The first close reason wins and is kept. A close that the peer should
// understand (everything but [PeerGone], [Slow] and [Unresponsive]) first
// flushes what is already queued, within the drain timeout, so that an error
// message sent just before Close arrives.
package link
