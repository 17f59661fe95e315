// Package stdio carries whole messages as lines (NDJSON) over any pair of byte
// streams: our own stdin and stdout ([Std]), a Unix socket ([Listen], [Dial]), a
// child process ([Command]), or what [New] is given. Each is a
// link.Conn[[]byte, []byte] and a link.Batcher.
//
//	c := stdio.Std(stdio.Options{})
//	reason := link.New(c, link.Options{EOF: session.inputEnded}).Run(ctx, session.receive, session.rejected)
//
// # Lines
//
// A message that comes in ends at \n, at \r\n or at a lone \r, and is handed on
// as soon as its end is seen. An empty line is an empty message. What stands
// behind the last line break when the stream ends in good order is a message too.
// A line over the limit is thrown away while it comes in and reported as a
// *link.Reject with its size; the next line is received as ever.
//
// A message that goes out ends with \n. Line breaks within it, which JSON allows
// only between its tokens, go out as blanks.
//
// # How it ends
//
// There is no way to tell the peer a reason: Close closes. The end of the stream
// reads as io.EOF; of a child process only if it has exited with success, for
// otherwise its end is a *link.Reason{Cause: PeerGone} that says how it died.
//
// # The one exception
//
// Every wait here is woken by Close, and every goroutine is joined by it, but for
// one case. A stdin or stdout that the system cannot poll (a terminal, or a pipe
// that was opened to block) cannot be woken. It is then read, or written, by a
// goroutine that Close leaves behind, to end with its next line or with the
// process.
package stdio
