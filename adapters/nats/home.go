package nats

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// home is the data directory of the embedded server as it was opened: the directory, the lock in it and the
// directories of streams. Files in a directory that was removed, moved or replaced still take writes that nobody
// finds again, so home checks whether the paths still lead to what was opened.
type home struct {
	dir     string
	streams string          // where the directories of streams are
	opened  map[string]kept // by path
}

// kept is a directory or file that was opened. As long as it is open, no other file gets its inode number.
type kept struct {
	file *os.File
	info fs.FileInfo
}

// openHome opens the data directory, the lock in it if there is one, and the directories of streams.
func openHome(dir string, streams ...string) (*home, error) {
	h := &home{dir: dir, streams: streamsIn(filepath.Join(dir, storeDir)), opened: map[string]kept{}}
	lock := filepath.Join(dir, "lock")
	paths := []string{dir, lock}
	for _, s := range streams {
		paths = append(paths, h.of(s))
	}
	for _, path := range paths {
		f, err := os.Open(path)
		if path == lock && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("opening the data directory: %w", err), h.close())
		}
		info, err := f.Stat()
		h.opened[path] = kept{f, info}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("opening the data directory: %w", err), h.close())
		}
	}
	return h, nil
}

// of returns the directory of a stream.
func (h *home) of(stream string) string { return filepath.Join(h.streams, stream) }

// check returns an error that says what to do unless all paths lead to what was opened.
func (h *home) check() error {
	if h == nil {
		return nil
	}
	for _, path := range slices.Sorted(maps.Keys(h.opened)) { // the directory is the first one
		if err := h.checkPath(path); err != nil {
			return err
		}
	}
	return nil
}

// checkStream is check for the directory of one stream alone. It takes a microsecond.
func (h *home) checkStream(stream string) error {
	if h == nil || h.opened[h.of(stream)].file == nil { // it is another hub's
		return nil
	}
	return h.checkPath(h.of(stream))
}

func (h *home) checkPath(path string) error {
	now, err := os.Stat(path)
	switch {
	case err == nil && os.SameFile(now, h.opened[path].info):
		return nil
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the data directory %s was removed or replaced (%s is no longer the one that was opened), and nothing can be recorded: stop the hub, restore the directory, start the hub again", h.dir, path)
	}
	return fmt.Errorf("the data directory %s cannot be reached, and nothing can be recorded: %w", h.dir, err)
}

// leastRoom is how many bytes must fit on the disk before a store that failed is opened
// again.
const leastRoom = 1 << 20

// usable is check, and writes leastRoom bytes to a file, which it then removes.
func (h *home) usable() error {
	if err := h.check(); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(h.dir, "room.tmp"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = f.Write(make([]byte, leastRoom))
		err = errors.Join(err, f.Sync(), f.Close(), os.Remove(f.Name()))
	}
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = failed.Err // without the name of the temporary file
	}
	if err != nil {
		return fmt.Errorf("the data directory %s cannot be written to: %w; once %d MiB can be written there, what waits is recorded without a restart", h.dir, err, leastRoom>>20)
	}
	return nil
}

func (h *home) close() error {
	if h == nil {
		return nil
	}
	var errs []error
	for _, o := range h.opened {
		errs = append(errs, o.file.Close())
	}
	return errors.Join(errs...)
}
