// Package recorder writes what happens in tasks into the journal, and knows how far that
// has got.
//
// A [Recorder] reads every task as one more reader of its log, in one goroutine. Tasks do
// not wait for it: what it has not written yet stays in memory, and [Recorder.Behind]
// says when that is too much for ends to be told before they are recorded. It gathers
// what happens together and hands it over in bulk, first the token usage of it, then the
// records; a journal that refuses is asked again until it takes them.
package recorder
