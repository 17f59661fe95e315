package nats_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// wantFormatError wants that the journal is refused as one of a later version.
func wantFormatError(t *testing.T, o nats.Options, since string) {
	t.Helper()
	_, err := nats.Open(t.Context(), o)
	var format *nats.FormatError
	if want := (nats.FormatError{Stream: "dragoman-tasks", Format: 99, Since: since, Own: o.Version}); !errors.As(err, &format) || *format != want {
		t.Errorf("opening it: got %v, want %v", err, &want)
	}
}

// wantStored wants that the journal opens with the task that [storeOne] has stored.
func wantStored(t *testing.T, o nats.Options, task core.TaskID) {
	t.Helper()
	j := open(t, o)
	if got, err := j.Read(t.Context(), task, 0, 0); err != nil || len(got) != 2 {
		t.Errorf("got %d events and %v, want both", len(got), err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// storeOne stores a task, and closes the journal.
func storeOne(t *testing.T, o nats.Options) core.TaskID {
	t.Helper()
	j, task := open(t, o), core.TaskID(core.NewID())
	if err := j.Append(t.Context(), taskRecords(task)...); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return task
}

// Another format is not taken for damage: nothing is set aside, and the version that the journal is of
// finds everything.
func TestAJournalInAFormatOfALaterVersionIsRefusedAndLeftAsItIs(t *testing.T) {
	o := nats.Options{Dir: t.TempDir(), Version: "v1.2.0"}
	task := storeOne(t, o)
	markStored(t, o.Dir, "dragoman-tasks", "99", "v9.0.0")
	wantFormatError(t, o, "v9.0.0")
	markStored(t, o.Dir, "dragoman-tasks", "1", "v1.2.0")
	wantStored(t, o, task)
}

// markStored is markFormat for a stream in a data directory that no hub has open.
func markStored(t *testing.T, dir, stream, format, version string) {
	t.Helper()
	s, err := server.NewServer(&server.Options{DontListen: true, JetStream: true, StoreDir: filepath.Join(dir, "nats"), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	conn, err := natsgo.Connect("", natsgo.InProcessServer(s))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	markFormat(t, js, stream, format, version)
}

// A hub that was alone copies its journal to the cluster that it joins, if this version reads it.
func TestAHubWhoseJournalIsInALaterFormatDoesNotJoinACluster(t *testing.T) {
	tier.Full(t, "it runs three servers")
	dir, at := t.TempDir(), addresses(t, 3)
	storeOne(t, nats.Options{Dir: dir, Name: "a", Version: "v1.2.0"})
	markStored(t, dir, "a-tasks", "99", "v9.0.0")
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	var others sync.WaitGroup
	defer others.Wait()
	defer cancel()
	for i, name := range []string{"b", "c"} {
		others.Go(func() {
			if j, err := nats.Open(ctx, member(t.TempDir(), name, "open sesame", at, i+1)); err == nil {
				<-ctx.Done()
				_ = j.Close()
			}
		})
	}
	o := member(dir, "a", "open sesame", at, 0)
	o.Version = "v1.2.0"
	_, err := nats.Open(ctx, o)
	var later *nats.FormatError
	if !errors.As(err, &later) || later.Format != 99 || later.Since != "v9.0.0" {
		t.Errorf("got %v, want that the format is of v9.0.0", err)
	}
	if kept, err := filepath.Glob(filepath.Join(dir, "nats-alone")); err != nil || len(kept) != 1 {
		t.Errorf("got %v and %v, want the former store left for that version", kept, err)
	}
}

// streamsAt returns the streams of a server.
func streamsAt(t *testing.T, at string) jetstream.JetStream {
	t.Helper()
	conn, err := natsgo.Connect(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// markFormat gives a stream another format.
func markFormat(t *testing.T, js jetstream.JetStream, stream, format, version string) {
	t.Helper()
	s, err := js.Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	c := s.CachedInfo().Config
	c.Metadata = map[string]string{"dragoman.format": format, "dragoman.version": version}
	if _, err := js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func TestAHubDoesNotTakeOverTasksInALaterFormat(t *testing.T) {
	at := external(t).ClientURL()
	a, b := opened(t, nats.Options{URL: at, Name: "a", Cluster: &nats.Cluster{Name: "test"}}), opened(t, nats.Options{URL: at, Name: "b", Version: "v1.2.0", Cluster: &nats.Cluster{Name: "test"}})
	if err := a.Append(t.Context(), taskRecords("one")[:1]...); err != nil {
		t.Fatal(err)
	}
	markFormat(t, streamsAt(t, at), "a-tasks", "99", "v9.0.0")
	_, taken := b.TakeOver(t.Context(), a.Life())
	listed := b.HeadsOf(t.Context(), "a", func(h journal.Head) bool {
		t.Errorf("got the head %+v, want none", h)
		return true
	})
	for what, err := range map[string]error{"taking over": taken, "listing": listed} {
		var later *nats.FormatError
		if !errors.As(err, &later) || later.Format != 99 || later.Since != "v9.0.0" {
			t.Errorf("%s: got %v, want that the format is of v9.0.0", what, err)
		}
	}
}

func TestAJournalOnAnExternalServerKeepsItsFormat(t *testing.T) {
	o := nats.Options{URL: external(t).ClientURL(), Version: "v1.2.0"}
	task := storeOne(t, o)
	js := streamsAt(t, o.URL)
	mark := func(format, version string) {
		t.Helper()
		markFormat(t, js, "dragoman-tasks", format, version)
	}
	metadata := func() string {
		t.Helper()
		s, err := js.Stream(t.Context(), "dragoman-tasks")
		if err != nil {
			t.Fatal(err)
		}
		m := s.CachedInfo().Config.Metadata
		return m["dragoman.format"] + " " + m["dragoman.version"]
	}
	for _, version := range []string{"v1.2.0", "v1.3.0"} {
		o.Version = version
		if wantStored(t, o, task); metadata() != "1 v1.2.0" {
			t.Errorf("after %s: got the format %q, want it of the version that began with it", version, metadata())
		}
	}
	mark("99", "v9.0.0")
	if wantFormatError(t, o, "v9.0.0"); metadata() != "99 v9.0.0" {
		t.Errorf("after it was refused: got the format %q, want it left", metadata())
	}
	mark("", "") // of a version before there were formats
	if wantStored(t, o, task); metadata() != "1 v1.3.0" {
		t.Errorf("of a version without formats: got %q, want it to have one now", metadata())
	}
	mark("new", "v9.0.0")
	if _, err := nats.Open(t.Context(), o); err == nil {
		t.Error("a format that is no number: got no error, want one")
	}
}

func TestAJournalOpensAfterItsRetentionWasLowered(t *testing.T) {
	o := nats.Options{Dir: t.TempDir(), Keep: journal.Retention{Bytes: 1 << 30, Age: time.Hour}}
	task := storeOne(t, o)
	o.Keep.Bytes = 1 << 20
	wantStored(t, o, task)
}
