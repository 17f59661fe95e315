// Package stdio carries whole messages as lines (NDJSON) over any pair of byte
// streams: our own stdin and stdout ([Std]), a Unix socket ([Listen]), a
// child process ([Command]), or any two streams ([New]). Each is a
// link.Conn[[]byte, []byte] and a link.Batcher.
//
//	c := stdio.Std(stdio.Options{})
//	reason := link.New(c, link.Options{EOF: session.inputEnded}).Run(ctx, session.receive, session.rejected)
//
// # Lines
//
// A received message ends at \n, \r\n or a lone \r, and is returned as soon as its end was
// read. An empty line is an empty message. Text after the last line break is a message too
// if the stream ends properly. A line over the limit is skipped and reported as a
// *link.Reject with its size; the next line is received as usual.
//
// A sent message ends with \n. Line breaks within it, which JSON allows only between tokens,
// are sent as spaces.
//
// # How it ends
//
// No reason can be sent to the peer. The end of the stream is io.EOF; for a child process only
// if it has exited successfully, else a *link.Reason{Cause: PeerGone} with its exit status.
//
// # The one exception
//
// Close wakes every wait and joins every goroutine, with one exception: a stdin or stdout that
// the system cannot poll (a terminal, or a pipe in blocking mode) cannot be woken. The
// goroutine that reads or writes it stays after Close; it ends with its next line or the
// process.
package stdio
