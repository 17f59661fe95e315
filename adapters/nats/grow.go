package nats

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

// A hub that was alone and joins a cluster brings its journal along. The server would remove
// its streams, of which the cluster knows nothing. So the store is set aside before the server
// starts, and copied into the streams of the cluster before the first life of the hub there.
const (
	asideDir  = "nats-alone"           // the store that is to be copied
	copiedDir = "nats-before-cluster-" // begins its name after that, for people
)

// asideStreams returns where the streams in the store that was set aside are.
func asideStreams(dir string) string {
	return filepath.Join(dir, asideDir, "jetstream", "$G", "streams")
}

// setAside sets the store of a hub that was alone aside, after it was inspected. That of a hub of another
// name is left where it is, and refused.
func (j *Journal) setAside(dir, name string) (err error) {
	if err := refuseOthers(asideStreams(dir), name); err != nil {
		return err
	}
	store, aside := filepath.Join(dir, "nats"), filepath.Join(dir, asideDir)
	if _, err := os.Stat(filepath.Join(store, "jetstream", "$SYS")); err == nil {
		return nil // it is that of a member
	}
	if _, err := os.Stat(streamsDir(dir)); err != nil {
		return ignoreMissing(err)
	}
	if err := refuseOthers(streamsDir(dir), name); err != nil {
		return err
	}
	if _, err := os.Stat(aside); err == nil {
		return fmt.Errorf("there are two stores of a hub without a cluster, %s and %s: remove one of them", store, aside)
	}
	if j.lost, err = inspect(dir, j.log); err != nil {
		return err
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
func (j *Journal) copyAside(ctx context.Context, dir string) error {
	streams := asideStreams(dir)
	if _, err := os.Stat(streams); err != nil {
		return ignoreMissing(err)
	}
	for _, f := range j.fences {
		if _, place, err := f.lastOwner(ctx); err != nil || place > 0 {
			return errors.Join(err, keepCopied(dir)) // a life has begun after all was copied
		}
	}
	for _, f := range j.fences {
		s, err := j.js.Stream(ctx, f.stream)
		if err == nil && s.CachedInfo().State.Msgs > 0 {
			err = s.Purge(ctx)
		}
		if err == nil {
			err = f.copyFrom(ctx, filepath.Join(streams, f.stream))
		}
		if err != nil {
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

// copyFrom copies the messages in the files of a stream, without its owners.
func (f *fence) copyFrom(ctx context.Context, stream string) error {
	var msgs []*nats.Msg
	size := 0
	var err error
	if f.place, err = f.last(ctx); err != nil {
		return err
	}
	send := func() error {
		if len(msgs) == 0 {
			return nil
		}
		place, err := f.j.send(ctx, f.stream, msgs...)
		if err == nil && place != f.place+uint64(len(msgs)) {
			err = fmt.Errorf("the stream is at %d after %d messages behind %d: some were not stored", place, len(msgs), f.place)
		}
		f.place, msgs, size = place, msgs[:0], 0
		return err
	}
	next, more, err := replayFiles(stream, 1, math.MaxUint64, func(m message) (bool, error) {
		if m.subject == f.own {
			return true, nil
		}
		// The data is overwritten after this call.
		msgs = append(msgs, &nats.Msg{Subject: m.subject, Header: m.header, Data: append([]byte(nil), m.data...)})
		if size += len(m.data); size < copyBytes {
			return true, nil
		}
		return true, send()
	})
	if _, last := indexOf(stream); err == nil && more && next < last {
		err = fmt.Errorf("message %d of %s cannot be read", next, stream)
	}
	return errors.Join(err, send())
}
