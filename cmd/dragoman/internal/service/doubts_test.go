package service_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

func TestARuleForNobodyIsWarnedOf(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	c := config.Local()
	c.Agents = config.Agents{{Name: "shout", Dialect: "text", Process: config.Process{Command: []string{"cat"}}}}
	c.Auth.Tokens = write("tokens.yaml", "tokens:\n- {principal: alice, roles: [duty], sha256: "+strings.Repeat("0a", 32)+"}\n")
	c.Auth.Rules = write("rules.yaml", `rules:
  - {who: [alice, "role:duty", shout, "ci-*"], may: see, to: "*"}
  - {who: alise, may: ask, to: "*"}
  - {who: "role:dutty", may: ask, to: "*"}
  - {who: alice, may: ask, to: "shout[12]"}
`)
	want := []string{
		"line 3: no token or key is of the principal alise: did you mean alice?",
		"line 4: no token or key has the role dutty: did you mean duty?",
		`line 5: in "shout[12]" only * stands for other characters`,
	}
	got := service.Warnings(c)
	if len(got) != len(want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for i := range min(len(got), len(want)) {
		if !strings.Contains(got[i], c.Auth.Rules+": "+want[i]) {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
	}
	c.Auth.Registration = "pending" // then principals come that no file names
	if got := service.Warnings(c); len(got) != 2 {
		t.Errorf("with registration: got %q, want the last two", got)
	}
	c.Auth.JWT = config.Issuers{{Issuer: "i", Audience: "a", JWKS: "https://example.com/keys"}}
	if got := service.Warnings(c); len(got) != 1 {
		t.Errorf("with JSON Web Tokens: got %q, want the last one", got)
	}
}
