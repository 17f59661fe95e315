package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const usualTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root := flag.String("root", ".", "the `directory` of the checkout")
	out := flag.String("out", "dist/release", "the `directory` to write, which must not be there")
	targets := flag.String("targets", usualTargets, "the `platforms`, with commas between")
	flag.Parse()
	if err := run(ctx, *root, *out, strings.Split(*targets, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is what all parts of a release have in common.
type release struct {
	root, out string
	work      string    // for what is not released itself
	version   string    // as the program says it, with the v
	date      time.Time // that of the commit, for every file
	texts     []file    // completions and manual pages, by their place below /usr/share
}

// run makes a release of the checkout at root for these targets. It is made beside out and then renamed, so
// that out is there only if all of it is.
func run(ctx context.Context, root, out string, targets []string) (err error) {
	switch _, err := os.Lstat(out); {
	case err == nil:
		return fmt.Errorf("%s is there: remove it first", out)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	beside := filepath.Dir(out)
	if err := os.MkdirAll(beside, 0o755); err != nil {
		return err
	}
	made, err := os.MkdirTemp(beside, ".release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(made)) }()
	if err := write(ctx, root, made, targets); err != nil {
		return err
	}
	return errors.Join(os.Chmod(made, 0o755), os.Rename(made, out))
}

// write writes a release of the checkout at root for these targets into a directory.
func write(ctx context.Context, root, out string, targets []string) (err error) {
	r := &release{root: root, out: out}
	if r.work, err = os.MkdirTemp("", "dragoman-release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	if err := r.identify(ctx); err != nil {
		return err
	}
	if r.texts, err = r.manual(ctx); err != nil {
		return err
	}
	var images []platform
	for _, name := range targets {
		p, err := r.build(ctx, name)
		if err != nil {
			return err
		}
		if err := errors.Join(r.archive(p), r.materials(ctx, p)); err != nil {
			return err
		}
		if p.os == "linux" {
			images = append(images, p)
			if err := r.debian(p); err != nil {
				return err
			}
		}
	}
	return errors.Join(r.image(images), r.chart(), r.sums())
}

// identify builds the program for this machine, and takes the version and the date from what it says.
func (r *release) identify(ctx context.Context) error {
	if _, err := r.command(ctx, nil, "bash", ".ci/build", r.work); err != nil {
		return err
	}
	said, err := r.command(ctx, nil, r.own(), "version", "--json")
	if err != nil {
		return err
	}
	var build struct {
		Version, Commit string
		Date            time.Time
		Modified        bool
	}
	if err := json.Unmarshal(said, &build); err != nil {
		return fmt.Errorf("the version of the program: %w", err)
	}
	if build.Commit == "" || build.Modified {
		return errors.New("a release is made of a commit: commit what has changed, and build where git can be asked")
	}
	r.version, r.date = build.Version, build.Date.UTC()
	return nil
}

// own returns the program for this machine.
func (r *release) own() string { return filepath.Join(r.work, "dragoman") }

// manual returns the completions and the manual pages.
func (r *release) manual(ctx context.Context) ([]file, error) {
	pages := filepath.Join(r.work, "man")
	if _, err := r.command(ctx, nil, "go", "run", "./cmd/dragoman/internal/manual", "-out", pages, "-version", r.version, "-date", r.date.Format(time.DateOnly)); err != nil {
		return nil, err
	}
	var all []file
	for shell, at := range map[string]string{"bash": "bash-completion/completions/dragoman", "zsh": "zsh/vendor-completions/_dragoman", "fish": "fish/vendor_completions.d/dragoman.fish"} {
		text, err := r.command(ctx, nil, r.own(), "completion", shell)
		if err != nil {
			return nil, err
		}
		all = append(all, file{name: at, data: text, mode: 0o644})
	}
	made, err := manualPages(pages)
	all = append(all, made...)
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return all, err
}

// manualPages returns the manual pages in a directory, of which there has to be one.
func manualPages(dir string) (all []file, err error) {
	found, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errors.New("no manual pages were made")
	}
	for _, at := range found {
		f, err := read(at, "man/man1/"+filepath.Base(at), 0o644)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// A platform is one for which the program was built.
type platform struct{ os, arch, program string }

// build builds the program for a platform: linux/amd64.
func (r *release) build(ctx context.Context, name string) (platform, error) {
	system, arch, is := strings.Cut(name, "/")
	if !is {
		return platform{}, fmt.Errorf("%q is no platform: write it as linux/amd64", name)
	}
	p := platform{os: system, arch: arch}
	dir := filepath.Join(r.work, system+"_"+arch)
	_, err := r.command(ctx, []string{"GOOS=" + system, "GOARCH=" + arch}, "bash", ".ci/build", dir)
	p.program = filepath.Join(dir, "dragoman"+p.suffix())
	return p, err
}

// suffix ends the name of the program.
func (p platform) suffix() string {
	if p.os == "windows" {
		return ".exe"
	}
	return ""
}

// named returns the path of a file of the release: dragoman_VERSION_OS_ARCH and what ends it.
func (r *release) named(p platform, suffix string) string {
	return filepath.Join(r.out, "dragoman_"+r.number()+"_"+p.os+"_"+p.arch+suffix)
}

// number returns the version without the v.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }

// materials writes what the program of a platform is made of.
func (r *release) materials(ctx context.Context, p platform) error {
	at, err := filepath.Abs(r.named(p, ".cdx.json"))
	if err == nil {
		_, err = r.command(ctx, nil, "go", "tool", "-modfile=tools/release/go.mod", "cyclonedx-gomod", "bin", "-json", "-noserial", "-notimestamp", "-version", r.version, "-output", at, p.program)
	}
	return err
}

// sums writes the checksums of all files of the release.
func (r *release) sums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	fmt.Print(text.String())
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(text.String()), 0o644)
}

// command runs a command in the checkout, and returns what it printed.
func (r *release) command(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Stderr = r.root, os.Stderr
	c.Env = append(os.Environ(), env...)
	said, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	return said, nil
}
