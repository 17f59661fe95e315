package nats_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

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
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, JetStreamMaxStore: 64 << 30, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server did not start")
	}
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
