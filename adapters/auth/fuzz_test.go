package auth_test

import (
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/core"
)

// wantRefused checks what holds of credentials that cannot be right.
func wantRefused(t *testing.T, p core.Principal, err error) {
	t.Helper()
	if fault := core.AsFault(err); err == nil || fault.Code != core.CodeUnauthenticated || strings.ContainsAny(fault.Message, "\n\r\x00") || p != (core.Principal{}) {
		t.Errorf("got %+v, %v; want a refusal in one line", p, err)
	}
}

func FuzzSignature(f *testing.F) {
	ann := newEd25519(f)
	a := newAuth(f, auth.Options{}, auth.Settings{Keys: []auth.Key{ann.key(f, ana)}})
	good := ann.sign(f, time.Now(), nonce())
	f.Add(good.Key[0], good.Signature[0], good.Timestamp[0], "other")
	f.Add("ecdsa-sha2-nistp256 AAAA", "AAAA", "0", "")
	f.Fuzz(func(t *testing.T, key, signature, timestamp, nonce string) {
		if key+signature+timestamp+nonce == "" {
			return
		}
		fields := auth.SSHFields{Key: []string{key}, Signature: []string{signature}, Timestamp: []string{timestamp}, Nonce: []string{nonce}}
		if strings.TrimSpace(nonce) == good.Nonce[0] {
			return
		}
		p, err := a.Authenticate(t.Context(), signed(fields))
		wantRefused(t, p, err)
	})
}

func FuzzToken(f *testing.F) {
	s := &keyServer{}
	s.set(keysA, jwks(jwk("1", &testKeys().p256.PublicKey)))
	settings := tokens("alice")
	settings.Issuers = []auth.Issuer{setIssuer(issuerA), {Issuer: issuerB, Audience: audience, Secret: secret}}
	a := newAuth(f, auth.Options{Transport: s}, settings)
	f.Add("Bearer x", "", "")
	f.Add("Bearer "+mint(f, jwt.SigningMethodHS256, []byte("another"), "1", claims(nil)), "plx_", subprotocol("x"))
	f.Add("", "", "Bearer "+mint(f, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "1", claims(nil)))
	f.Fuzz(func(t *testing.T, authorization, key, protocol string) {
		if strings.Contains(authorization+key, "alice") {
			return
		}
		given := auth.Credentials{Authorization: []string{authorization}, Bare: true}
		if key != "" {
			given.APIKey = []string{key}
		}
		if protocol != "" {
			given.Subprotocols = []string{protocol}
		}
		p, err := a.Authenticate(t.Context(), given)
		wantRefused(t, p, err)
		auth.Subprotocol(given.Subprotocols)
	})
}

func FuzzReadKeys(f *testing.F) {
	f.Add(ana + " " + someKey)
	f.Add(`principal="a",agents="b,c",roles="d",kind="agent" ` + someKey + "\n# c\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		keys, err := auth.ReadKeys([]byte(text))
		if err != nil && !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("got %v, want the line", err)
		}
		for _, key := range keys {
			if key.Principal == "" {
				t.Errorf("got %+v, want a principal", key)
			}
		}
	})
}
