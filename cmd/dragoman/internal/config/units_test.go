package config_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestATimeIsParsed(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "1h30m": 90 * time.Minute, "7d": 7 * 24 * time.Hour, "1d12h": 36 * time.Hour, "0d": 0, "0s": 0, "-5s": -5 * time.Second,
		"106751d": 106751 * 24 * time.Hour,
	} {
		if got, ok := config.ParseTime(text); !ok || got != want {
			t.Errorf("%q: got %v and %t, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "7", "d", "-7d", "7d-1h", "7d+1h", "1.5d", "7 d", "7days", "106752d", "106751d24h", "999999d"} {
		if got, ok := config.ParseTime(text); ok {
			t.Errorf("%q: got %v, want no time", text, got)
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
	configFile(t, home, "log_level: warn")
	if c, err = configOf(t, "", nil, "--config=~/dragoman.yaml"); err != nil || c.LogLevel != "warn" {
		t.Errorf("the file of settings: got %q and %v, want it read", c.LogLevel, err)
	}
	t.Setenv("HOME", "")
	want := "--data-dir: nobody knows what ~ is here, since HOME is not set: write the whole path"
	if _, err := configOf(t, "", nil, "--data-dir=~/data"); err == nil || err.Error() != want {
		t.Errorf("without a home: got %v, want %s", err, want)
	}
}
