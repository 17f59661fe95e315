package usage

import (
	"cmp"
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
)

// Store remembers what was spent beyond the end of the process. All methods may
// be called concurrently.
type Store interface {
	// Append writes spendings in the order given and returns once all of them
	// survive what the store promises. Those of one task come in the order of
	// their sequence. After an error none, some or all were written; appending
	// them again is harmless.
	Append(ctx context.Context, spendings ...Record) error

	// Replay calls yield for everything that is kept, oldest first and each
	// spending once, until yield returns false.
	Replay(ctx context.Context, yield func(Record) bool) error
}

// Retention says how much a Store keeps. Whatever is reached first applies.
type Retention struct {
	// Age is how long a spending is kept; zero means 400 days.
	Age time.Duration
	// Bytes is how much is kept in all, which bounds what a start reads; zero
	// means 64 MiB.
	Bytes int64
}

// Or returns the retention with its defaults in place.
func (r Retention) Or() Retention {
	return Retention{Age: cmp.Or(r.Age, 400*24*time.Hour), Bytes: cmp.Or(r.Bytes, 64<<20)}
}

// Once passes every spending on to next the first time that it comes. What comes
// again has to do so before [MaxKeys] other tasks.
func Once(next func(Record) bool) func(Record) bool {
	seen := lru.New(lru.Options[core.TaskID, uint64]{Count: MaxKeys})
	return func(s Record) bool {
		last, _ := seen.Get(s.Task)
		seen.Put(s.Task, max(last, s.Seq))
		return s.Seq <= last || next(s)
	}
}
