// Package bus carries frames between two hubs over a [cluster.Bus].
//
// A bus may lose messages. A [Conn] is reliable: like TCP it numbers bytes, acknowledges what was
// read, bounds what is under way and sends again what was lost. It connects two lives of hubs: when
// one of them ends, so does the Conn.
//
//	conn.go    the connection: what is sent and what was received
//	packet.go  the messages on the bus
package bus
