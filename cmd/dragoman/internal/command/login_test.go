package command_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// guardedHub is a hub that takes one token, and returns its address.
func guardedHub(t *testing.T, token string) string {
	t.Helper()
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"status":401,"code":"unauthenticated","detail":"Invalid authentication token"}`)
			return
		}
		_, _ = io.WriteString(w, `{"version":"1","packs":[]}`)
	}))
	t.Cleanup(hub.Close)
	return hub.URL
}

// runWith is run with text on stdin.
func runAll(t *testing.T, stdin string, args ...string) (code int, all string) {
	t.Helper()
	var out bytes.Buffer
	code = command.Run(t.Context(), args, command.Streams{In: io.NopCloser(strings.NewReader(stdin)), Out: nopCloser{&out}, Err: &out})
	return code, out.String()
}

func TestLoginKeepsAHubThatTakesTheToken(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	file := filepath.Join(dir, "dragoman", "contexts.json")
	one, other := guardedHub(t, "s3cret"), guardedHub(t, "another")
	if code, text := runAll(t, "wrong\n", "login", one); code != command.ExitFailed || !strings.Contains(text, "nothing was kept: the hub") {
		t.Errorf("with a wrong token: got %d and %q, want a refusal", code, text)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("after a refusal: got %v, want no file", err)
	}
	for _, args := range [][]string{{"login", one}, {"login", one, "--context", "a b"}} {
		if code, text := runAll(t, "\ufeffs3cret\r\n", args...); code != command.ExitDone || strings.Contains(text, "s3cret") {
			t.Errorf("%q: got %d and %q, want it kept and no secret", args, code, text)
		}
		if args[len(args)-1] == one { // the next one writes a file that others may read by now
			if err := os.Chmod(file, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("got %v and %v, want a file that only its owner reads", info.Mode(), err)
	}
	if code, out, _ := run(t, "login"); code != command.ExitDone || strings.Contains(out, "s3cret") || len(fields(out)) != 3 || fields(out)[2] != "a b token "+one {
		t.Errorf("the list: got %d and\n%s", code, out)
	}

	for _, tt := range []struct {
		what   string
		env    map[string]string
		args   []string
		code   int
		stderr string
	}{
		{"by the flag", nil, []string{"--context=127.0.0.1"}, command.ExitDone, ""},
		{"by the variable", map[string]string{"DRAGOMAN_CONTEXT": "a b"}, nil, command.ExitDone, ""},
		{"a variable with another token", map[string]string{"DRAGOMAN_TOKEN": "wrong"}, []string{"--context=127.0.0.1"}, command.ExitDone, ""},
		{"a flag with another token", nil, []string{"--context=127.0.0.1", "--token=wrong"}, command.ExitFailed, "token"},
		{"the flag over the variable of an address", map[string]string{"DRAGOMAN_HUB": other}, []string{"--context=127.0.0.1"}, command.ExitDone, ""},
		{"an address over the variable, without the token that is kept", map[string]string{"DRAGOMAN_CONTEXT": "a b"}, []string{"--hub=" + other}, command.ExitFailed, "token"},
		{"the variable of an address over that of a name", map[string]string{"DRAGOMAN_CONTEXT": "a b", "DRAGOMAN_HUB": other, "DRAGOMAN_TOKEN": "another"}, nil, command.ExitDone, ""},
		{"two hubs", nil, []string{"--context=127.0.0.1", "--hub=" + one}, command.ExitUsage, "give one of them"},
		{"an unknown name", nil, []string{"--context=x"}, command.ExitUsage, `--context: no hub is kept as x: use 127.0.0.1, "a b", or 'dragoman login URL'`},
		{"an unknown name in the variable", map[string]string{"DRAGOMAN_CONTEXT": "x"}, nil, command.ExitUsage, "DRAGOMAN_CONTEXT: no hub is kept as x"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			code, _, stderr := run(t, append([]string{"packs", "--json"}, tt.args...)...)
			if code != tt.code || !strings.Contains(stderr, tt.stderr) {
				t.Errorf("got %d and %q, want %d and %q", code, stderr, tt.code, tt.stderr)
			}
		})
	}

	if code, _, stderr := run(t, "logout", "b a"); code != command.ExitFailed || !strings.Contains(stderr, `no hub is kept as "b a"`) {
		t.Errorf("logout of what is not kept: got %d and %q", code, stderr)
	}
	if code, out, _ := run(t, "logout", "a b"); code != command.ExitDone || out != "forgot \"a b\"\n" {
		t.Errorf("logout: got %d and %q", code, out)
	}
	if err := os.WriteFile(file, []byte("{ mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"login"}, {"login", one}, {"logout", "a"}, {"packs", "--context=a"}} {
		if code, text := runAll(t, "s3cret", args...); code == command.ExitDone || !strings.Contains(text, "mend the file, or remove it") {
			t.Errorf("%q with a broken file: got %d and %q, want what to do", args, code, text)
		}
	}
	if text, err := os.ReadFile(file); string(text) != "{ mine" {
		t.Errorf("the broken file: got %q and %v, want it as it was", text, err)
	}
}
