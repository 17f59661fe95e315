package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the format of the packages
	"github.com/goreleaser/nfpm/v2/files"
)

// debian writes the package of a platform for Debian.
func (r *release) debian(p platform) (err error) {
	dir := filepath.Join(r.work, "deb_"+p.arch)
	info := &nfpm.Info{
		Name: "dragoman", Arch: p.arch, Platform: p.os, Version: r.version, MTime: r.date, Section: "net", Priority: "optional",
		Maintainer: "Dragoman <dragoman@dragoman-hub.invalid>", License: "Apache-2.0", Homepage: "https://github.com/dragoman-hub/dragoman",
		Description: "hub that interprets between AI agents\nAn agent joins in the dialect that it speaks, or the hub runs it. Each can be\nasked by all others and by clients, whatever dialect it speaks.",
	}
	info.Recommends = []string{"ca-certificates", "procps"} // kill, for systemctl reload
	deb := filepath.Join(r.root, "deploy", "deb")
	info.Scripts = nfpm.Scripts{PostInstall: filepath.Join(deb, "postinst"), PreRemove: filepath.Join(deb, "prerm"), PostRemove: filepath.Join(deb, "postrm")}
	add := func(f file, kind string) {
		at := filepath.Join(dir, filepath.FromSlash(f.name))
		err = errors.Join(err, os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, f.data, 0o644))
		info.Contents = append(info.Contents, &files.Content{Source: at, Destination: f.name, Type: kind, FileInfo: &files.ContentFileInfo{Mode: f.mode, MTime: r.date, Owner: "root", Group: "root"}})
	}
	take := func(from, to string, mode os.FileMode, kind string, change func(string) string) {
		f, e := read(from, to, mode)
		f.data = []byte(change(string(f.data)))
		err = errors.Join(err, e)
		add(f, kind)
	}
	same := func(text string) string { return text }
	take(p.program, "/usr/bin/dragoman", 0o755, "", same)
	take(filepath.Join(r.root, "deploy", "systemd", "dragoman.service"), "/usr/lib/systemd/system/dragoman.service", 0o644, "", func(text string) string {
		return strings.ReplaceAll(text, "/usr/local/bin/", "/usr/bin/")
	})
	take(filepath.Join(r.root, "deploy", "systemd", "cluster.conf"), "/usr/share/doc/dragoman/examples/cluster.conf", 0o644, "", same)
	take(filepath.Join(deb, "dragoman.yaml"), "/etc/dragoman/dragoman.yaml", 0o644, files.TypeConfigNoReplace, same)
	take(filepath.Join(deb, "copyright"), "/usr/share/doc/dragoman/copyright", 0o644, "", same)
	for _, f := range r.texts {
		f.name = "/usr/share/" + f.name
		if strings.HasPrefix(f.name, "/usr/share/man/") {
			data, e := zipped(f.data)
			err, f.data, f.name = errors.Join(err, e), data, f.name+".gz"
		}
		add(f, "")
	}
	if err != nil {
		return err
	}
	to, err := os.Create(r.named(p, ".deb"))
	if err != nil {
		return err
	}
	packager, err := nfpm.Get("deb")
	if err == nil {
		err = packager.Package(nfpm.WithDefaults(info), to)
	}
	return errors.Join(err, to.Close())
}
