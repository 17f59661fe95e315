package command_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// Words, files and stdin are read as curl reads its data.
func TestATextIsReadFromWordsFilesAndStdin(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Chdir(dir)
	for name, text := range map[string]string{"question.md": "What?\n", "data.json": ` {"n": 1} `, "binary": "\xff", "broken.json": "{"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const stdin = `{"from":"stdin"}`
	var sent map[string]any
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			return // which task is meant
		}
		sent = nil
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, `{"id":"t","state":"done"}`)
	}))
	defer hub.Close()
	do := func(args ...string) (int, string) {
		var errs strings.Builder
		io := command.Streams{In: io.NopCloser(strings.NewReader(stdin)), Out: nopCloser{io.Discard}, Err: &errs}
		return command.Run(t.Context(), append(args, "--hub", hub.URL), io), errs.String()
	}
	for _, tt := range []struct {
		member string
		want   any
		args   []string
	}{
		{"content", "one two", []string{"delegate", "bob", "one", "two"}},
		{"options", map[string]any{"mode": "plan", "model": "a=b"}, []string{"delegate", "bob", "x", "--option", "mode=plan", "--option", "model=a=b"}},
		{"content", stdin, []string{"delegate", "bob"}},
		{"content", stdin, []string{"delegate", "bob", "-"}},
		{"content", stdin, []string{"delegate", "bob", "@-"}},
		{"content", "What?\n", []string{"delegate", "bob", "@question.md"}},
		{"content", "What?\n", []string{"delegate", "bob", "@~/question.md"}},
		{"content", "@ann says", []string{"delegate", "bob", "@@ann says"}},
		{"content", "@ann says", []string{"delegate", "bob", "@ann", "says"}}, // several words are no file
		{"context", map[string]any{"n": 1.0}, []string{"delegate", "bob", "x", "--background", "@data.json"}},
		{"content", stdin, []string{"delegate", "bob", "--background", "{}"}},
		{"content", "one two", []string{"delegate", "bob", "one", "two", "--background", "@-"}},
		{"context", map[string]any{"from": "stdin"}, []string{"delegate", "bob", "@question.md", "--background", "@-"}},
		{"content", "What?\n", []string{"inject", "t", "@question.md", "--wait=0"}},
		{"data", "What?\n", []string{"notify", "bob", "@question.md"}},
		{"data", map[string]any{"n": 1.0}, []string{"notify", "bob", "--data", "@data.json"}},
	} {
		sent = nil
		code, stderr := do(tt.args...)
		got, want := encoded(t, sent[tt.member]), encoded(t, tt.want)
		if code != command.ExitDone || got != want {
			t.Errorf("%q: got %d, %q and %s, want %s", tt.args, code, stderr, got, want)
		}
	}
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"@none: no such file or directory; name a file that you may read, or write @@ for a text that begins with @", []string{"delegate", "bob", "@none"}},
		{"--option plan: want NAME=VALUE, such as mode=plan", []string{"ask", "bob", "x", "--option", "plan"}},
		{"dragoman: @ alone: write @FILE, @- for stdin, or @@ for a text that begins with @", []string{"ask", "bob", "@"}},
		{"@binary is not UTF-8: attach binary data with --file", []string{"ask", "bob", "@binary"}},
		{"@. is a directory: name a file in it, or write @@ for a text that begins with @", []string{"ask", "bob", "@."}},
		{"--data: @. is a directory: name a file in it, or write the JSON itself", []string{"ask", "bob", "x", "--data", "@."}},
		{"--file .: is a directory; name a file", []string{"ask", "bob", "x", "--file", "."}},
		{"- and --data @-: stdin can be read once: write one of them on the command line, or name its file with @FILE", []string{"ask", "bob", "-", "--data", "@-"}},
		{"@- and --data @-: stdin can be read once", []string{"ask", "bob", "@-", "--data", "@-"}},
		{"- and --background @-: stdin can be read once", []string{"delegate", "bob", "-", "--background", "@-"}},
		{"--background @-: stdin is the background, so that the task is missing: write it on the command line, or name its file with @FILE", []string{"delegate", "bob", "--background", "@-"}},
		{"--data is not JSON: write an object", []string{"ask", "bob", "x", "--data", "@broken.json"}},
		{"--background is not JSON: write an object", []string{"delegate", "bob", "x", "--background", "@question.md"}},
		{"--data: @ alone: write @FILE, @- for stdin, or the JSON itself", []string{"ask", "bob", "x", "--data", "@"}},
		{"--data: @none: no such file or directory; name a file that you may read, or write the JSON itself", []string{"notify", "bob", "--data", "@none"}},
		{"--background: @none: no such file or directory; name a file that you may read, or write the JSON itself", []string{"delegate", "bob", "x", "--background", "@none"}},
	} {
		sent = nil
		if code, stderr := do(tt.args...); code != command.ExitUsage || !strings.Contains(stderr, tt.want) || sent != nil {
			t.Errorf("%q: got %d and %q, sent %v; want %d and %q", tt.args, code, stderr, sent, command.ExitUsage, tt.want)
		}
	}
}

// encoded returns a value as JSON.
func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
