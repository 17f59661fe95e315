// Package ws carries whole messages over WebSocket.
//
// [Accept] answers an upgrade request, [Dial] sends one; both return a [Conn], which is a
// link.Conn[[]byte, []byte], a link.Pinger and a link.Batcher. Messages are sent as text;
// compression is never negotiated.
//
//	c, err := ws.Accept(w, r, ws.AcceptOptions{ReadLimit: 1_000_000, Oversize: ws.Reject})
//	if err != nil {
//		return // Accept has answered the request
//	}
//	reason := link.New(c, link.Options{}).Run(ctx, session.receive, session.rejected)
//
// # Who may connect
//
// A browser page may only connect if its Origin is the host of the request or an allowed
// one. On a loopback listener the Host of the request must be a loopback name too, which
// keeps out pages whose name was rebound to 127.0.0.1. Programs that are not browsers send
// no Origin and may connect.
//
// # How it ends
//
// Close sends a close code and closes the socket within about a second, whether the peer
// answers or not. The end by the peer is returned as:
//
//	close 1000, 1001 or without a code   io.EOF
//	any other close code                 *link.Reason with that Code
//	the stream ends without a close      *link.Reason{Cause: PeerGone}, never io.EOF
//	a frame that breaks RFC 6455         *link.Reason{Cause: Protocol}
//	text that is not UTF-8               *link.Reason{Cause: Protocol, Code: 1007}
//	nothing is read for 5 seconds        *link.Reason{Cause: Slow}, for control frames
//	                                     only; the link has a timeout for messages
//
// # Memory
//
// An idle connection has 1.3 KiB of buffers; a busy one borrows more for a message or a
// write. To benefit from that, return from the HTTP handler after Accept and run the link in
// another goroutine: while the handler runs, the request and the buffers of net/http stay in
// memory (measured with both loops of a link: 14 KiB instead of 29).
package ws
