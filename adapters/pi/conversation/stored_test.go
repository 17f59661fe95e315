package conversation_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
)

// headOnly is a session file in which nothing has been said.
const headOnly = `{"type":"session","version":3,"id":"a","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}` + "\n"

func TestOfTooManyFilesTheLatestAreListed(t *testing.T) {
	dir := t.TempDir()
	const maxListed, more = 10_000, 3
	for i := range maxListed + more { // by name the oldest come first, as the real program names them
		path := filepath.Join(dir, fmt.Sprintf("%05d.jsonl", i))
		if err := os.WriteFile(path, []byte(headOnly), 0o600); err != nil {
			t.Fatal(err)
		}
		at := testTime.Add(time.Duration(i) * time.Second)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	s := conversation.NewStore(conversation.StoreOptions{Dir: dir, MaxBytes: 1 << 20})
	list := s.List(t.Context(), "")
	if got, want := len(list), maxListed; got != want {
		t.Fatalf("got %d files, want %d", got, want)
	}
	if got, want := list[0].SessionID, fmt.Sprintf("%05d", maxListed+more-1); got != want {
		t.Errorf("first: got %s, want the latest, %s", got, want)
	}
	if got, want := list[maxListed-1].SessionID, fmt.Sprintf("%05d", more); got != want {
		t.Errorf("last: got %s, want %s: the oldest are left out", got, want)
	}
}
