// Package fifo has the waiting lines of the hub, first in, first out: a [Queue] for what waits under the lock of
// its owner, and a [Mailbox] for what waits for a goroutine.
package fifo
