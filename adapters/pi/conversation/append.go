package conversation

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// append appends lines to the file, all or none. A file that does not exist is created,
// readable by its owner only.
func (p Place) append(exists bool, lines [][]byte) (err error) {
	flags := os.O_RDWR | os.O_APPEND
	if !exists {
		if err := p.makeDirs(); err != nil {
			return err
		}
		flags |= os.O_CREATE
	}
	f, _, err := p.open(flags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	var b []byte
	if last := make([]byte, 1); end > 0 {
		if _, err := f.ReadAt(last, end-1); err != nil {
			return err
		}
		if last[0] != '\n' { // keeps the torn line of another program apart
			b = append(b, '\n')
		}
	}
	for _, l := range lines {
		b = append(append(b, l...), '\n')
	}
	n, err := f.Write(b)
	if err != nil {
		if undone := undoWrite(f, end, int64(n)); undone != nil {
			err = fmt.Errorf("%w; and removing the part that was written: %w", err, undone)
		}
	}
	return err
}

// makeDirs creates the directories of the file.
func (p Place) makeDirs() error {
	if err := os.MkdirAll(p.Root, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	return root.MkdirAll(filepath.Dir(p.Name), 0o700)
}

// undoWrite removes the n bytes that were written after end, unless another program has
// appended to them: then they stay, as a torn line.
func undoWrite(f *os.File, end, n int64) error {
	switch info, err := f.Stat(); {
	case err != nil:
		return err
	case info.Size() != end+n:
		return nil
	}
	return f.Truncate(end)
}
