package conversation

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// append appends lines to the file, whole or not at all. A file that is not there yet
// is made, readable by its owner alone.
func (p Place) append(there bool, lines [][]byte) (err error) {
	flags := os.O_RDWR | os.O_APPEND
	if !there {
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
		if last[0] != '\n' { // another program's torn line stays one
			b = append(b, '\n')
		}
	}
	for _, l := range lines {
		b = append(append(b, l...), '\n')
	}
	n, err := f.Write(b)
	if err != nil {
		if undone := takeBack(f, end, int64(n)); undone != nil {
			err = fmt.Errorf("%w; and taking the half of it back: %w", err, undone)
		}
	}
	return err
}

// makeDirs makes the directories of the file.
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

// takeBack cuts the n bytes off that were written behind end, unless another program
// has written as well since: then they stay, as a torn line.
func takeBack(f *os.File, end, n int64) error {
	switch info, err := f.Stat(); {
	case err != nil:
		return err
	case info.Size() != end+n:
		return nil
	}
	return f.Truncate(end)
}
