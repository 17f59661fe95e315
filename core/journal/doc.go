// Package journal keeps the events of tasks in order: append, read from a position, and
// report what is missing.
//
// [Journal] is the port. [Memory] is the reference: it passes the same tests as the durable
// journal and has the same retention. [Segmenter] merges the text of running tasks before
// it is written, so that a journal gets a few hundred segments where an agent sent
// thousands of words.
//
// The hub appends from one goroutine. No task waits for the journal, unless somebody asked
// for the receipt "recorded".
package journal
