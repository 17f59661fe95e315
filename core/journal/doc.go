// Package journal is the ordered memory of tasks: append, read from a place, and
// say so when a part is gone.
//
// [Journal] is the port. [Memory] is the reference: it passes the same suite as
// the durable one and forgets by the same retention. [Segmenter] merges the text
// of running tasks before it is written, so that a journal sees a few hundred
// segments where an agent sent thousands of words.
//
// Beside it stand logs of records of other kinds (core.RecordLog), such as what came
// of the commands that clients may send again: [MemoryLog] is their reference.
//
// The hub appends from one goroutine of its own. No task waits for the journal,
// except where somebody asked for the receipt "recorded".
package journal
