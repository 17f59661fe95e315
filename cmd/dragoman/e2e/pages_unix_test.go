//go:build unix

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/install"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// pageStage prepares what a page needs beside the program: the programs of others that it names, or
// stand-ins for them, in tools, which is in the PATH.
type pageStage func(t *testing.T, dir, tools string)

// stages are those of the pages that need one, by the end of their path.
var stages = map[string]pageStage{
	"tutorial.md":        needing("python3", "curl"),
	"howto/a2a-agent.md": needing("curl"),
	"howto/acp.md":       needing("curl"),
	"howto/behind-a-proxy.md": func(t *testing.T, dir, tools string) {
		needs(t, "openssl", "curl", "apt-get", "dpkg-deb")
		into := t.TempDir()
		for _, name := range []string{"nginx", "caddy"} {
			installDebian(t, into, name)
			for _, bin := range []string{"usr/sbin", "usr/bin"} {
				if path := filepath.Join(into, bin, name); isFile(path) {
					symlink(t, path, filepath.Join(tools, name))
				}
			}
		}
	},
	"README.md":              standingIn("editoragent.py", "claude-agent-acp"),
	"howto/claude-code.md":   standingIn("editoragent.py", "claude-agent-acp"),
	"howto/codex.md":         standingIn("editoragent.py", "codex-acp"),
	"howto/editors.md":       withAcpx,
	"howto/install.md":       withRelease,
	"howto/gemini-cli.md":    standingIn("editoragent.py", "gemini"),
	"howto/mcp-server.md":    standingIn("mcpserver.py", "npx"),
	"howto/notifications.md": standingIn("editoragent.py", "claude-agent-acp"),
	"howto/opencode.md":      standingIn("editoragent.py", "opencode"),
	"howto/parallax.md":      needing("curl"),
	"howto/pi.md":            standingIn("pi.py", "pi"),
	"howto/qwen-code.md":     standingIn("editoragent.py", "qwen"),
	"howto/tls.md":           needing("openssl", "curl"),
}

// The pages do what they say: each is read from top to bottom as a reader does who types its
// commands, in a directory with a clone of the repository. Only the ports differ.
func TestThePagesDoWhatTheySay(t *testing.T) {
	t.Parallel()
	const root = "../../../"
	pages := []string{root + "README.md", root + "docs/tutorial.md"}
	guides, err := filepath.Glob(root + "docs/howto/*.md")
	if err != nil || len(guides) == 0 {
		t.Fatalf("got %d guides and %v, want some", len(guides), err)
	}
	staged := 0
	for _, path := range append(pages, guides...) {
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		prepare := stages[docsPath(name)]
		if prepare != nil {
			staged++
		}
		t.Run(docsPath(name), func(t *testing.T) {
			if strings.HasPrefix(docsPath(name), "howto/") {
				tier.Full(t, "it runs every guide")
			}
			t.Parallel()
			dir, tools := t.TempDir(), t.TempDir()
			clone(t, root, dir, tools)
			if prepare != nil {
				prepare(t, dir, tools)
			}
			read(t, path, dir, tools)
		})
	}
	if staged != len(stages) {
		t.Errorf("got %d pages with a stage, want all %d: one was renamed", staged, len(stages))
	}
}

// docsPath returns a path below docs, or that of another page as it is.
func docsPath(path string) string {
	if below, err := filepath.Rel("docs", path); err == nil && filepath.IsLocal(below) {
		return below
	}
	return path
}

// clone makes a directory look like a clone of the repository in which the program is built.
func clone(t *testing.T, root, dir, tools string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"docs", "Makefile"} {
		symlink(t, filepath.Join(from, name), filepath.Join(dir, name))
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	writeScript(t, filepath.Join(dir, "bin", "dragoman"), "exec '"+self+"' \"$@\"")
	program, err := exec.LookPath("make")
	if err != nil {
		t.Fatal(err)
	}
	writeScript(t, filepath.Join(tools, "make"), "exec '"+program+"' -o build -o program \"$@\"") // it is built
}

// withRelease is the stage of a page that installs a release: a stand-in for one, with an archive whose
// program is the one of the clone.
func withRelease(t *testing.T, dir, _ string) {
	t.Helper()
	needs(t, "tar", "sha256sum")
	const top = "dragoman_0.1.0_linux_amd64"
	if err := os.Mkdir(filepath.Join(dir, top), 0o700); err != nil {
		t.Fatal(err)
	}
	writeScript(t, filepath.Join(dir, top, "dragoman"), "exec '"+filepath.Join(dir, "bin", "dragoman")+"' \"$@\"")
	c := exec.CommandContext(t.Context(), "sh", "-euc", "tar -czf $1.tar.gz $1; rm -r $1; { sha256sum $1.tar.gz; echo another | sha256sum | sed s/-/of-another-platform.zip/; } >SHA256SUMS", "sh", top)
	c.Dir = dir
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}

// withAcpx is the stage of a page on which acpx asks an agent.
func withAcpx(t *testing.T, dir, tools string) {
	t.Helper()
	writeScript(t, filepath.Join(tools, "acpx"), "exec '"+strings.Join(installAcpx(t), "' '")+"' \"$@\"")
	standingIn("editoragent.py", "gemini")(t, dir, tools)
}

// needing returns the stage of a page that needs programs which are usually there.
func needing(programs ...string) pageStage {
	return func(t *testing.T, _, _ string) {
		t.Helper()
		install.Has(t, programs...)
	}
}

// standingIn returns the stage of a page with a program that is not installed here: a script of
// testdata/pages that speaks its protocol takes its name, and gets that as STANDS_FOR.
func standingIn(name, program string) pageStage {
	return func(t *testing.T, _, tools string) {
		t.Helper()
		install.Has(t, "python3")
		path, err := filepath.Abs(filepath.Join("testdata/pages", name))
		if err != nil {
			t.Fatal(err)
		}
		writeScript(t, filepath.Join(tools, program), "exec env STANDS_FOR="+program+" python3 '"+path+"' \"$@\"")
	}
}

func writeScript(t *testing.T, path, command string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+command+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
}

func symlink(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Symlink(from, to); err != nil {
		t.Fatal(err)
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
