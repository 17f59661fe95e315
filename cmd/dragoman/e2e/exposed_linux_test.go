package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// What 'dragoman serve' says beyond loopback is what to write: doing exactly that makes a hub
// which its clients reach by TLS and with a token alone.
func TestTheLinesThatARefusedHubNamesMendIt(t *testing.T) {
	if os.Getenv(inNamespace) == "" {
		inNetwork(t)
		return
	}
	const at = elsewhere + ":8443"
	for _, setting := range []string{"--http-addr", "--grpc-addr", "--pi-addr"} {
		if code, _, stderr := run(t, "serve", "--http-addr", "", "--grpc-addr", "", "--pi-addr", "", setting, at); code != command.ExitUsage || strings.Count(stderr, "\n    ") != 3 {
			t.Errorf("%s: got %d and %s, want it refused with three lines", setting, code, stderr)
		}
	}
	_, _, refusal := run(t, "serve", "--http-addr", at, "--grpc-addr", "", "--pi-addr", "")
	_, said, _ := strings.Cut(refusal, "write into the settings\n")
	dir := t.TempDir()
	cert, key := certificate(t, elsewhere)
	for from, to := range map[string]string{cert: "hub.crt", key: "hub.key"} {
		if err := os.Rename(from, filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	code, token, stderr := run(t, "token", "new", "--principal", "alice", "--file", filepath.Join(dir, "tokens.yaml"))
	if code != command.ExitDone {
		t.Fatalf("token new: got %d and %s", code, stderr)
	}
	token = strings.TrimSpace(token)
	var settings []string
	for line := range strings.Lines(said) {
		settings = append(settings, strings.ReplaceAll(strings.TrimSpace(line), "/path/to/", dir+"/"))
	}
	path := filepath.Join(dir, "dragoman.yaml")
	if err := os.WriteFile(path, []byte(strings.Join(settings, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Logf("the settings:\n%s", strings.Join(settings, "\n"))
	if code, _, stderr := run(t, "check", "--config", path, "--http-addr", at); code != command.ExitDone {
		t.Errorf("check: got %d and %s, want no mistake", code, stderr)
	}
	startHub(t, "--config", path, "--http-addr", at)
	ca := filepath.Join(dir, "hub.crt")
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"by TLS with the token": {[]string{"--hub", "https://" + at, "--ca", ca, "--token", token}, command.ExitDone, ""},
		"without the token":     {[]string{"--hub", "https://" + at, "--ca", ca}, command.ExitFailed, "the hub asks for a token"},
		"with another":          {[]string{"--hub", "https://" + at, "--ca", ca, "--token", "another"}, command.ExitFailed, "the hub does not know the token"},
		"without TLS":           {[]string{"--hub", "http://" + at}, command.ExitFailed, "speaks TLS: write https"},
	} {
		if code, _, stderr := run(t, append([]string{"agents"}, c.args...)...); code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: got %d and %q, want %d and %q", name, code, stderr, c.code, c.want)
		}
	}
}
