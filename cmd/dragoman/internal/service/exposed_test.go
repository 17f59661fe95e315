package service_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

func TestCredentialsThatOthersMayReadAreWarnedOfWithTheirMode(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(open, []byte("tokens: [{principal: alice, sha256: \""+strings.Repeat("0a", 32)+"\"}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	c := config.Local()
	c.Auth = config.Auth{Tokens: open, JWT: config.Issuers{{JWKS: "https://example.com"}, {SecretFile: open}}}
	got := strings.Join(service.Warnings(c), "\n")
	for _, setting := range []string{"auth.tokens", "auth.jwt[1].secret_file"} {
		if want := setting + ": other users may read " + open + " (mode 0644): run chmod 600 on it"; !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	var log strings.Builder
	c.Auth.JWT = nil
	if hub, err := service.Start(t.Context(), c, slog.New(slog.NewTextHandler(&log, nil)), nil); err != nil {
		t.Fatal(err)
	} else if err := hub.Stop(t.Context(), "the test is over"); err != nil {
		t.Error(err)
	}
	if want := "other users may read " + open + " (mode 0644)"; !strings.Contains(log.String(), want) {
		t.Errorf("starting: got %s, want %q in the log", log.String(), want)
	}
	if err := os.Chmod(open, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := service.Warnings(c); len(got) > 0 {
		t.Errorf("with the mode 0600: got %q, want no warning", got)
	}
}

func TestWebhooksOfUnknownAgentsAreWarnedOf(t *testing.T) {
	c := config.Local()
	c.Agents = config.Agents{{Name: "claude"}, {Name: "pi"}}
	c.Notify.Webhooks = config.Webhooks{{URL: "http://x", Agents: []string{"claude", "p*", "clade"}}}
	got := service.Warnings(c)
	if want := `notify.webhooks[0].agents[2]: no agent of the settings is "clade": right only if it connects itself, or did you mean claude?`; len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q alone", got, want)
	}
}
