package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

// A hub with a broken file does not start, and checking the configuration reports the file.
func TestCheckReadsTheFilesThatSettingsName(t *testing.T) {
	dir := t.TempDir()
	settings, good, bad := filepath.Join(dir, "dragoman.yaml"), filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	for path, text := range map[string]string{good: "tokens:\n- principal: alice\n  sha256: " + strings.Repeat("ab", 32) + "\n", bad: "[secret\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for setting, want := range map[string]int{
		"auth.tokens: " + good: command.ExitDone, "auth.tokens: " + bad: command.ExitUsage, "auth.tokens: " + dir + "/none": command.ExitUsage,
		"coven.secrets: " + bad: command.ExitUsage, "parallax.secrets: " + bad: command.ExitUsage,
	} {
		if err := os.WriteFile(settings, []byte(setting), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := run(t, "check", "--config", settings)
		if code != want || want == command.ExitUsage && !strings.Contains(stderr, setting) || strings.Contains(stderr, "[secret") {
			t.Errorf("%s: got %d and %q, want %d and the setting with its file named", setting, code, stderr, want)
		}
	}
}

func TestCheckRefusesThePathsThatServeRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ flag, path, advice string }{
		{"--data-dir", file, "name a directory"},
		{"--pi-socket", file, "remove it, or name another"},
		{"--ready-file", filepath.Join(dir, "none", "x"), "name a file in a directory"},
		{"--ready-file", dir, "name a file in a directory"},
	} {
		for _, command := range [][]string{{"check"}, {"serve", "--grpc-addr=", "--http-addr=127.0.0.1:0", "--pi-addr="}} {
			code, _, stderr := run(t, append(command, tt.flag, tt.path)...)
			if code == 0 || !strings.Contains(stderr, tt.flag+" "+tt.path) || !strings.Contains(stderr, tt.advice) || strings.Contains(stderr, ".tmp") {
				t.Errorf("%s %s %s: got %d and %q, want the flag and %q", command[0], tt.flag, tt.path, code, stderr, tt.advice)
			}
		}
	}
}

func TestServeSaysHowToReachTheServerOfTheJournal(t *testing.T) {
	args := []string{"serve", "--grpc-addr=", "--http-addr=127.0.0.1:0", "--pi-addr=", "--nats-url=nats://127.0.0.1:1"}
	if code, _, stderr := run(t, args...); code != command.ExitFailed || !strings.Contains(stderr, "start NATS there, or name another server with --nats-url") {
		t.Errorf("got %d and %q, want the flag and what to do", code, stderr)
	}
}

func TestAPrincipalWithTheNameOfAnAgentOfTheSettingsIsRefusedWithBothLines(t *testing.T) {
	dir := t.TempDir()
	tokens, keys := filepath.Join(dir, "tokens.yaml"), filepath.Join(dir, "keys")
	for path, text := range map[string]string{
		tokens: "tokens:\n- principal: alice\n  sha256: " + strings.Repeat("a", 64) + "\n- principal: shout\n  sha256: " + strings.Repeat("b", 64) + "\n",
		keys:   "# people\n" + `principal="shelf" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ6eoQBbVrHzDGMTcTMpEtBDZ8bHJlzTTHmoZ4pP6MQc`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := configFile(t, dir, `auth: {tokens: `+tokens+`, ssh_keys: `+keys+`}
agents:
  - {name: quiet, dialect: text, command: [cat]}
  - {name: shout, dialect: text, command: [cat]}
packs:
  - {name: shelf, command: [cat]}
grpc_addr: ""
pi_addr: ""
http_addr: 127.0.0.1:0
`)
	for _, name := range []string{"check", "serve"} {
		code, _, stderr := run(t, name, "--config", path)
		for _, want := range []string{
			"the agent shout acts under this name, which is also the principal of auth.tokens in " + tokens + ", line 4: give one of the two another name",
			path + ":4: agents[1].name: the agent",
			path + ":6: packs[0].name: the pack shelf acts under this name, which is also the principal of auth.ssh_keys in " + keys + ", line 2: give",
		} {
			if code == command.ExitDone || !strings.Contains(stderr, want) || strings.Contains(stderr, "quiet") {
				t.Errorf("%s: got %d and %s, want %q", name, code, stderr, want)
			}
		}
	}
}

func TestServeEndsOnAFileThatCannotBeReadAsCheckDoes(t *testing.T) {
	dir := t.TempDir()
	wrong := filepath.Join(dir, "wrong")
	if err := os.WriteFile(wrong, []byte("[what is this"), 0o600); err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(dir, "none")
	for _, setting := range []string{
		"auth.tokens: " + wrong, "auth.tokens: " + none, "auth.ssh_keys: " + wrong, "auth.jwt: [{issuer: i, audience: a, secret_file: " + none + "}]",
		"auth: {registration: pending, rules: " + wrong + "}", "auth: {registration: pending, rules: " + none + "}",
		"coven.secrets: " + wrong, "parallax.secrets: " + wrong, "tls: {cert: " + none + ", key: " + none + "}",
	} {
		path := configFile(t, dir, setting+"\ngrpc_addr: \"\"\npi_addr: \"\"\nhttp_addr: 127.0.0.1:0\n")
		_, _, want := run(t, "check", "--config", path)
		code, _, got := run(t, "serve", "--config", path)
		if code != command.ExitUsage || got != want || want == "" {
			t.Errorf("%s: got %d and %q, want %d and what check says: %q", setting, code, got, command.ExitUsage, want)
		}
	}
}
