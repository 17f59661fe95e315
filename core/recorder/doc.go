// Package recorder writes the events of tasks to the journal, and knows how far it is.
//
// A [Recorder] is one more reader of every task, in one goroutine. Tasks do not wait for it:
// events that it has not written yet stay in memory, and [Recorder.Behind] reports when the
// journal is so late that ends must be recorded before readers get them. It writes events in
// batches, first their token usage, then the records. It repeats a write that fails until it
// succeeds. It ends when the journal was taken over: what it has not written then is not its
// to write.
package recorder
