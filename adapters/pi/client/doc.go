// Package client is the client's end of pi-server.
//
// [Connect] speaks over a connection: it hands on every [Frame] that the server sends, and
// [Conn.Do] sends a command and returns its response. A [Transcript] puts the events of a
// session together, as a client does that shows them.
//
// The package knows frames and no hub. A Conn has its own lock; a Transcript belongs to one
// goroutine.
package client
