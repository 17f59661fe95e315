package e2e

import (
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// signing is somebody with an SSH key that the settings name.
type signing struct {
	t   *testing.T
	key ssh.Signer
}

func newSigning(t *testing.T) signing {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	s, file := signing{t, newSigner(t, key, err)}, filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte(`principal="ana" `+string(ssh.MarshalAuthorizedKey(s.key.PublicKey()))), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DRAGOMAN_AUTH_SSH_KEYS", file) // of the hubs that the test starts
	return s
}

// sign returns the headers of a call.
func (s signing) sign() http.Header {
	h := http.Header{}
	for key, values := range signMetadata(s.t, s.key, time.Now(), rand.Text(), "") {
		h.Set(key, values[0])
	}
	return h
}

// get returns what a hub answers to a call with the headers.
func (s signing) get(url string, h http.Header) (status int, text string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url+"/v1/agents", nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header = h
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// replayed checks that a hub does not take a signature again, and takes a new one.
func (s signing) replayed(where, url string, h http.Header) {
	s.t.Helper()
	if status, text := s.get(url, h); status != http.StatusUnauthorized || !strings.Contains(text, "nonce already used") {
		s.t.Errorf("%s: got %d and %s for a signature that was used, want 401", where, status, text)
	}
	if status, text := s.get(url, s.sign()); status != http.StatusOK {
		s.t.Errorf("%s: got %d and %s for a new signature, want 200", where, status, text)
	}
}

// used signs a call, which a hub takes.
func (s signing) used(url string) http.Header {
	s.t.Helper()
	h := s.sign()
	if status, text := s.get(url, h); status != http.StatusOK {
		s.t.Fatalf("got %d and %s for a signature, want 200", status, text)
	}
	return h
}

func TestASignatureIsNotTakenAgainAfterAKill(t *testing.T) {
	tier.Full(t, "it kills a process and starts it again")
	s, dir := newSigning(t), t.TempDir()
	hub := func() *servedHub {
		return serveHubCmd(t, program(t, "serve", "--data-dir", dir, "--grpc-addr", "", "--http-addr", "127.0.0.1:0", "--pi-addr", "", "--log-format", "json"), "interval")
	}
	first := hub()
	before := s.used(first.URL)
	s.replayed("before the kill", first.URL, before)
	first.kill()
	s.replayed("after the kill", hub().URL, before)
}

func TestASignatureIsTakenByOneHubOfACluster(t *testing.T) {
	s := newSigning(t)
	t.Setenv("DRAGOMAN_AUTH_TOKENS", tokensFile(t, "root"))
	c := newCluster(t, 3)
	for _, h := range c {
		h.Client = client.Hub{URL: h.URL, Token: "root"}.Client()
	}
	c.start()
	used := s.used(c[0].URL)
	for _, h := range c {
		s.replayed("hub "+h.name, h.URL, used)
	}
	c[0].kill()
	for _, h := range c[1:] {
		s.replayed("hub "+h.name+" once the first is gone", h.URL, used)
	}
}
