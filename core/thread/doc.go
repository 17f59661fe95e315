// Package thread keeps conversations: the turns of a thread, built from its tasks.
//
// An agent without a memory of its own gets the earlier turns with every request. A
// [Book] keeps the latest turns of the latest threads. An [Index] knows which tasks a
// thread has, so that it can be read as one sequence.
package thread
