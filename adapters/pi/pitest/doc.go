// Package pitest connects to a pi-server.
//
// [Connect] starts reading a connection and passes every [Frame] of the server to its caller;
// [Conn.Do] sends a command and returns its response. A [Transcript] assembles the events of
// a session into the text that a client shows.
//
// The package does not depend on a hub. A Conn has its own lock; a Transcript belongs to one
// goroutine.
package pitest
