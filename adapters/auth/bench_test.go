package auth_test

import (
	"crypto/elliptic"
	"fmt"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/crypto/ssh"

	"github.com/dragoman-hub/dragoman/adapters/auth"
)

// authenticate measures credentials that are taken, or not.
func authenticate(b *testing.B, a *auth.Authenticator, given auth.Credentials, good bool) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.Authenticate(b.Context(), given); (err == nil) != good {
			b.Fatalf("got %v, want it taken: %v", err, good)
		}
	}
}

func BenchmarkToken(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		s := tokens("alice")
		for i := range n {
			s.Tokens = append(s.Tokens, auth.Token{Hash: auth.HashOf(fmt.Sprint(i)), Principal: "x"})
		}
		a := newAuth(b, auth.Options{}, s)
		b.Run(fmt.Sprintf("good of %d", n), func(b *testing.B) { authenticate(b, a, bearer("alice-token"), true) })
		b.Run(fmt.Sprintf("bad of %d", n), func(b *testing.B) { authenticate(b, a, bearer("other-token"), false) })
	}
}

func BenchmarkKnows(b *testing.B) {
	ann := newEd25519(b)
	s := tokens("alice")
	s.Keys = []auth.Key{ann.key(b, ana)}
	a := newAuth(b, auth.Options{}, s)
	for name, given := range map[string]auth.Credentials{"token": bearer("alice-token"), "key": signed(ann.sign(b, time.Now(), nonce()))} {
		p, err := a.Authenticate(b.Context(), given)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if !a.Knows(p) {
					b.Fatal("got unknown, want known")
				}
			}
		})
	}
}

func BenchmarkSignature(b *testing.B) {
	key := newRSA(b, 4096)
	for name, c := range map[string]struct {
		client
		algorithm string
	}{
		"ed25519": {newEd25519(b), ""}, "P-256": {newECDSA(b, elliptic.P256()), ""}, "RSA-2048": {newClient(b, newRSA(b, 2048)), ssh.KeyAlgoRSASHA512},
		"RSA-4096": {newClient(b, key), ssh.KeyAlgoRSASHA512},
	} {
		a := newAuth(b, auth.Options{}, auth.Settings{Keys: []auth.Key{c.key(b, ana)}})
		bad := signed(c.signAs(b, time.Now(), nonce(), c.algorithm))
		bad.SSH.Nonce = []string{"another"}
		b.Run("bad "+name, func(b *testing.B) { authenticate(b, a, bad, false) })
		replayed := signed(c.signAs(b, time.Now(), nonce(), c.algorithm))
		_, _ = a.Authenticate(b.Context(), replayed)
		b.Run("replayed "+name, func(b *testing.B) { authenticate(b, a, replayed, false) })
	}
	a := newAuth(b, auth.Options{}, registering(auth.RegistrationPending))
	bad := signed(newEd25519(b).sign(b, time.Now(), nonce()))
	bad.SSH.Nonce = []string{"another"}
	b.Run("bad unknown", func(b *testing.B) { authenticate(b, a, bad, false) })
}

func BenchmarkJWT(b *testing.B) {
	k := testKeys()
	s := &keyServer{}
	s.set(keysA, jwks(jwk("rsa", &k.rsa.PublicKey), jwk("p256", &k.p256.PublicKey), jwk("ed", k.ed.Public())))
	s.set(keysB, jwks(jwk("rsa", &k.rsa.PublicKey)))
	hmac := hmacIssuer()
	hmac.Issuer = "h"
	a := withKeys(b, s, setIssuer(issuerA), hmac)
	for _, c := range []struct {
		method jwt.SigningMethod
		key    any
		id     string
		change jwt.MapClaims
	}{
		{jwt.SigningMethodHS256, secret, "", jwt.MapClaims{"iss": "h"}},
		{jwt.SigningMethodRS256, k.rsa, "rsa", nil}, {jwt.SigningMethodES256, k.p256, "p256", nil}, {jwt.SigningMethodEdDSA, k.ed, "ed", nil},
	} {
		good := bearer(mint(b, c.method, c.key, c.id, claims(c.change)))
		b.Run(c.method.Alg(), func(b *testing.B) { authenticate(b, a, good, true) })
		bad := bearer(good.Authorization[0][7:len(good.Authorization[0])-4] + "AAAA")
		b.Run("bad "+c.method.Alg(), func(b *testing.B) { authenticate(b, a, bad, false) })
	}
}
