package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// shell runs a script, and returns what it printed.
func shell(t *testing.T, dir, script string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", append([]string{"-euc", script, "sh"}, args...)...)
	c.Dir = dir
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: got %v and %q", script, err, stderr.String())
	}
	return string(out)
}

// made returns the directory of a release of the last commit, made in a clone.
func made(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "clone")
	shell(t, "../..", `git clone -q . "$1"`, root)
	shell(t, root, "bash .ci/release")
	return filepath.Join(root, "dist", "release")
}

// only returns the one file of a release whose name ends so.
func only(t *testing.T, dir, suffix string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil || len(found) != 1 {
		t.Fatalf("got %v and %v, want one file that ends with %s", found, err, suffix)
	}
	return found[0]
}

func TestAReleaseIsWhatItSays(t *testing.T) {
	dir := made(t)
	t.Run("a second one has the same bytes", func(t *testing.T) {
		again := made(t)
		first, second := shell(t, dir, "cat SHA256SUMS"), shell(t, again, "cat SHA256SUMS")
		if first != second {
			t.Errorf("got\n%s and\n%s, want the same", first, second)
		}
		shell(t, again, "sha256sum --check --quiet SHA256SUMS")
	})
	t.Run("the program of the archive tells its commit", func(t *testing.T) { checkArchive(t, dir) })
	t.Run("the package installs in Debian, and its unit is valid", func(t *testing.T) { checkPackage(t, dir) })
	t.Run("the image has a user without rights, and little else", func(t *testing.T) { checkImage(t, dir) })
	t.Run("the chart has the version", func(t *testing.T) {
		text := shell(t, dir, `tar -xzOf "$1" dragoman/Chart.yaml`, only(t, dir, ".tgz"))
		if version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(only(t, dir, ".tgz")), "dragoman-"), ".tgz"); !strings.Contains(text, "\nversion: "+version+"\n") || !strings.Contains(text, `appVersion: "`+version+`"`) {
			t.Errorf("got %s, want the version %s twice", text, version)
		}
	})
	t.Run("the list of modules names those of the program", func(t *testing.T) {
		if list := shell(t, dir, `cat "$1"`, only(t, dir, "_linux_"+runtime.GOARCH+".cdx.json")); !strings.Contains(list, `"pkg:golang/github.com/nats-io/nats-server/v2@`) {
			t.Errorf("got %.300s, want the embedded NATS server in it", list)
		}
	})
}

func TestAReleaseIsMadeOfACommit(t *testing.T) {
	root := filepath.Join(t.TempDir(), "clone")
	shell(t, "../..", `git clone -q . "$1"`, root)
	said := shell(t, root, `echo >>README.md; ! bash .ci/release 2>&1; ls dist 2>&1 || true`)
	if !strings.Contains(said, "commit what has changed") || strings.Contains(said, "release\n") {
		t.Errorf("got %q, want that it is made of a commit, and nothing left", said)
	}
}

func checkArchive(t *testing.T, dir string) {
	at := t.TempDir()
	shell(t, at, `tar -xzf "$1" --strip-components=1`, only(t, dir, "_linux_"+runtime.GOARCH+".tar.gz"))
	var says struct{ Version, Commit, Date string }
	if err := json.Unmarshal([]byte(shell(t, at, "./dragoman version --json")), &says); err != nil {
		t.Fatal(err)
	}
	if commit := strings.TrimSpace(shell(t, "../..", "git rev-parse HEAD")); says.Commit != commit || says.Version == "dev" || says.Date == "" {
		t.Errorf("got %+v, want the commit %s, its date and a version", says, commit)
	}
	for _, name := range []string{"LICENSE", "share/man/man1/dragoman-ask.1", "share/bash-completion/completions/dragoman", "share/zsh/vendor-completions/_dragoman", "share/fish/vendor_completions.d/dragoman.fish"} {
		if info, err := os.Stat(filepath.Join(at, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: got %v, want it there", name, err)
		}
	}
}

func checkPackage(t *testing.T, dir string) {
	if _, err := exec.LookPath("debootstrap"); err != nil || os.Getuid() != 0 {
		t.Skip("debootstrap is not here, or may not be run: apt-get install debootstrap, and be root")
	}
	root := filepath.Join(t.TempDir(), "root")
	shell(t, "", `debootstrap --variant=minbase --include=systemd,procps stable "$1" >&2`, root)
	shell(t, "", `cp "$1" "$2/dragoman.deb"`, only(t, dir, "_linux_"+runtime.GOARCH+".deb"), root)
	in := func(script string) string { return shell(t, "", `chroot "$1" sh -euc "$2"`, root, script) }
	in("dpkg --install /dragoman.deb")
	in("dragoman check --config /etc/dragoman/dragoman.yaml")
	in("systemd-analyze verify --man=no /usr/lib/systemd/system/dragoman.service")
	score := regexp.MustCompile(`exposure level for dragoman.service: (\d)`).FindStringSubmatch(in("systemd-analyze security --offline=yes /usr/lib/systemd/system/dragoman.service"))
	if score == nil || score[1] > "2" {
		t.Errorf("got the exposure %v, want at most 2.9 of 10", score)
	}
	in("dpkg --install /dragoman.deb") // an upgrade to itself
	in("dpkg --purge dragoman; ! command -v dragoman; test ! -e /etc/dragoman/dragoman.yaml")
}

func checkImage(t *testing.T, dir string) {
	at := t.TempDir()
	shell(t, at, `tar -xf "$1"`, only(t, dir, "_oci.tar"))
	blob := func(digest string) []byte {
		data, err := os.ReadFile(filepath.Join(at, "blobs", strings.Replace(digest, ":", "/", 1)))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	read := func(data []byte, to any) {
		if err := json.Unmarshal(data, to); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
	}
	type descriptor struct {
		Digest      string
		Annotations map[string]string
		Platform    struct{ OS, Architecture string }
	}
	type descriptors struct{ Manifests []descriptor }
	var index, platforms descriptors
	text, err := os.ReadFile(filepath.Join(at, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	read(text, &index)
	var manifest struct {
		Config struct{ Digest string }
		Layers []struct{ Digest string }
	}
	read(blob(index.Manifests[0].Digest), &platforms)
	own := slices.IndexFunc(platforms.Manifests, func(d descriptor) bool {
		return d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH
	})
	if len(index.Manifests) != 1 || len(platforms.Manifests) != 2 || own < 0 {
		t.Fatalf("got %+v with %+v, want one index with two platforms, that of this machine among them", index, platforms)
	}
	version := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(only(t, dir, "_oci.tar")), "dragoman_"), "_oci.tar")
	if got, want := index.Manifests[0].Annotations["io.containerd.image.name"], "docker.io/library/dragoman:"+version; got != want {
		t.Errorf("got the name %q, want that of the chart, %s", got, want)
	}
	read(blob(platforms.Manifests[own].Digest), &manifest)
	var config struct{ Config struct{ User string } }
	read(blob(manifest.Config.Digest), &config)
	if config.Config.User != "65532:65532" {
		t.Errorf("got the user %q, want 65532:65532", config.Config.User)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(blob(manifest.Layers[0].Digest)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
	want := []string{"etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt", "tmp/", "usr/local/bin/dragoman", "var/lib/dragoman/"}
	if !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "layer.gz"), blob(manifest.Layers[0].Digest), 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		said := shell(t, root, `tar -xzf layer.gz && chroot --userspec=65532:65532 . /usr/local/bin/dragoman version`)
		if !strings.HasPrefix(said, "dragoman v") {
			t.Errorf("got %q of the program in the image, want its version", said)
		}
	}
}
