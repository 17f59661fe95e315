package e2e

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/crypto/ssh"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

// sshKey signs requests as the clients of Coven do.
type sshKey struct{ ssh.Signer }

func newSSHKey(t *testing.T) sshKey {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	return sshKey{signer}
}

// header returns the fields of a new signature.
func (k sshKey) header(t *testing.T) http.Header {
	t.Helper()
	at, nonce := strconv.FormatInt(time.Now().Unix(), 10), rand.Text()
	signature, err := k.Sign(rand.Reader, []byte(at+"|"+nonce))
	if err != nil {
		t.Fatal(err)
	}
	return http.Header{
		"X-Ssh-Pubkey": {strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.PublicKey())))}, "X-Ssh-Timestamp": {at}, "X-Ssh-Nonce": {nonce},
		"X-Ssh-Signature": {base64.StdEncoding.EncodeToString(ssh.Marshal(*signature))},
	}
}

// get returns the status of a signed request.
func (k sshKey) get(t *testing.T, url string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = k.header(t)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// principalsOf lists the principals at a hub as an operator.
func principalsOf(t *testing.T, hub string) []core.KnownPrincipal {
	t.Helper()
	code, out, stderr := run(t, "principals", "list", "--json", "--hub", hub, "--token", "root")
	var list struct{ Principals []core.KnownPrincipal }
	if err := json.Unmarshal([]byte(out), &list); err != nil || code != command.ExitDone {
		t.Fatalf("got %d, %s and %s (%v), want the principals", code, out, stderr, err)
	}
	return list.Principals
}

func TestAPrincipalIsApprovedOverARestartAndRevokedAtOnce(t *testing.T) {
	dir, tokens := t.TempDir(), tokensFile(t, "alice", "root")
	key := newSSHKey(t)
	var name string
	change := func(registration string) func(*config.Config) {
		return func(c *config.Config) { c.DataDir, c.Auth.Tokens, c.Auth.Registration = dir, tokens, registration }
	}
	decide := func(t *testing.T, hub, act, token string) (int, string) {
		code, out, stderr := run(t, "principals", act, name, "--hub", hub, "--token", token)
		return code, out + stderr
	}
	t.Run("it registers and is approved", func(t *testing.T) {
		at := newTestHub(t, change("pending")).url()
		if got := key.get(t, at+"/v1/agents"); got != http.StatusUnauthorized && got != http.StatusForbidden {
			t.Fatalf("an unknown key: got %d, want it refused", got)
		}
		first := principalsOf(t, at)[0]
		if first.Status != core.PrincipalPending || first.Credential != "registered" || len(first.Fingerprint) != 64 {
			t.Fatalf("got %+v, want the key that waits first", first)
		}
		name = first.Principal
		if code, text := decide(t, at, "approve", "alice"); code != command.ExitFailed || !strings.Contains(text, "who may connect is for operators") {
			t.Errorf("alice: got %d and %s, want that it is for operators", code, text)
		}
		if code, _, stderr := run(t, "principals", "list", "--hub", at, "--token", "alice"); code != command.ExitFailed || !strings.Contains(stderr, "the list of principals is for operators") {
			t.Errorf("alice: got %d and %s, want that the list is for operators", code, stderr)
		}
		if got := key.get(t, at+"/v1/agents"); got == http.StatusOK {
			t.Error("got the key connected, want it refused until it is approved")
		}
		if code, text := decide(t, at, "approve", "root"); code != command.ExitDone {
			t.Fatalf("got %d and %s, want it approved", code, text)
		}
		if got := key.get(t, at+"/v1/agents"); got != http.StatusOK {
			t.Errorf("once it is approved: got %d, want %d", got, http.StatusOK)
		}
	})
	t.Run("it is known after a restart, and revoked", func(t *testing.T) {
		h := newTestHub(t, change("disabled")) // others do not come any more
		at := h.url()
		conn, _, err := websocket.Dial(t.Context(), "ws://"+h.service.Addresses().HTTP+service.NativePath, &websocket.DialOptions{HTTPHeader: key.header(t)})
		if err != nil {
			t.Fatalf("got %v, want the approval kept", err)
		}
		defer conn.CloseNow()
		if _, _, err := conn.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if code, text := decide(t, at, "revoke", "root"); code != command.ExitDone {
			t.Fatalf("got %d and %s, want it revoked", code, text)
		}
		ctx, cancel := context.WithTimeout(t.Context(), watchdog)
		defer cancel()
		for err == nil {
			_, _, err = conn.Read(ctx)
		}
		if ctx.Err() != nil {
			t.Error("got its session open still, want it ended")
		}
		if got := key.get(t, at+"/v1/agents"); got == http.StatusOK {
			t.Error("got the revoked key connected, want it refused")
		}
		for who, want := range map[string]string{"alice": "is in the settings: change auth.tokens", "nobody": "registered: dragoman principals list"} {
			if code, _, stderr := run(t, "principals", "revoke", who, "--hub", at, "--token", "root"); code != command.ExitUsage || !strings.Contains(stderr, want) {
				t.Errorf("%s: got %d and %s, want %q", who, code, stderr, want)
			}
		}
	})
	t.Run("it is revoked after another restart", func(t *testing.T) {
		at := newTestHub(t, change("approved")).url()
		if got := key.get(t, at+"/v1/agents"); got == http.StatusOK {
			t.Error("got the revoked key connected, want it refused")
		}
		if first := principalsOf(t, at)[0]; fmt.Sprint(first.Principal, first.Status) != fmt.Sprint(name, core.PrincipalRevoked) {
			t.Errorf("got %+v, want %s revoked", first, name)
		}
	})
}
