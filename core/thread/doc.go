// Package thread keeps conversations: the turns of a thread, built from its tasks.
//
// An agent that keeps no memory of its own gets the turns before with every
// request. A [Book] is bounded in bytes for each thread and in threads. An [Index]
// knows which tasks a thread has, so that it can be read as one sequence.
package thread
