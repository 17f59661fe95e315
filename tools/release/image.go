package main

import (
	"bytes"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is the user of the hub in an image.
const nobody = 65532

// image writes an image for all platforms, as an archive of the OCI layout: skopeo, podman, containerd
// and docker with the image store of containerd load it.
func (r *release) image(out string) (err error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range r.platforms {
		image, err := r.imageOf(p)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: p.arch},
		}})
	}
	// One index of all platforms, from which each machine takes its own, under the name that the chart has.
	named := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: index, Descriptor: v1.Descriptor{Annotations: map[string]string{
		"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "docker.io/library/dragoman:" + r.version,
	}}})
	dir, err := os.MkdirTemp("", "dragoman-image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if _, err := layout.Write(dir, named); err != nil {
		return err
	}
	var files []file
	err = filepath.WalkDir(dir, func(at string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := read(at, strings.TrimPrefix(filepath.ToSlash(at), filepath.ToSlash(dir)+"/"), 0o644)
		files = append(files, f)
		return err
	})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := writeTar(&b, r.date, files); err != nil {
		return err
	}
	return os.WriteFile(out, b.Bytes(), 0o644)
}

// imageOf returns the image of a platform: the program, the authorities of the web, and a user without
// rights.
func (r *release) imageOf(p platform) (v1.Image, error) {
	program, err := read(p.program, "usr/local/bin/dragoman", 0o755)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = writeTar(&b, r.date, []file{
		program,
		{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/:/sbin/nologin\ndragoman:x:65532:65532:dragoman:/var/lib/dragoman:/sbin/nologin\n")},
		{name: "etc/group", mode: 0o644, data: []byte("root:x:0:\ndragoman:x:65532:\n")},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: authorities()},
		{name: "var/lib/dragoman", mode: os.ModeDir | 0o700, user: nobody},
		{name: "tmp", mode: os.ModeDir | os.ModeSticky | 0o777},
	})
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(mutate.MediaType(mutate.ConfigMediaType(empty.Image, types.OCIConfigJSON), types.OCIManifestSchema1), mutate.Addendum{
		Layer: layer, History: v1.History{Created: v1.Time{Time: r.date}, CreatedBy: "dragoman release"},
	})
	if err != nil {
		return nil, err
	}
	c, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	c = c.DeepCopy()
	c.OS, c.Architecture, c.Created = "linux", p.arch, v1.Time{Time: r.date}
	c.Config = v1.Config{
		User: "65532:65532", WorkingDir: "/var/lib/dragoman", Entrypoint: []string{"/usr/local/bin/dragoman"}, Cmd: []string{"serve"},
		Env:          []string{"PATH=/usr/local/bin", "DRAGOMAN_DATA_DIR=/var/lib/dragoman"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}, "50051/tcp": {}, "3141/tcp": {}}, Volumes: map[string]struct{}{"/var/lib/dragoman": {}},
		Labels: map[string]string{"org.opencontainers.image.title": "dragoman", "org.opencontainers.image.version": r.version, "org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.source": "https://github.com/dragoman-hub/dragoman"},
	}
	return mutate.ConfigFile(image, c)
}

// authorities returns the authorities that Mozilla trusts, without those that it trusts under conditions.
func authorities() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes everything
		}
	}
	return b.Bytes()
}
