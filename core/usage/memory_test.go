package usage_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/usage"
)

func TestAStoreInMemoryRemembersWhatWasSpent(t *testing.T) {
	coretest.Usage(t, func(*testing.T) usage.Store { return usage.NewMemory(usage.Retention{}) })
	coretest.UsageRetention(t, func(*testing.T) usage.Store { return usage.NewMemory(usage.Retention{Bytes: 64 << 10}) })
}

func TestAStoreInMemoryForgetsWhatIsTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := usage.NewMemory(usage.Retention{Age: 48 * time.Hour})
		count := func() (n int) {
			if err := m.Replay(t.Context(), func(usage.Record) bool { n++; return true }); err != nil {
				t.Fatal(err)
			}
			return n
		}
		for i := range 3 {
			if err := m.Append(t.Context(), usage.Record{Task: "t", Seq: uint64(i + 1), At: time.Now()}); err != nil {
				t.Fatal(err)
			}
			<-time.After(24 * time.Hour)
		}
		if got := count(); got != 2 {
			t.Errorf("got %d spendings, want 2: the first is too old", got)
		}
		<-time.After(48 * time.Hour)
		if got := count(); got != 0 {
			t.Errorf("got %d spendings, want none", got)
		}
	})
}
