// Package client is the other end of the native dialect, for programs that connect to a hub: a
// [Client] gives commands and follows their tasks, and [Work] is an agent. Neither opens a
// socket.
package client
