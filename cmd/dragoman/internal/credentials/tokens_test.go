package credentials_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/credentials"
	"github.com/dragoman-hub/dragoman/core"
)

// hashOfA is the SHA-256 of "a".
const hashOfA = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"

// someKey is a public key of which nobody has the private part.
const someKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPMj3aX5y2kR6fTyJ5mVqkqpW5Y3w6a6JmZbZLhcv0M"

// write writes a file that only its owner can read.
func write(t testing.TB, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestATokenIsReadWithWhatItSaysOfItsOwner(t *testing.T) {
	list, err := credentials.ReadTokens(write(t, `
tokens:
- {principal: a, sha256: `+hashOfA+`, expires: 2030-01-31T12:00:00Z, kind: agent, roles: dev, agents: ["team-*", shout]}
- {principal: b, sha256: `+strings.Repeat("0", 63)+`b, operator: true}
`))
	if err != nil || len(list) != 2 {
		t.Fatalf("got %+v and %v, want two tokens", list, err)
	}
	a, b := list[0], list[1]
	if a.Hash != auth.HashOf("a") || a.Expires.Year() != 2030 || a.Kind != core.KindAgent || !slices.Equal(a.Roles, []string{"dev"}) || !slices.Equal(a.Agents, []string{"team-*", "shout"}) {
		t.Errorf("got %+v, want what the file says of a", a)
	}
	if b.Owner().Credential != nil || !b.Operator {
		t.Errorf("got %+v, want an operator with nothing else", b)
	}
	if list, err := credentials.ReadTokens(""); list != nil || err != nil {
		t.Errorf("without a file: got %v and %v, want none", list, err)
	}
}

func TestWhatATokenCannotSayIsRefusedWithItsLine(t *testing.T) {
	for key, want := range map[string]string{
		"kind: hunter2": "kind: want person, agent or service", "kind: ''": "kind: want person, agent or service", "kind: 1": "kind: want person",
		"roles: 7": "roles: want a list of texts", "roles: [7]": "roles: want a list of texts", "roles: ['']": "roles: want names of 1 to 256 bytes",
		"agents: {hunter2: 1}": "agents: want a list of texts", "agents: ['capability:hunter2']": "agents: want ids of agents",
	} {
		_, err := credentials.ReadTokens(write(t, "tokens:\n- {principal: a, sha256: "+hashOfA+", "+key+"}\n"))
		if err == nil || !strings.Contains(err.Error(), "line 2: token 1: "+want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want %q in line 2, nothing quoted", key, err, want)
		}
	}
}

func TestAllMistakesOfAFileWithSecretsAreReportedTogetherAndNotQuoted(t *testing.T) {
	path := write(t, "tokens:\n- {principal: a, sha256: hunter2}\n- principal: b\n  sha256: "+hashOfA+"\n  hunter2: 1\n- {principal: c, sha256: "+hashOfA+"}\n")
	_, tokens := credentials.ReadTokens(path)
	variables := write(t, "ben: {KEY: 4711, \"a b\": hunter2}\nana: hunter2\n")
	_, coven := credentials.ReadSecrets(variables)
	signing := write(t, "ben: hunter2\n\nana: [hunter2]\n")
	_, parallax := credentials.ReadSigningSecrets(signing)
	twice := write(t, "ben: {KEY: a}\nben: {KEY: hunter2}\n")
	_, doubled := credentials.ReadSecrets(twice)
	for _, c := range []struct {
		err  error
		want []string
	}{
		{tokens, []string{"auth.tokens: " + path + ", line 2: token 1: sha256: ", "auth.tokens: " + path + ", line 3: token 2: unknown key: want principal"}},
		{coven, []string{"coven.secrets: " + variables + ", line 2: want the id of an agent", `, line 1: KEY of "ben" is not text`, `, line 1: a name below "ben" cannot be one`}},
		{parallax, []string{"parallax.secrets: " + signing + ", line 3: want ids of agents", `, line 1: the secret of "ben" is short: want at least 16 bytes`}},
		{doubled, []string{"coven.secrets: " + twice + " is not YAML in line 2"}},
	} {
		if c.err == nil || strings.Count(c.err.Error(), "\n") != len(c.want)-1 || strings.Contains(c.err.Error(), "hunter2") {
			t.Errorf("got %v, want %d mistakes, nothing quoted", c.err, len(c.want))
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(c.err.Error(), want) {
				t.Errorf("got %v, want %q", c.err, want)
			}
		}
	}
}

func TestKeysAreReadFromTheirFile(t *testing.T) {
	keys, err := credentials.ReadKeys(write(t, "# keys\n"+`principal="ana" `+someKey+"\n"))
	if err != nil || len(keys) != 1 || keys[0].Principal != "ana" {
		t.Errorf("got %+v and %v, want the key of ana", keys, err)
	}
	path := write(t, "# keys\n"+someKey)
	if _, err := credentials.ReadKeys(path); err == nil || !strings.HasPrefix(err.Error(), "auth.ssh_keys: "+path+", line 2: it does not say whose key it is") {
		t.Errorf("got %v, want the file and the line", err)
	}
	if _, err := credentials.ReadKeys(write(t, "# none\n")); err == nil || !strings.Contains(err.Error(), "has no key: write lines such as") {
		t.Errorf("an empty file: got %v, want what to write", err)
	}
	if _, err := credentials.ReadKeys(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v, want that there is none", err)
	}
	if keys, err := credentials.ReadKeys(""); keys != nil || err != nil {
		t.Errorf("without a file: got %v and %v, want none", keys, err)
	}
}

func TestSecretsOfIssuersAreReadFromTheirFiles(t *testing.T) {
	const secret = "hunter2-hunter2-hunter2-hunter2-hunter2"
	list, err := credentials.ReadIssuers(config.Issuers{
		{Issuer: "i", Audience: "a", SecretFile: write(t, secret+"\r\n"), PrincipalClaim: "p", RolesClaim: "r"},
		{Issuer: "j", Audience: "a", JWKS: "https://example.com"},
	})
	if err != nil || len(list) != 2 || string(list[0].Secret) != secret || list[0].PrincipalClaim != "p" || list[0].RolesClaim != "r" || list[1].Secret != nil || list[1].JWKS == "" {
		t.Errorf("got %+v and %v, want an issuer with a secret, without the end of the line, and one with a key set", list, err)
	}
	short, missing := write(t, "hunter2\n"), filepath.Join(t.TempDir(), "none")
	_, err = credentials.ReadIssuers(config.Issuers{{SecretFile: short}, {SecretFile: missing}, {SecretFile: write(t, strings.Repeat("hunter2", 1000))}})
	if err == nil || strings.Contains(err.Error(), "hunter2") || !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("got %v, want all mistakes, nothing quoted", err)
	}
	for _, want := range []string{"auth.jwt: " + short + ": the secret has 7 bytes: want at least 32", "auth.jwt: " + missing, "more than 4096 bytes"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestAllMistakesOfAuthenticationAreReportedTogether(t *testing.T) {
	c := config.Auth{
		Tokens: write(t, "tokens: []"), SSHKeys: write(t, "hunter2"), Registration: "pending", JWT: config.Issuers{{Issuer: "i", Audience: "a", SecretFile: write(t, "hunter2")}},
	}
	_, err := credentials.ReadAuth(c)
	if err == nil || strings.Count(err.Error(), "\n") != 2 || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v, want three mistakes, nothing quoted", err)
	}
	s, err := credentials.ReadAuth(config.Auth{SSHKeys: write(t, `principal="ana" `+someKey), Registration: "pending", JWT: config.Issuers{{JWKS: "https://example.com"}}})
	if err != nil || len(s.Keys) != 1 || len(s.Issuers) != 1 || s.Registration.String() != "pending" || s.Tokens != nil {
		t.Errorf("got %+v and %v, want a key, an issuer and the registration", s, err)
	}
}
