// Package client is the client's end of pi-server.
//
// [Connect] begins to read a connection and passes every [Frame] of the server to its caller;
// [Conn.Do] sends a command and returns its response. A [Transcript] assembles the events of
// a session, as a client does to show them.
//
// The package knows frames and no hub. A Conn has its own lock; a Transcript belongs to one
// goroutine.
package client
