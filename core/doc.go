// Package core is the vocabulary of Dragoman: the values that every dialect is
// translated into, and their rules.
//
// A [Request] asks somebody, named by an [Address], for something. The hub turns
// it into a task: a sequence of [Event] values that begins with [Opened] and ends
// with exactly one of [Done], [Failed] or [Cancelled]. What an event says is its
// [Body], one of a closed set of kinds; a Body delivers itself to a [Sink], which
// has one method per kind, so that a new kind does not compile until every
// dialect has said what becomes of it.
//
// Who an agent is stands in its [Card], who a sender is in a [Principal], what
// went wrong in a [Fault], how far something got in a [Receipt], and where a
// reader is in a [Cursor].
//
// Values are immutable once handed over: nobody changes a slice or a map that an
// event, a request or a card holds. The package starts no goroutine and imports
// the standard library alone, but for the library that makes ids.
package core
