package conversation

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
)

func TestAPipeInPlaceOfAFileIsNotWaitedFor(t *testing.T) {
	at := Place{t.TempDir(), "x.jsonl"}
	if err := syscall.Mkfifo(at.Path(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := at.read(1, 1); err == nil {
		t.Error("read: got no error, want one")
	}
	if err := at.append(true, [][]byte{[]byte("{}")}); err == nil {
		t.Error("append: got no error, want one")
	}
}

func TestTheHalfOfALineIsTakenBackUnlessSomebodyWroteBehindIt(t *testing.T) {
	for behind, want := range map[string]string{"": "old\n", "theirs\n": "old\n{\"hatheirs\n"} {
		f, err := os.OpenFile(filepath.Join(t.TempDir(), "x"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		const half = `{"ha`
		if _, err := f.WriteString("old\n" + half + behind); err != nil {
			t.Fatal(err)
		}
		if err := undoWrite(f, 4, int64(len(half))); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(f.Name()); err != nil || string(got) != want {
			t.Errorf("got %q and %v, want %q", got, err, want)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestATornLineStaysALineOfItsOwn(t *testing.T) {
	at := Place{t.TempDir(), "x.jsonl"}
	path := at.Path()
	if err := os.WriteFile(path, []byte("{\"type\":\"session\",\"version\":3,\"cwd\":\"/\"}\n{\"type\":\"mess"), 0o600); err != nil {
		t.Fatal(err)
	}
	line := sessionfile.New(new(sessionfile.Page), "a", nil, testTime, sessionfile.Info{Name: "n"}).Line
	if err := at.append(true, [][]byte{line}); err != nil {
		t.Fatal(err)
	}
	data, _ := os.ReadFile(path)
	f, err := sessionfile.Parse(data)
	if err != nil || f.Skipped != 1 || len(f.Entries) != 1 {
		t.Errorf("got %v, %d skipped and %d entries, want the new entry beside the torn one", err, f.Skipped, len(f.Entries))
	}
}

func TestAPageMayHaveTheLongestNameThatAFileCan(t *testing.T) {
	const mark = "ours"
	at := Place{t.TempDir(), strings.Repeat("x", 250) + ".html"}
	for _, text := range []string{"one", "two"} {
		want := mark + text
		if err := at.Replace([]byte(want), mark); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(at.Path()); string(got) != want {
			t.Errorf("got %q and %v, want %q", got, err, want)
		}
	}
	if names, err := os.ReadDir(at.Root); err != nil || len(names) != 1 {
		t.Errorf("got %v and %v, want the page alone", names, err)
	}
}
