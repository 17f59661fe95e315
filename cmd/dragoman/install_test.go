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
func checkout(t *testing.T, built map[string]string) (dir string, makeInstall func(prefix string) (string, error)) {
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
	return dir, func(prefix string) (string, error) {
		c := exec.CommandContext(t.Context(), "make", "-C", dir, "install", "PREFIX="+prefix)
		c.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "tools")+":"+os.Getenv("PATH"))
		said, err := c.CombinedOutput()
		return string(said), err
	}
}

func TestInstallingTakesWhatWasBuilt(t *testing.T) {
	dir, makeInstall := checkout(t, map[string]string{
		"bin/dragoman":           "#!/bin/sh\necho \"$@\"\n",
		"bin/man/dragoman.1":     ".TH DRAGOMAN 1\n",
		"bin/man/dragoman-ask.1": ".TH DRAGOMAN-ASK 1\n",
	})
	prefix := filepath.Join(dir, "usr")
	if said, err := makeInstall(prefix); err != nil {
		t.Fatalf("make install: got %v and\n%s", err, said)
	}
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
	want := map[string]string{
		"bin/dragoman":                                  "-rwxr-xr-x #!/bin/sh\necho \"$@\"\n",
		"share/man/man1/dragoman.1":                     "-rw-r--r-- .TH DRAGOMAN 1\n",
		"share/man/man1/dragoman-ask.1":                 "-rw-r--r-- .TH DRAGOMAN-ASK 1\n",
		"share/zsh/site-functions/_dragoman":            "-rw-r--r-- completion zsh\n",
		"share/bash-completion/completions/dragoman":    "-rw-r--r-- completion bash\n",
		"share/fish/vendor_completions.d/dragoman.fish": "-rw-r--r-- completion fish\n",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("what is installed (-want +got):\n%s", d)
	}
}

func TestInstallingWithoutABuildSaysWhatToDo(t *testing.T) {
	for name, built := range map[string]map[string]string{
		"nothing":         nil,
		"no manual pages": {"bin/dragoman": "#!/bin/sh\n"},
	} {
		dir, makeInstall := checkout(t, built)
		prefix := filepath.Join(dir, "usr")
		said, err := makeInstall(prefix)
		if err == nil || !strings.Contains(said, "run 'make build' first") {
			t.Errorf("%s: got %v and\n%s\nwant an error that names make build", name, err, said)
		}
		if _, err := os.Stat(prefix); err == nil {
			t.Errorf("%s: got something installed, want nothing", name)
		}
	}
}
