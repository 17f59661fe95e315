// Package ws carries whole messages over WebSocket.
//
// [Accept] answers an upgrade request, [Dial] makes one; both yield a [Conn],
// which is a link.Conn[[]byte, []byte], a link.Pinger and a link.Batcher. What is
// sent is always text; compression is never negotiated.
//
//	c, err := ws.Accept(w, r, ws.AcceptOptions{ReadLimit: 1_000_000, Oversize: ws.Reject})
//	if err != nil {
//		return // Accept has answered the request
//	}
//	reason := link.New(c, link.Options{}).Run(ctx, session.receive, session.rejected)
//
// # At the door
//
// A browser page may only connect from the host it was loaded from, or from one
// that is allowed by name (Origin). On a loopback listener the host that the
// request names must be a loopback name too (Host), which keeps out pages whose
// name was rebound to 127.0.0.1. Programs that are no browsers send no Origin and
// are let in.
//
// # How it ends
//
// Close tells the peer a close code and takes the socket down within about a
// second, whether the peer answers or not. What the peer says or fails to say is
// read back as:
//
//	close 1000, 1001 or without a code   io.EOF
//	any other close code                 *link.Reason with that Code
//	the stream ends without a close      *link.Reason{Cause: PeerGone}, never io.EOF
//	a frame that breaks RFC 6455         *link.Reason{Cause: Protocol}
//	text that is not UTF-8               *link.Reason{Cause: Protocol, Code: 1007}
//	nothing is taken for 5 seconds       *link.Reason{Cause: Slow}; only control frames
//	                                     are judged here, messages by the link
//
// # Memory
//
// An idle connection keeps less than 1 KiB of buffers; a busy one borrows more for
// the time of a message or a burst. To make use of that, return from the HTTP
// handler after Accept and run the link in a goroutine of your own: as long as the
// handler stands, so do the request and the buffers that net/http read it with
// (measured with both loops of a link: 14 KiB instead of 29).
package ws
