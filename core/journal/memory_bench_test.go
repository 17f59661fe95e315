package journal_test

import (
	"strconv"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// BenchmarkMemoryAtItsCap appends to a journal that is full, so that each record
// evicts an old one. The time per record must not depend on the size of the journal.
func BenchmarkMemoryAtItsCap(b *testing.B) {
	for _, mib := range []int64{1, 16, 128} {
		b.Run(strconv.FormatInt(mib, 10)+"MiB", func(b *testing.B) {
			j := journal.NewMemory(journal.Retention{Bytes: mib << 20})
			record := func(n int) journal.Record {
				return journal.Record{Task: core.TaskID(strconv.Itoa(n / 4)), Event: core.Event{Seq: uint64(n%4 + 1), Body: core.Text{Text: "some words"}}}
			}
			n := 0
			for size := int64(0); size < mib<<20; n++ {
				r := record(n)
				size += int64(r.Event.Size())
				if err := j.Append(b.Context(), r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := j.Append(b.Context(), record(n)); err != nil {
					b.Fatal(err)
				}
				n++
			}
		})
	}
}
