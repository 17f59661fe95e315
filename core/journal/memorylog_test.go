package journal_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/journal"
)

func TestMemoryKeepsALog(t *testing.T) {
	coretest.RecordLog(t, func(*testing.T) core.RecordLog { return journal.NewMemoryLog(journal.Retention{}) })
	coretest.RecordRetention(t, func(*testing.T) core.RecordLog {
		return journal.NewMemoryLog(journal.Retention{Bytes: 64 << 10})
	})
}

func TestALogInMemoryForgetsWhatIsTooOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := journal.NewMemoryLog(journal.Retention{Age: time.Hour})
		if err := l.Append(t.Context(), []byte("old")); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour + time.Second)
		if err := l.Append(t.Context(), []byte("new")); err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := l.Replay(t.Context(), func(_ time.Time, r []byte) bool {
			got = append(got, string(r))
			return true
		}); err != nil || len(got) != 1 || got[0] != "new" {
			t.Errorf("got %q and %v, want the new one alone", got, err)
		}
	})
}
