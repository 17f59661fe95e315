package core

import (
	"context"
	"time"
)

// RecordLog is an ordered log of records of one kind beside the journal: what a dialect
// needs after a restart of the hub, such as the outcomes of commands that clients may send
// again. The content of a record is up to its writer. All methods may be called
// concurrently.
type RecordLog interface {
	// Append writes records in the order given and returns once all of them survive
	// what the sync policy of the journal promises. After an error none, some or all
	// were written: a caller that appends them again must be able to read them twice. A
	// record longer than MaxRecord is refused as too_large, and then none is written.
	Append(ctx context.Context, records ...[]byte) error

	// Replay calls yield for every record that is kept, oldest first and with about
	// the time at which it was written, until yield returns false. The record belongs
	// to yield.
	Replay(ctx context.Context, yield func(written time.Time, record []byte) bool) error
}

// MaxRecord bounds one record of a [RecordLog], in bytes.
const MaxRecord = 512 << 10

// CheckRecords returns the Fault of the first record that is too long for a
// [RecordLog], or nil.
func CheckRecords(records [][]byte) error {
	for _, r := range records {
		if len(r) > MaxRecord {
			return NewFault(CodeTooLarge, "a record of %d bytes is longer than %d", len(r), MaxRecord)
		}
	}
	return nil
}
