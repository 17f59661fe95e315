// Package client is the other end of ACP, for programs that connect to a hub: [Work] is
// an agent, which answers queries and delegates with a [core.Handler], and [Client] a
// requester. Neither opens a socket.
package client
