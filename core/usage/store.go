package usage

import (
	"cmp"
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// Store keeps usage records across restarts. All methods may be called
// concurrently.
type Store interface {
	// Append writes records in the order given and returns once all of them are as safe
	// as the store promises. Records of one task come in the order of Seq. After an error
	// none, some or all were written; appending them again is harmless.
	Append(ctx context.Context, records ...Record) error

	// Replay calls yield for all records, oldest first and each once, until yield returns
	// false.
	Replay(ctx context.Context, yield func(Record) bool) error
}

// Retention bounds what a Store keeps. The bound that is reached first applies.
type Retention struct {
	// Age is how long a record is kept; zero means 400 days.
	Age time.Duration
	// Bytes is the size of all records, which also bounds how much a start has to read;
	// zero means 64 MiB.
	Bytes int64
}

// Or returns the retention with defaults in place of zeros.
func (r Retention) Or() Retention {
	return Retention{Age: cmp.Or(r.Age, 400*24*time.Hour), Bytes: cmp.Or(r.Bytes, 64<<20)}
}

// Once returns a function that calls next for each record once, even if it is
// repeated. It remembers the records of the last [MaxKeys] tasks.
func Once(next func(Record) bool) func(Record) bool {
	seen := lru.New(lru.Options[core.TaskID, uint64]{Count: MaxKeys})
	return func(s Record) bool {
		last, _ := seen.Get(s.Task)
		seen.Put(s.Task, max(last, s.Seq))
		return s.Seq <= last || next(s)
	}
}
