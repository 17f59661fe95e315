package a2a_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/dragoman-hub/dragoman/adapters/a2a"
	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
)

func keyOn(t *testing.T, curve elliptic.Curve) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

func TestASignedCardIsVerifiedWithThePublishedKey(t *testing.T) {
	signer, err := a2a.NewSigner(keyOn(t, elliptic.P256()))
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, a2a.Options{Signer: signer, Bearer: true})
	f.agent("shout")
	read := func(path string) []byte {
		resp := f.request(t.Context(), http.MethodGet, path, "")
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: got %d and %v", path, resp.StatusCode, err)
		}
		return text
	}
	card, err := wire.ReadCard(read("/a2a/shout/.well-known/agent-card.json"))
	if err != nil || len(card.Signatures) != 1 {
		t.Fatalf("got %+v and %v, want a signed card", card, err)
	}
	var keys jose.JSONWebKeySet
	if err := json.Unmarshal(read("/a2a/jwks.json"), &keys); err != nil {
		t.Fatal(err)
	}
	signature := card.Signatures[0]
	verify := func(card wire.Card) error {
		payload, err := a2a.Canonical(card)
		if err != nil {
			t.Fatal(err)
		}
		signed, err := jose.ParseDetached(signature.Protected+".."+signature.Signature, payload, []jose.SignatureAlgorithm{jose.ES256})
		if err != nil {
			return err
		}
		header := signed.Signatures[0].Protected
		if header.KeyID != keys.Keys[0].KeyID || header.ExtraHeaders["jku"] != f.url+"/a2a/jwks.json" || header.ExtraHeaders["typ"] != "JOSE" {
			t.Errorf("got the header %+v, want kid, jku and typ", header)
		}
		_, err = signed.Verify(keys.Keys[0])
		return err
	}
	if err := verify(card); err != nil {
		t.Errorf("got %v, want the signature to be valid", err)
	}
	card.Description += "!"
	if err := verify(card); err == nil {
		t.Error("got a valid signature of a changed card, want an error")
	}
}

func TestAKeyThatCannotSignIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "no private key",
		string(keyOn(t, elliptic.P384())): "want P-256",
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("x")})): "asn1",
	} {
		if _, err := a2a.NewSigner([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestWithoutAKeyNothingIsSigned(t *testing.T) {
	f := start(t, a2a.Options{})
	resp := f.request(t.Context(), http.MethodGet, "/a2a/jwks.json", "")
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusNotFound || !strings.Contains(string(text), "a2a.signing_key") {
		t.Errorf("got %d %s, want 404 that names the setting", resp.StatusCode, text)
	}
}
