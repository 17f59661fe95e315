package service_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

func TestCredentialsThatOthersMayReadAreWarnedOfWithTheirMode(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(open, nil, 0o600); err != nil {
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
	if err := os.Chmod(open, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := service.Warnings(c); len(got) > 0 {
		t.Errorf("with the mode 0600: got %q, want no warning", got)
	}
}
