package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	chartVersion = regexp.MustCompile(`(?m)^version: .*$`)
	appVersion   = regexp.MustCompile(`(?m)^appVersion: .*$`)
)

// chart writes the Helm chart, with the version of the release.
func (r *release) chart() error {
	dir := filepath.Join(r.root, "deploy", "helm", "dragoman")
	var files []file
	err := filepath.WalkDir(dir, func(at string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := read(at, "dragoman/"+strings.TrimPrefix(filepath.ToSlash(at), filepath.ToSlash(dir)+"/"), 0o644)
		if f.name == "dragoman/Chart.yaml" {
			text := chartVersion.ReplaceAllString(string(f.data), "version: "+r.number())
			f.data = []byte(appVersion.ReplaceAllString(text, `appVersion: "`+r.number()+`"`))
		}
		files = append(files, f)
		return err
	})
	if err != nil {
		return err
	}
	return r.writeZipped(filepath.Join(r.out, "dragoman-"+r.number()+".tgz"), files)
}
