package main_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
)

// page is one page of the documentation.
type page struct{ path, text string }

// pages returns every page of the documentation.
func pages(t *testing.T) []page {
	t.Helper()
	var all []page
	paths := []string{"../../README.md", "../../CONTRIBUTING.md", "../../CHANGELOG.md"}
	for _, dir := range []string{docs, docs + "/howto", docs + "/dialects", docs + "/adr", docs + "/observability"} {
		found, err := filepath.Glob(dir + "/*.md")
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: got no page (%v), want some", dir, err)
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page{path, string(b)})
	}
	return all
}

var (
	fence   = regexp.MustCompile("(?ms)^ *```([a-z]*)[^\n]*\n(.*?)^ *```$")
	span    = regexp.MustCompile("`[^`\n]+`")
	linkTo  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// prose returns the page without its code blocks.
func (p page) prose() string { return fence.ReplaceAllString(p.text, "") }

func TestTheLinksOfTheDocumentationAreValid(t *testing.T) {
	anchors := map[string][]string{}
	for _, p := range pages(t) {
		for _, h := range heading.FindAllStringSubmatch(p.prose(), -1) {
			anchors[p.path] = append(anchors[p.path], slug(h[1]))
		}
	}
	for _, p := range pages(t) {
		for _, l := range linkTo.FindAllStringSubmatch(span.ReplaceAllString(p.prose(), ""), -1) {
			if strings.Contains(l[1], "://") {
				continue
			}
			to, anchor, _ := strings.Cut(l[1], "#")
			path := p.path
			if to != "" {
				path = filepath.Join(filepath.Dir(p.path), to)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: the link %s is broken: %v", p.path, l[1], err)
				continue
			}
			if anchor != "" && !slices.Contains(anchors[filepath.Clean(path)], anchor) && !slices.Contains(anchors[path], anchor) {
				t.Errorf("%s: got no heading for the link %s, want one of %q", p.path, l[1], anchors[path])
			}
		}
	}
}

// slug returns the anchor of a heading.
func slug(heading string) string {
	kept := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		}
		return -1
	}, strings.ToLower(heading))
	return kept
}

func TestTheCommandsOfTheDocumentationAreValid(t *testing.T) {
	n := 0
	for _, p := range pages(t) {
		for _, f := range fence.FindAllStringSubmatch(p.text, -1) {
			if (f[1] == "" || f[1] == "sh") && strings.Contains(f[2], "dragoman ") {
				n += checkCommands(t, p.path, f[2], true)
			}
		}
		for _, s := range span.FindAllString(p.prose(), -1) {
			if text := strings.Trim(s, "`"); strings.HasPrefix(text, "dragoman ") {
				n += checkCommands(t, p.path, text, false)
			}
		}
	}
	if n < 20 {
		t.Errorf("got %d commands, want those of all pages", n)
	}
}

// The settings of the documentation are read without a complaint.
func TestTheSettingsOfTheDocumentationAreValid(t *testing.T) {
	var roots []string
	for _, s := range config.All() {
		root, _, _ := strings.Cut(s.Key, ".")
		roots = append(roots, root)
	}
	n := 0
	for _, p := range pages(t) {
		for _, f := range fence.FindAllStringSubmatch(p.text, -1) {
			file, err := config.ReadYAML([]byte(f[2]))
			if f[1] != "yaml" || err == nil && !slices.ContainsFunc(roots, func(root string) bool { _, is := file.Values[root]; return is }) {
				continue // another file, such as that of the tokens
			}
			n++
			path := filepath.Join(t.TempDir(), "dragoman.yaml")
			if err := os.WriteFile(path, []byte(f[2]), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := config.Load(pflag.NewFlagSet("", pflag.ContinueOnError), []string{"DRAGOMAN_CONFIG=" + path}); err != nil {
				t.Errorf("%s: got %v, want the settings accepted\n%s", p.path, err, f[2])
			}
		}
	}
	if n < 8 {
		t.Errorf("got %d settings files, want those of all pages", n)
	}
}

// The commands that the help shows can be called as they are there.
func TestTheCommandsOfTheHelpAreValid(t *testing.T) {
	n := 0
	for _, c := range command.NewRoot(command.Streams{}).Commands() {
		for line := range strings.Lines(c.Long + "\n" + c.Example) {
			if strings.HasPrefix(line, "  dragoman ") {
				n += checkCommands(t, "the help of "+c.Name(), line, true)
			}
		}
	}
	if n < 20 {
		t.Errorf("got %d commands, want those of every help", n)
	}
}

// checkCommands fails unless every call of the program in a shell script is a command with
// valid flags and, if whole is set, valid arguments. It returns the number of calls. The
// shell parses the script; it finds no other program but an awk of its own.
func checkCommands(t *testing.T, path, script string, whole bool) int {
	t.Helper()
	const call = "dragoman() { printf '%s\\0' \"$@\"; printf '\\1\\0'; }\n" +
		"awk() { echo ID; }\n" // pages take an id out of a table with it
	calls, stderr := inShell(t, call+script)
	if strings.Contains(strings.ToLower(stderr), "syntax error") {
		t.Errorf("%s: the shell cannot parse\n%s\n%s", path, script, stderr)
	}
	n := 0
	for line := range strings.SplitSeq(calls, "\x01\x00") {
		if line == "" {
			continue
		}
		n++
		args := strings.Split(strings.TrimSuffix(line, "\x00"), "\x00")
		c, rest, err := command.NewRoot(command.Streams{}).Find(args)
		if err == nil {
			err = c.ParseFlags(rest)
		}
		if err == nil && whole {
			err = c.ValidateArgs(c.Flags().Args())
		}
		if err != nil || !c.HasParent() {
			t.Errorf("%s: dragoman %q: got %v, want a command with valid flags", path, args, err)
		}
	}
	return n
}

// inShell runs a shell script in an empty directory with an empty path, and returns its
// output.
func inShell(t *testing.T, script string) (out, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a loop would wait for a program that is not there
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", script)
	cmd.Dir, cmd.Env = t.TempDir(), []string{"LC_ALL=C", "PATH=/nonexistent"}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // other programs are not found
	if ctx.Err() != nil {
		t.Errorf("it did not end:\n%s", script)
	}
	return stdout.String(), stderr.String()
}

// counterName matches where the engine counts something.
var counterName = regexp.MustCompile(`\.Count\("([^"]+)"`)

func TestEveryCounterOfTheEngineIsDocumented(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(docs, "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("../../core/hub/*.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range counterName.FindAllSubmatch(source, -1) {
			n++
			if !strings.Contains(string(b), "`"+string(m[1])) {
				t.Errorf("operations.md: the counter %s is not documented", m[1])
			}
		}
	}
	if n == 0 {
		t.Error("got no counters, want those of the engine")
	}
}

func TestEveryCodeOfAFaultIsDocumented(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(docs, "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range core.Codes() {
		if !strings.Contains(string(b), "| `"+string(c)+"` |") {
			t.Errorf("operations.md: the code %s is not documented", c)
		}
	}
}
