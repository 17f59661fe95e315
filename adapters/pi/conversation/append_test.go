package conversation

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAPartialLineIsRemovedUnlessAnotherProgramAppended(t *testing.T) {
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
