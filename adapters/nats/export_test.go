package nats

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"
)

// JetStream returns the server of a journal, for tests that write what no journal writes.
func (j *Journal) JetStream() jetstream.JetStream { return j.js }

// SetOwnerBytes sets after how many bytes the owner of the tasks is written again.
func (j *Journal) SetOwnerBytes(n int64) { j.ownerBytes = n }

// SetPart sets the most bytes of a message.
func (j *Journal) SetPart(part int) { j.part = part }

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
func (j *Journal) Mark() { j.mark(context.Background()) }
