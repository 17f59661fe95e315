// Package core is the vocabulary of Dragoman: the values that every dialect is
// translated into, and their rules.
//
// A [Request] asks the agent named by an [Address] for something. The hub turns it into
// a task: a sequence of [Event] values that begins with [Opened] and ends with exactly one
// of [Done], [Failed] or [Cancelled]. The [Body] of an event is one of a closed set of
// kinds. It delivers itself to a [Sink], which has one method per kind, so that a new kind
// does not compile until every dialect handles it.
//
// A [Card] describes an agent, a [Principal] a sender, a [Fault] an error, a [Receipt] how
// far a request got, and a [Cursor] the position of a reader.
//
// Values are immutable once handed over: slices and maps in an event, a request or a card
// do not change. The package starts no goroutine and imports only the standard library and
// a library for ids.
package core
