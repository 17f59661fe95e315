package nats

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A hub that was alone and joins a cluster brings its journal along. The server would remove
// its streams, of which the cluster knows nothing. So the store is set aside before the server
// starts, and copied into the streams of the cluster before the first life of the hub there.
const (
	storeDir  = "nats"                 // the store of the embedded server
	asideDir  = "nats-alone"           // the store that is to be copied
	copiedDir = "nats-before-cluster-" // begins its name after that, for people
)

// streamsIn returns where the embedded server keeps its streams in a store.
func streamsIn(store string) string { return filepath.Join(store, "jetstream", "$G", "streams") }

// setAside sets the store of a hub that was alone aside. That of a hub of another name is left where it is, and
// refused.
func (j *Journal) setAside(dir, name string) error {
	store, aside := filepath.Join(dir, storeDir), filepath.Join(dir, asideDir)
	if err := refuseOthers(streamsIn(aside), name); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(store, "jetstream", "$SYS")); err == nil {
		return nil // it is that of a member
	}
	if _, err := os.Stat(streamsIn(store)); err != nil {
		return ignoreMissing(err)
	}
	if err := refuseOthers(streamsIn(store), name); err != nil {
		return err
	}
	if _, err := os.Stat(aside); err == nil {
		return fmt.Errorf("there are two stores of a hub without a cluster, %s and %s: remove one of them", store, aside)
	}
	j.log.Info("the hub joins a cluster: its journal is copied there", "from", aside)
	return os.Rename(store, aside)
}

// refuseOthers returns an error if the tasks of a hub alone are there, but none of this name: they would not
// be found any more.
func refuseOthers(streams, name string) error {
	stored := slices.Sorted(maps.Values(namesStored(streams)))
	if len(stored) == 0 || slices.Contains(stored, name) {
		return nil
	}
	return fmt.Errorf("the journal in %s is that of the hub %s: start it with that name (--hub-name %[2]s), or the hub %s with another data directory", streams, stored[0], name)
}

// copyAside copies the store that was set aside, if there is one, to the streams of the hub in
// the cluster. What an earlier start copied in part is copied again.
func (j *Journal) copyAside(ctx context.Context, dir string) (err error) {
	if _, err := os.Stat(filepath.Join(dir, asideDir)); err != nil {
		return ignoreMissing(err)
	}
	for _, f := range j.fences {
		if _, place, err := f.lastOwner(ctx); err != nil || place > 0 {
			return errors.Join(err, keepCopied(dir)) // a life has begun after all was copied
		}
	}
	alone := &Journal{log: j.log, version: j.version, stop: func() {}, replicas: 1}
	defer func() { err = errors.Join(err, alone.Close()) }()
	alone.marks.read(filepath.Join(dir, asideDir))
	if err := dropIndexes(filepath.Join(dir, asideDir)); err != nil {
		return err
	}
	if err := alone.embed(Options{}, filepath.Join(dir, asideDir), ""); err != nil {
		return err
	}
	if err := alone.connect(ctx, ""); err != nil {
		return err
	}
	for _, f := range j.fences {
		if err := f.copyFrom(ctx, alone); err != nil {
			return fmt.Errorf("copying the stream %s to the cluster: %w", f.stream, err)
		}
	}
	return nil
}

// keepCopied notes that the store was copied.
func keepCopied(dir string) error {
	name := copiedDir + time.Now().UTC().Format("20060102T150405Z")
	return ignoreMissing(os.Rename(filepath.Join(dir, asideDir), filepath.Join(dir, name)))
}

// copyBytes is about how much is sent before it is acknowledged.
const copyBytes = 1 << 20

// copyFrom replaces what is in the stream by the messages that another journal has of it, without its owners.
func (f *fence) copyFrom(ctx context.Context, alone *Journal) error {
	s, err := alone.js.Stream(ctx, f.stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil // that version had no such stream
	}
	from := &fence{j: alone, stream: f.stream, own: f.own, subject: f.subject, keep: f.keep}
	if err == nil {
		err = from.opened(ctx, s)
	}
	if err == nil {
		s, err = f.j.js.Stream(ctx, f.stream)
	}
	if err == nil {
		err = s.Purge(ctx)
	}
	if err == nil {
		f.place, err = f.last(ctx)
	}
	if err != nil {
		return err
	}
	var msgs []*nats.Msg
	var holes []hole
	size, missing, unsure := 0, 0, from.cut()
	for m, err := range from.replay(ctx, getRequest{Seq: 1}, 0, &holes) {
		if err != nil {
			return err
		}
		before := f.place + uint64(len(msgs)) // the copies have no holes
		switch {
		case m.place <= unsure:
			f.setCut(before + 1)
		case len(holes) > missing:
			f.setCut(before)
		}
		missing = len(holes)
		msgs = append(msgs, &nats.Msg{Subject: m.subject, Header: partHeaders(m.header), Data: m.data})
		if size += len(m.data); size >= copyBytes {
			if err := f.copy(ctx, msgs); err != nil {
				return err
			}
			msgs, size = nil, 0
		}
	}
	err = f.copy(ctx, msgs)
	if len(holes) > missing {
		f.setCut(f.place)
	}
	return err
}

// copy stores messages that were read from another journal.
func (f *fence) copy(ctx context.Context, msgs []*nats.Msg) error {
	if len(msgs) == 0 {
		return nil
	}
	place, err := f.j.send(ctx, f.stream, msgs...)
	if err == nil && place != f.place+uint64(len(msgs)) {
		err = fmt.Errorf("the stream is at %d after %d messages behind %d: some were not stored", place, len(msgs), f.place)
	}
	f.place = place
	return err
}

// partHeaders returns those of the headers that the hub has written: a server adds others to its answers.
func partHeaders(all nats.Header) nats.Header {
	own := nats.Header{}
	for _, h := range []string{bytesHeader, partHeader, partsHeader} {
		if v, is := all[h]; is {
			own[h] = v
		}
	}
	return own
}
