package main

import (
	"archive/tar"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// A file is one of an archive. With the mode of a directory it is one.
type file struct {
	name string // the path there
	data []byte
	mode os.FileMode
	user int
}

// read returns the file at a path, to be called name.
func read(at, name string, mode os.FileMode) (file, error) {
	data, err := os.ReadFile(at)
	return file{name: name, data: data, mode: mode}, err
}

// writeTar writes files, by their names, as a tar archive in which nothing depends on the machine.
func writeTar(to io.Writer, date time.Time, files []file) error {
	w := tar.NewWriter(to)
	for _, f := range slices.SortedFunc(slices.Values(files), func(a, b file) int { return strings.Compare(a.name, b.name) }) {
		h := &tar.Header{Name: f.name, Mode: int64(f.mode.Perm()), Size: int64(len(f.data)), ModTime: date, Typeflag: tar.TypeReg, Uid: f.user, Gid: f.user, Format: tar.FormatPAX}
		if f.mode&os.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if f.mode.IsDir() {
			h.Typeflag, h.Name = tar.TypeDir, f.name+"/"
		}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	return w.Close()
}
