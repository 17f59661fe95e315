package auth_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newAuth returns an Authenticator with settings, which ends with the test.
func newAuth(t testing.TB, opts auth.Options, s auth.Settings) *auth.Authenticator {
	t.Helper()
	a, err := auth.New(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	a.Apply(s)
	return a
}

// counters counts what an Authenticator counts.
type counters struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counters) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[name]++
}

// admits checks that credentials are those of a principal.
func admits(t testing.TB, a *auth.Authenticator, given auth.Credentials, want string) core.Principal {
	t.Helper()
	p, err := a.Authenticate(t.Context(), given)
	if err != nil || p.ID != want || !p.Authenticated || !a.Knows(p) {
		t.Errorf("got %+v, %v, known %v; want %s, authenticated and known", p, err, a.Knows(p), want)
	}
	return p
}

// refuses checks that credentials are refused with a Fault of a code whose message has the
// text, and that no text of a credential is in it or its cause.
func refuses(t testing.TB, a *auth.Authenticator, given auth.Credentials, code core.Code, text string) *core.Fault {
	t.Helper()
	p, err := a.Authenticate(t.Context(), given)
	fault := core.AsFault(err)
	if err == nil || fault.Code != code || !strings.Contains(fault.Message, text) || p != (core.Principal{}) {
		t.Errorf("got %+v, %v; want nobody, %s with %q", p, err, code, text)
		return core.NewFault(code, "")
	}
	secrets := [][]string{given.APIKey, given.SSH.Key, given.SSH.Signature, given.SSH.Nonce}
	for _, one := range given.Authorization {
		_, token, _ := strings.Cut(one, " ")
		secrets = append(secrets, []string{token}, strings.Split(token, "."))
	}
	for _, values := range secrets {
		for _, secret := range values {
			if len(secret) > 5 && (strings.Contains(err.Error(), secret) || strings.Contains(causes(fault), secret)) {
				t.Errorf("got the error %q with the cause %q, want no credential in it", err, causes(fault))
			}
		}
	}
	return fault
}

// causes returns the text of what an error wraps.
func causes(err error) string {
	if err = errors.Unwrap(err); err == nil {
		return ""
	}
	return err.Error()
}

func bearer(token string) auth.Credentials {
	return auth.Credentials{Authorization: []string{"Bearer " + token}}
}

// tokens are settings with tokens of the given principals, each "NAME-token".
func tokens(principals ...string) (s auth.Settings) {
	for _, name := range principals {
		s.Tokens = append(s.Tokens, auth.Token{Hash: auth.HashOf(name + "-token"), Principal: name})
	}
	return s
}

func TestCredentialsAreTakenFromHeaders(t *testing.T) {
	h := http.Header{}
	h.Set("x-ssh-nonce", "n")
	h.Set("X-Api-Key", "k")
	h.Add("Authorization", "a")
	h.Add("Authorization", "b")
	h.Set("Sec-Websocket-Protocol", "p")
	got := auth.Presented(h.Values)
	if len(got.SSH.Nonce) != 1 || got.APIKey[0] != "k" || len(got.Authorization) != 2 || got.Subprotocols[0] != "p" {
		t.Errorf("got %+v, want all values of each header", got)
	}
}

func TestAnOpenHubAsksForNothing(t *testing.T) {
	a := newAuth(t, auth.Options{}, auth.Settings{Unix: []auth.UnixUser{{UID: 7, Principal: "me"}}})
	wrong := auth.SSHFields{Nonce: []string{"n"}}
	for _, given := range []auth.Credentials{{}, bearer("whatever"), {SSH: wrong}, {Unix: &auth.UnixPeer{UID: 8}}} {
		p, err := a.Authenticate(context.Background(), given)
		if err != nil || p != (core.Principal{}) || !a.Open() || !a.Knows(p) {
			t.Errorf("%+v: got %+v, %v, open %v, known %v; want nobody in particular, who is known", given, p, err, a.Open(), a.Knows(p))
		}
	}
	a.Apply(tokens("alice"))
	if a.Open() || a.Knows(core.Principal{}) {
		t.Errorf("with a token: got open %v, nobody known %v; want neither", a.Open(), a.Knows(core.Principal{}))
	}
	for name, s := range map[string]auth.Settings{
		"registration": {Registration: auth.RegistrationPending},
		"a key":        {Keys: []auth.Key{{Principal: "a"}}},
		"an issuer":    {Issuers: []auth.Issuer{{Issuer: "i", Audience: "a", Secret: secret}}},
	} {
		if a.Apply(s); a.Open() {
			t.Errorf("with %s: got open, want not", name)
		}
	}
}

func TestRefusalsAreCountedByKind(t *testing.T) {
	var got counters
	a := newAuth(t, auth.Options{Count: got.add}, tokens("alice"))
	for _, given := range []auth.Credentials{
		{}, bearer("x"), {APIKey: []string{"x"}}, {SSH: auth.SSHFields{Nonce: []string{"n"}}}, {Unix: &auth.UnixPeer{UID: 1}}, bearer("alice-token"),
	} {
		_, _ = a.Authenticate(t.Context(), given)
	}
	for kind, want := range map[string]int{"missing": 1, "token": 2, "ssh": 1, "unix": 1} {
		if got.n["auth.refused."+kind] != want {
			t.Errorf("%s: got %d, want %d (all: %v)", kind, got.n["auth.refused."+kind], want, got.n)
		}
	}
}
