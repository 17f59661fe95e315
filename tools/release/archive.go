package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
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

// zipped returns the data compressed, without a name and a time.
func zipped(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// writeZipped writes files as a compressed tar archive.
func (r *release) writeZipped(at string, files []file) error {
	var b bytes.Buffer
	if err := writeTar(&b, r.date, files); err != nil {
		return err
	}
	data, err := zipped(b.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(at, data, 0o644)
}

// archive writes the program of a platform with its texts.
func (r *release) archive(p platform) error {
	top := strings.TrimSuffix(filepath.Base(r.named(p, "")), ".tar.gz") + "/"
	program, err := read(p.program, top+"dragoman"+p.suffix(), 0o755)
	if err != nil {
		return err
	}
	files := []file{program}
	names := []string{"LICENSE", "README.md", "CHANGELOG.md"}
	if p.os == "linux" {
		names = append(names, "deploy/systemd/dragoman.service", "deploy/systemd/cluster.conf")
	}
	for _, name := range names {
		f, err := read(filepath.Join(r.root, name), top+filepath.Base(name), 0o644)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	for _, f := range r.texts {
		f.name = top + "share/" + f.name
		files = append(files, f)
	}
	if p.os == "windows" {
		return r.writeZip(r.named(p, ".zip"), files)
	}
	return r.writeZipped(r.named(p, ".tar.gz"), files)
}

// writeZip writes files as a zip archive, which Windows opens without another program.
func (r *release) writeZip(at string, files []file) error {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: r.date}
		h.SetMode(f.mode)
		to, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := to.Write(f.data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(at, b.Bytes(), 0o644)
}
