// Package peer is what two hubs of a cluster say to each other: the tasks that one opens for the
// other to own, the commands on them, and their events.
//
// A connection serves both directions. What the other hub asks is done by a session that stands
// for it; what it says of tasks that it owns goes into mirrors.
//
//	frame.go  the frames
//	peers.go  the connections of a hub, by the names of the others
//	serve.go  one connection
//
// Nothing is translated, folded or refused: events and commands pass in their stable JSON form.
package peer
