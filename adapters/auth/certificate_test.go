package auth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/core"
)

var p521 = elliptic.P521()

// authority issues client certificates.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t testing.TB) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := authority{key: key}
	ca.cert = &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(24 * time.Hour)}
	ca.cert = ca.issue(t, ca.cert)[0]
	return ca
}

// issue returns the chain of a certificate.
func (ca authority) issue(t testing.TB, of *x509.Certificate) []*x509.Certificate {
	t.Helper()
	if of.SerialNumber == nil {
		of.SerialNumber = big.NewInt(2)
	}
	if of.NotAfter.IsZero() {
		of.NotAfter = time.Now().Add(time.Hour)
	}
	raw, err := x509.CreateCertificate(rand.Reader, of, ca.cert, &ca.key.PublicKey, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return []*x509.Certificate{cert, ca.cert}
}

func TestACertificateNamesItsPrincipal(t *testing.T) {
	ca := newAuthority(t)
	s := tokens("alice")
	s.Authorities = []*x509.Certificate{ca.cert}
	a := newAuth(t, auth.Options{}, s)
	uri := func(text string) *url.URL {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	one, other := uri("spiffe://example.org/ana"), uri("spiffe://example.org/bob")
	named := func(name string, uris ...*url.URL) auth.Credentials {
		return auth.Credentials{Certificates: ca.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, URIs: uris})}
	}
	admits(t, a, named("ana", one), "spiffe://example.org/ana")
	admits(t, a, named("ana"), "ana")
	refuses(t, a, named("ana", one, other), core.CodeUnauthenticated, "has 2 URIs in its subjectAltName and could be any of them: issue one with a single URI")
	refuses(t, a, named(""), core.CodeUnauthenticated, "names nobody: issue one with a URI")
	refuses(t, a, named("capability:x"), core.CodeUnauthenticated, "does not name a principal")
	for _, beside := range []string{"Bearer alice-token", "Bearer wrong"} {
		good, bad := named("ana"), named("")
		good.Authorization, bad.Authorization = []string{beside}, []string{beside}
		good.SSH.Nonce = []string{"wrong"}
		admits(t, a, good, "ana")
		refuses(t, a, bad, core.CodeUnauthenticated, "names nobody")
	}
}

// twoNames is a subject with two common names, of which readers of certificates choose the first, the last or both.
func twoNames(first, second string) pkix.Name {
	cn := asn1.ObjectIdentifier{2, 5, 4, 3}
	return pkix.Name{ExtraNames: []pkix.AttributeTypeAndValue{{Type: cn, Value: first}, {Type: cn, Value: second}}}
}

func TestACertificateWithTwoCommonNamesIsRefused(t *testing.T) {
	ca := newAuthority(t)
	a := newAuth(t, auth.Options{}, auth.Settings{Authorities: []*x509.Certificate{ca.cert}})
	for _, name := range []string{"ana", "bob"} {
		given := auth.Credentials{Certificates: ca.issue(t, &x509.Certificate{Subject: twoNames("ana", name)})}
		refuses(t, a, given, core.CodeUnauthenticated, "has 2 common names and could be any of them: issue one with a single one")
	}
	uri, err := url.Parse("spiffe://example.org/ana")
	if err != nil {
		t.Fatal(err)
	}
	admits(t, a, auth.Credentials{Certificates: ca.issue(t, &x509.Certificate{Subject: twoNames("ana", "bob"), URIs: []*url.URL{uri}})}, uri.String())
}

// Under these names the hub and its parts act, and come those to an open hub who have none.
func TestNoCredentialProvesANameThatTheHubGives(t *testing.T) {
	ca := newAuthority(t)
	for _, name := range []string{"local", "Local", "mcp", "client", "editor", "stdio", "hub b", "HUB b", "hub\u00a0b", "hub metrics"} {
		a := newAuth(t, auth.Options{}, auth.Settings{Tokens: tokens(name).Tokens, Issuers: []auth.Issuer{hmacIssuer()}, Authorities: []*x509.Certificate{ca.cert}})
		for kind, given := range map[string]auth.Credentials{
			"a JWT": hs256(t, jwt.MapClaims{"sub": name}), "a certificate": {Certificates: ca.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}})}, "a token": bearer(name + "-token"),
		} {
			p, err := a.Authenticate(t.Context(), given)
			if f := core.AsFault(err); err == nil || !strings.Contains(f.Message, "the hub itself") && !strings.Contains(f.Message, "want a name of 1 to") {
				t.Errorf("%s for %q: got %q and %v, want it refused, and told to take another name", kind, name, p.ID, err)
			}
		}
	}
	a := newAuth(t, auth.Options{}, auth.Settings{Issuers: []auth.Issuer{hmacIssuer()}})
	for _, name := range []string{"locals", "hubert", "hub-b", "my mcp"} {
		admits(t, a, hs256(t, jwt.MapClaims{"sub": name}), name)
	}
}

func TestACertificateIsKnownUntilItExpiresOrItsAuthorityIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca, other := newAuthority(t), newAuthority(t)
		s := tokens("alice")
		s.Authorities = []*x509.Certificate{ca.cert}
		a := newAuth(t, auth.Options{}, s)
		given := auth.Credentials{Certificates: ca.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: "ana"}, NotAfter: time.Now().Add(time.Hour)})}
		p := admits(t, a, given, "ana")
		if want := given.Certificates[0].NotAfter; !p.Until.Equal(want) {
			t.Errorf("got until %v, want %v", p.Until, want)
		}
		s.Authorities = []*x509.Certificate{other.cert}
		if a.Apply(s); a.Knows(p) {
			t.Error("without its authority: got known, want not")
		}
		refuses(t, a, given, core.CodeUnauthenticated, "not in tls.client_ca")
		s.Authorities = []*x509.Certificate{other.cert, ca.cert}
		a.Apply(s)
		admits(t, a, given, "ana")
		time.Sleep(time.Hour)
		if a.Knows(p) {
			t.Error("an hour later: got known, want not")
		}
		refuses(t, a, given, core.CodeUnauthenticated, "the client certificate has expired: renew it")
	})
}
