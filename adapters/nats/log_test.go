package nats_test

import (
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// openLog opens a log that is closed when the test ends.
func openLog(t *testing.T, o nats.Options, keep journal.Retention) core.RecordLog {
	t.Helper()
	o.Logs = map[string]journal.Retention{"commands": keep}
	j := open(t, o)
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Errorf("closing: got %v, want no error", err)
		}
	})
	return j.Log("commands")
}

func TestTheEmbeddedServerKeepsALog(t *testing.T) {
	coretest.RecordLog(t, func(t *testing.T) core.RecordLog {
		return openLog(t, nats.Options{Dir: t.TempDir()}, journal.Retention{})
	})
	coretest.RecordRetention(t, func(t *testing.T) core.RecordLog {
		return openLog(t, nats.Options{Dir: t.TempDir()}, journal.Retention{Bytes: 64 << 10})
	})
}

func TestAnExternalServerKeepsALog(t *testing.T) {
	s := external(t)
	n := 0
	coretest.RecordLog(t, func(t *testing.T) core.RecordLog {
		n++
		return openLog(t, nats.Options{URL: s.ClientURL(), Name: "hub-" + string(rune('a'+n))}, journal.Retention{Bytes: 64 << 20})
	})
}

func TestALogIsThereWhenItIsOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	j := open(t, nats.Options{Dir: dir, Logs: map[string]journal.Retention{"commands": {}}})
	if err := j.Log("commands").Append(t.Context(), []byte("one"), []byte("two")); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := openLog(t, nats.Options{Dir: dir}, journal.Retention{}).Replay(t.Context(), func(_ time.Time, r []byte) bool {
		got = append(got, string(r))
		return true
	}); err != nil || len(got) != 2 || got[0] != "one" || got[1] != "two" {
		t.Errorf("got %q and %v, want one and two", got, err)
	}
}
