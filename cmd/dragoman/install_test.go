package main_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checkout makes a directory with what make install needs of a checkout, with files made by make build.
// Its install has only the options that every system has.
func checkout(t *testing.T, built map[string]string) (dir string, run func(target, prefix string) (string, error)) {
	t.Helper()
	dir = t.TempDir()
	path, err := exec.LookPath("install")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"tools/install": "#!/bin/sh\ncase \" $* \" in *' -D '* | *' -t '*) echo 'install: illegal option' >&2; exit 64 ;; esac\nexec " + path + " \"$@\"\n"}
	for _, name := range []string{"Makefile", ".ci/install"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	for _, of := range []map[string]string{files, built} {
		for name, text := range of {
			at := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(at, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir, func(target, prefix string) (string, error) {
		c := exec.CommandContext(t.Context(), "make", "-C", dir, target, "PREFIX="+prefix)
		c.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "tools")+":"+os.Getenv("PATH"))
		said, err := c.CombinedOutput()
		return string(said), err
	}
}

// built is a build, with a program that prints its arguments.
var built = map[string]string{
	"bin/dragoman":           "#!/bin/sh\necho \"$@\"\n",
	"bin/man/dragoman.1":     ".TH DRAGOMAN 1\n",
	"bin/man/dragoman-ask.1": ".TH DRAGOMAN-ASK 1\n",
}

// installed returns the files below a directory, with their modes and texts.
func installed(t *testing.T, prefix string) map[string]string {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(prefix, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(prefix, path)
		got[name] = info.Mode().String() + " " + string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestInstallingTakesWhatWasBuilt(t *testing.T) {
	dir, run := checkout(t, built)
	prefix := filepath.Join(dir, "usr")
	if said, err := run("install", prefix); err != nil {
		t.Fatalf("make install: got %v and\n%s", err, said)
	}
	want := map[string]string{
		"bin/dragoman":                                  "-rwxr-xr-x #!/bin/sh\necho \"$@\"\n",
		"share/man/man1/dragoman.1":                     "-rw-r--r-- .TH DRAGOMAN 1\n",
		"share/man/man1/dragoman-ask.1":                 "-rw-r--r-- .TH DRAGOMAN-ASK 1\n",
		"share/zsh/site-functions/_dragoman":            "-rw-r--r-- completion zsh\n",
		"share/bash-completion/completions/dragoman":    "-rw-r--r-- completion bash\n",
		"share/fish/vendor_completions.d/dragoman.fish": "-rw-r--r-- completion fish\n",
	}
	if d := cmp.Diff(want, installed(t, prefix)); d != "" {
		t.Errorf("what is installed (-want +got):\n%s", d)
	}
}

func TestUninstallingRemovesWhatWasInstalledAndNothingElse(t *testing.T) {
	dir, run := checkout(t, built)
	prefix := filepath.Join(dir, "usr")
	if said, err := run("install", prefix); err != nil {
		t.Fatalf("make install: got %v and\n%s", err, said)
	}
	other := filepath.Join(prefix, "share/man/man1/dragoman-of-others.1")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := run("uninstall", prefix); err != nil {
		t.Fatalf("make uninstall: got %v and\n%s", err, said)
	}
	want := map[string]string{"share/man/man1/dragoman-of-others.1": "-rw------- "}
	if d := cmp.Diff(want, installed(t, prefix)); d != "" {
		t.Errorf("what is left (-want +got):\n%s", d)
	}
	if said, err := run("uninstall", prefix); err == nil || !strings.Contains(said, "name the PREFIX that it was installed with") {
		t.Errorf("where nothing is installed: got %v and\n%s\nwant an error that names PREFIX", err, said)
	}
}

func TestTheHelpOfMakeNamesEveryTarget(t *testing.T) {
	dir, run := checkout(t, nil)
	said, err := run("help", "")
	if err != nil {
		t.Fatalf("make help: got %v and\n%s", err, said)
	}
	text, err := os.ReadFile(filepath.Join(dir, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	_, targets, _ := strings.Cut(string(text), ".PHONY:")
	targets, _, _ = strings.Cut(targets, "\n")
	for _, target := range strings.Fields(targets) {
		_, about, _ := strings.Cut("\n"+said, "\n"+target+" ")
		about, _, _ = strings.Cut(about, "\n")
		if strings.TrimSpace(about) == "" {
			t.Errorf("got no line about %s in\n%s", target, said)
		}
	}
}

func TestInstallingWithoutABuildSaysWhatToDo(t *testing.T) {
	for name, built := range map[string]map[string]string{
		"nothing":         nil,
		"no manual pages": {"bin/dragoman": "#!/bin/sh\n"},
	} {
		dir, run := checkout(t, built)
		prefix := filepath.Join(dir, "usr")
		said, err := run("install", prefix)
		if err == nil || !strings.Contains(said, "run 'make build' first") {
			t.Errorf("%s: got %v and\n%s\nwant an error that names make build", name, err, said)
		}
		if _, err := os.Stat(prefix); err == nil {
			t.Errorf("%s: got something installed, want nothing", name)
		}
	}
}
