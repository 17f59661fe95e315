package config_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestATimeIsParsed(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "1h30m": 90 * time.Minute, "7d": 7 * 24 * time.Hour, "1d12h": 36 * time.Hour, "0d": 0, "0s": 0, "-5s": -5 * time.Second,
		"106751d": 106751 * 24 * time.Hour, "2w": 14 * 24 * time.Hour, "1w2d3h": (9*24 + 3) * time.Hour, "1.5h": 90 * time.Minute,
	} {
		if got, ok := config.ParseTime(text); !ok || got != want {
			t.Errorf("%q: got %v and %t, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "7", "d", "-7d", "7d-1h", "7d+1h", "1.5d", "7 d", "7days", "106752d", "106751d24h", "999999d", "1d1w", "1w1w", "1.5w", "w", "99999w"} {
		if got, ok := config.ParseTime(text); ok {
			t.Errorf("%q: got %v, want no time", text, got)
		}
	}
}

func TestATimeIsWrittenAsItIsRead(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "250ms": 250 * time.Millisecond, "30s": 30 * time.Second, "5m": 5 * time.Minute, "1h30m": 90 * time.Minute, "1h0m5s": time.Hour + 5*time.Second,
		"1d": 24 * time.Hour, "1d12h": 36 * time.Hour, "7d": 168 * time.Hour, "400d": 9600 * time.Hour, "-1h": -time.Hour,
	} {
		got := config.FormatTime(d)
		if again, ok := config.ParseTime(got); got != want || !ok || again != d {
			t.Errorf("%d: got %s, read as %v, want %s", d, got, again, want)
		}
	}
}

func TestASizeIsWrittenAsItIsRead(t *testing.T) {
	for want, n := range map[string]int64{
		"0": 0, "7": 7, "1KiB": 1024, "1kB": 1000, "64KiB": 65_536, "1MB": 1_000_000, "24MiB": 24 << 20, "1536MiB": 3 << 29, "1GiB": 1 << 30, "1TB": 1e12, "1234567": 1_234_567,
	} {
		got := config.FormatSize(n)
		if again, ok := config.ParseSize(got); got != want || !ok || again != n {
			t.Errorf("%d: got %s, read as %d, want %s", n, got, again, want)
		}
	}
}

func TestAPathMayBeginWithTheHomeDirectory(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	c, err := configOf(t, "pi_socket: ~/pi\nauth: {tokens: ~/tokens.yaml}", []string{"DRAGOMAN_READY_FILE=~/ready", "DRAGOMAN_COVEN_SECRETS=a/~/b"}, "--data-dir=~/data")
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		c.PiSocket: filepath.Join(home, "pi"), c.Auth.Tokens: filepath.Join(home, "tokens.yaml"), c.ReadyFile: filepath.Join(home, "ready"),
		c.DataDir: filepath.Join(home, "data"), c.Coven.Secrets: "a/~/b",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	c, err = configOf(t, `
agents: [{name: a, dialect: text, command: [~/bin/a, ~/x], cwd: ~/work}, {name: b, dialect: a2a, url: "http://b.example", token_file: ~/b.token}]
auth.jwt: [{secret_file: ~/jwt}]`, nil)
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		c.Agents[0].Command[0]: filepath.Join(home, "bin/a"), c.Agents[0].Command[1]: "~/x", c.Agents[0].Dir: filepath.Join(home, "work"),
		c.Agents[1].TokenFile: filepath.Join(home, "b.token"), c.Auth.JWT[0].SecretFile: filepath.Join(home, "jwt"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	configFile(t, home, "log_level: warn")
	if c, err = configOf(t, "", nil, "--config=~/dragoman.yaml"); err != nil || c.LogLevel != "warn" {
		t.Errorf("the file of settings: got %q and %v, want it read", c.LogLevel, err)
	}
	t.Setenv("HOME", "")
	_, err = configOf(t, "agents: [{name: a, dialect: text, command: [~/bin/a]}]", nil)
	if want := ":1: agents[0].command: nobody knows what ~ is here"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("an agent without a home: got %v, want %s", err, want)
	}
	want := "--data-dir: nobody knows what ~ is here, since HOME is not set: write the whole path"
	if _, err := configOf(t, "", nil, "--data-dir=~/data"); err == nil || err.Error() != want {
		t.Errorf("without a home: got %v, want %s", err, want)
	}
}
