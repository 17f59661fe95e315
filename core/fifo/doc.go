// Package fifo is a queue of values in memory, first in, first out.
package fifo
