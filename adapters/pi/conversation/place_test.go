package conversation_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
)

// appendTo appends an entry to an existing file and returns the error of writing it.
func appendTo(at conversation.Place, n *conversation.Node) (err error) {
	s := conversation.NewStore(conversation.StoreOptions{
		Log: slog.New(slog.DiscardHandler), Count: func(string) {},
		Schedule: func(do func(context.Context)) { do(context.Background()) },
		Broken:   func(_ *conversation.File, why error) { err = why },
	})
	f := s.Open(conversation.Stored{At: at})
	f.Append(n)
	f.Release()
	return err
}

func TestATornLineStaysApart(t *testing.T) {
	at := conversation.Place{Root: t.TempDir(), Name: "x.jsonl"}
	path := at.Path()
	if err := os.WriteFile(path, []byte("{\"type\":\"session\",\"version\":3,\"cwd\":\"/\"}\n{\"type\":\"mess"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := conversation.New("id", "s", "/", "").AppendEntry(sessionfile.Info{Name: "n"})
	if err := appendTo(at, n); err != nil {
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
	at := conversation.Place{Root: t.TempDir(), Name: strings.Repeat("x", 250) + ".html"}
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
		t.Errorf("got %v and %v, want only the page", names, err)
	}
}
