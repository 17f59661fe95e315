package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestTheSettingsOfAuthenticationAreRead(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	c, err := configOf(t, `
auth:
  ssh_keys: ~/keys
  registration: pending
  jwt:
    - {issuer: "https://idp.example", audience: dragoman, jwks: "https://idp.example/keys", principal_claim: email, roles_claim: realm_access.roles}
    - {issuer: ci, audience: dragoman, secret_file: ~/secret}
    - {issuer: here, audience: dragoman, jwks: "http://127.0.0.1:8000/keys"}
    - {secret_file: coven.secret}
`, nil)
	want := config.Auth{SSHKeys: filepath.Join(home, "keys"), Registration: "pending", JWT: config.Issuers{
		{Issuer: "https://idp.example", Audience: "dragoman", JWKS: "https://idp.example/keys", PrincipalClaim: "email", RolesClaim: "realm_access.roles"},
		{Issuer: "ci", Audience: "dragoman", SecretFile: filepath.Join(home, "secret")},
		{Issuer: "here", Audience: "dragoman", JWKS: "http://127.0.0.1:8000/keys"},
		{SecretFile: "coven.secret"},
	}}
	if diff := cmp.Diff(want, c.Auth); err != nil || diff != "" {
		t.Errorf("got %v; settings (-want +got)\n%s", err, diff)
	}
	if got := config.Default().Auth; got.Registration != "disabled" || got.JWT != nil {
		t.Errorf("default: got %+v, want no registration and no issuer", got)
	}
}

func TestAnIssuerThatWouldAcceptTooMuchIsRefused(t *testing.T) {
	for issuer, want := range map[string]string{
		`{issuer: i, audience: a}`:                                                           "auth.jwt[0].jwks: missing",
		`{issuer: i, audience: a, jwks: "https://x", secret_file: s}`:                        "auth.jwt[0].secret_file: an issuer has a key set (jwks) or a secret, not both",
		`{issuer: i, jwks: "https://x"}`:                                                     "auth.jwt[0].audience: missing",
		`{audience: a, jwks: "https://x"}`:                                                   "auth.jwt[0].issuer: missing",
		`{jwks: "https://x"}`:                                                                "auth.jwt[0].issuer: missing",
		`{issuer: i, audience: a, jwks: "http://x/keys"}`:                                    "jwks: want https",
		`{issuer: i, audience: a, jwks: "http://127.0.0.1.x/keys"}`:                          "jwks: want https",
		`{issuer: i, audience: a, jwks: "https://u:hunter2@x"}`:                              "jwks: it contains a password",
		`{issuer: i, audience: a, jwks: keys.json}`:                                          "jwks: want an https address",
		`{issuer: i, audience: a, secret: hunter2}`:                                          "secret",
		`{issuer: i, audience: a, secret_file: s}, {issuer: i, audience: b, secret_file: s}`: "auth.jwt[1].issuer: it is that of auth.jwt[0] too",
	} {
		_, err := configOf(t, "auth: {jwt: ["+issuer+"]}", nil)
		if err == nil || !strings.Contains(err.Error(), "auth.jwt[") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want %q", issuer, err, want)
		}
	}
	if _, err := configOf(t, "auth: {registration: open}", nil); err == nil || !strings.Contains(err.Error(), "want disabled, pending or approved") {
		t.Errorf("got %v, want the three registrations", err)
	}
}
