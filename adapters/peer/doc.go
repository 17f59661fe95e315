// Package peer is what two hubs of a cluster say to each other: the tasks that one opens for the
// other to own, the commands on them, and their events.
//
// A connection serves both directions. What the other hub asks is done by a session that stands
// for it; what it says of tasks that it owns goes into copies.
//
//	frame.go    the frames
//	peers.go    the other hubs, by name
//	peer.go     another hub in one of its lives
//	outbox.go   what is repeated until it has arrived
//	serve.go    one connection
//	inquiry.go  questions of a hub to another, and their answers
//	tunnel.go   connections of visitors: whose state is at the other hub
//	member.go   the part of a hub in a cluster
//
// Nothing is translated, folded or refused: events and commands pass in their stable JSON form.
package peer
