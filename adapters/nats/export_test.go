package nats

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"
)

// JetStream returns the server of a journal, for tests that write what no journal writes.
func (j *Journal) JetStream() jetstream.JetStream { return j.js }

// SetOwnerBytes sets after how many bytes the owner of the tasks is written again.
func (j *Journal) SetOwnerBytes(n int64) { j.ownerBytes = n }

// SetBounds sets the most bytes of a message, and of long lines that Heads keeps; 0 leaves
// one as it is.
func (j *Journal) SetBounds(part, lines int) {
	if part > 0 {
		j.part = part
	}
	if lines > 0 {
		j.lines = lines
	}
}

// HoldReads takes all places for reads of own tasks until release is called.
func (j *Journal) HoldReads() (release func()) {
	for range maxReads {
		j.tasks.reads <- struct{}{}
	}
	return func() {
		for range maxReads {
			<-j.tasks.reads
		}
	}
}

// Mark writes how far the streams are, as a running journal does from time to time.
func (j *Journal) Mark() { j.markRunning(context.Background()) }
