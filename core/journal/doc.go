// Package journal keeps the events of tasks in order: append, read from a position, and
// report what is missing.
//
// [Journal] is the port. [Memory] is the reference: it passes the same tests as the durable
// journal and has the same retention. [Segmenter] merges the text of running tasks before
// it is written, so that a journal gets a few hundred segments where an agent sent
// thousands of chunks.
//
// [Shared] is a journal of several hubs, each of which writes to a part of its own and can take
// over that of another. Package coretest has its reference.
//
// The hub appends from one goroutine. A task waits for the journal only if its requester
// asked for the receipt "recorded".
package journal
