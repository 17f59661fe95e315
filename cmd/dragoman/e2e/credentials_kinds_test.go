package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/crypto/ssh"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// brought is what a client brings to prove who it is.
type brought struct {
	header      http.Header // also the metadata of a call
	certificate *tls.Certificate
	protocols   []string // of a WebSocket
	token       string   // for a command; it is in the header too
}

// way is a place in which a client can carry a credential.
type way uint8

const (
	inHeader      way = 1 << iota // a header or metadata that is always the same
	inSignature                   // headers that are made anew for each request
	inCertificate                 // the TLS handshake
	inSubprotocol                 // a subprotocol that a browser offers
	inBare                        // Authorization without a scheme, as pi's clients may
	inToken                       // --token or DRAGOMAN_TOKEN of a command
	inKernel                      // the user at the other end of a Unix socket
)

// credentialKind is a credential, and wrong ones of its kind.
type credentialKind struct {
	name  string
	ways  way
	who   string
	good  func() brought
	wrong []wrongCredential
}

// wrongCredential is refused with a text. Where breaks is set the TLS handshake fails instead.
type wrongCredential struct {
	name   string
	bring  func() brought
	says   string
	breaks bool
}

func header(name, value string) brought {
	return brought{header: http.Header{http.CanonicalHeaderKey(name): {value}}}
}

func bearerToken(token string) brought {
	b := header("Authorization", "Bearer "+token)
	b.token = token
	return b
}

// always returns a credential that is the same each time.
func always(b brought) func() brought { return func() brought { return b } }

// beside adds a good token to a wrong credential, in a place where that is not.
func (b brought) beside(token string) brought {
	name, value := "Authorization", "Bearer "+token
	if b.header.Get(name) != "" {
		name, value = "X-Api-Key", token
	}
	both := b
	both.header = b.header.Clone()
	if both.header == nil {
		both.header = http.Header{}
	}
	both.header.Set(name, value)
	return both
}

const invalid = "Invalid authentication token"

// The tokens of the hub. They are long so that a test finds them where they must not be.
const (
	aliceToken = "the-token-of-alice-0123456789"
	plxToken   = "plx_the-token-of-alice-in-parallax"
	rootToken  = "the-token-of-root-0123456789"
	wrongToken = "nobodys-token-0123456789abcdef"
)

// credentialKinds returns settings with one credential of every kind, and all of them.
func credentialKinds(t *testing.T) (change func(*config.Config), kinds []credentialKind) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	authority, stranger := newAuthority(t), newAuthority(t)
	key, other := newSSHKey(t), newSSHKey(t)
	idp := newIdentityProvider(t)
	cert, certKey := certificate(t, "127.0.0.1")
	change = func(c *config.Config) {
		c.TLS = config.TLS{Cert: cert, Key: certKey, ClientCA: write("clients.crt", authority.text())}
		c.Auth.Tokens = write("tokens.yaml", tokenEntries(map[string]string{aliceToken: "alice", plxToken: "alice", rootToken: "root"}))
		line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))
		c.Auth.SSHKeys = write("keys", `principal="sue" `+line+"\n")
		c.Auth.JWT = config.Issuers{
			{Issuer: "ci", Audience: "dragoman", SecretFile: write("ci.secret", hmacSecret)},
			{Issuer: idp.url, Audience: "dragoman", JWKS: idp.url + "/keys"},
			{SecretFile: write("coven.secret", covenSecret)},
		}
		c.PiSocket = filepath.Join(dir, "pi")
	}
	protocol := func(token string) brought {
		return brought{protocols: []string{"dragoman.token." + base64.RawURLEncoding.EncodeToString([]byte(token)), "dragoman"}}
	}
	bare := func(token string) brought { return header("Authorization", token) }
	signed := func(by sshKey, change func(http.Header)) func() brought {
		return func() brought {
			h := by.header(t)
			change(h)
			return brought{header: h}
		}
	}
	asIs := func(http.Header) {}
	return change, []credentialKind{
		{"client certificate", inCertificate, "carol", always(brought{certificate: authority.issue(t, "carol")}), []wrongCredential{
			{"of another authority", always(brought{certificate: stranger.issue(t, "carol")}), "", true},
			{"with two names", always(brought{certificate: authority.issue(t, "", "urn:carol", "urn:alice")}), "the client certificate has 2 URIs", false},
		}},
		{"SSH signature", inSignature, "sue", signed(key, asIs), []wrongCredential{
			{"of another text", signed(key, func(h http.Header) { h.Set("X-Ssh-Nonce", "another") }), "SSH auth failed: signature verification failed", false},
			{"of an unknown key", signed(other, asIs), "unknown public key", false},
			{"without its nonce", signed(key, func(h http.Header) { h.Del("X-Ssh-Nonce") }), "missing SSH nonce", false},
		}},
		{"token", inHeader | inToken, "alice", always(bearerToken(aliceToken)), []wrongCredential{{"unknown", always(bearerToken(wrongToken)), invalid, false}}},
		{"ApiKey of Parallax", inHeader, "alice", always(header("Authorization", "ApiKey "+aliceToken)), []wrongCredential{{"unknown", always(header("Authorization", "ApiKey "+wrongToken)), invalid, false}}},
		{"plx_ alone", inHeader, "alice", always(bare(plxToken)), []wrongCredential{{"unknown", always(bare("plx_" + wrongToken)), invalid, false}}},
		{"X-API-Key", inHeader, "alice", always(header("X-API-Key", aliceToken)), []wrongCredential{{"unknown", always(header("X-API-Key", wrongToken)), invalid, false}}},
		{"JWT, HS256", inHeader | inToken, "hank", always(bearerToken(idp.token(t, jwt.SigningMethodHS256, []byte(hmacSecret), "", "ci", "hank", time.Hour))), []wrongCredential{
			{"of another secret", always(bearerToken(idp.token(t, jwt.SigningMethodHS256, []byte(covenSecret), "", "ci", "hank", time.Hour))), invalid, false},
			{"expired", always(bearerToken(idp.token(t, jwt.SigningMethodHS256, []byte(hmacSecret), "", "ci", "hank", -time.Hour))), "Token has expired", false},
		}},
		{"JWT, RS256", inHeader | inToken, "rita", always(bearerToken(idp.token(t, jwt.SigningMethodRS256, idp.rsa, "rsa", idp.url, "rita", time.Hour))), []wrongCredential{
			{"with no algorithm", always(bearerToken(idp.token(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "rsa", idp.url, "rita", time.Hour))), invalid, false},
			{"by its public key", always(bearerToken(idp.token(t, jwt.SigningMethodHS256, idp.publicPEM(t), "rsa", idp.url, "rita", time.Hour))), invalid, false},
		}},
		{"JWT, ES256", inHeader | inToken, "emma", always(bearerToken(idp.token(t, jwt.SigningMethodES256, idp.ecdsa, "ec", idp.url, "emma", time.Hour))), []wrongCredential{
			{"by the key of another", always(bearerToken(idp.token(t, jwt.SigningMethodRS256, idp.rsa, "ec", idp.url, "emma", time.Hour))), invalid, false},
		}},
		{"JWT of Coven", inHeader | inToken, "cora", always(bearerToken(idp.token(t, jwt.SigningMethodHS256, []byte(covenSecret), "", "", "cora", time.Hour))), []wrongCredential{
			{"of another secret", always(bearerToken(idp.token(t, jwt.SigningMethodHS256, []byte(hmacSecret), "", "", "cora", time.Hour))), invalid, false},
		}},
		{"subprotocol", inSubprotocol, "alice", always(protocol(aliceToken)), []wrongCredential{{"unknown", always(protocol(wrongToken)), invalid, false}}},
		{"token alone", inBare, "alice", always(bare(aliceToken)), []wrongCredential{{"unknown", always(bare(wrongToken)), invalid, false}}},
		{"Unix user", inKernel, ownName(), always(brought{}), nil}, // for others see TestAnotherUserIsToldForEachCommandThatHeMayNotUseTheUnixSocket
	}
}

const (
	hmacSecret  = "the secret of ci, 0123456789abcdef"
	covenSecret = "the secret of coven, 0123456789abcdef"
)

// testAuthority issues certificates.
type testAuthority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) testAuthority {
	t.Helper()
	return testAuthority{}.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
}

// sign returns a certificate with a key of its own; the zero authority lets it sign itself.
func (a testAuthority) sign(t *testing.T, template *x509.Certificate) testAuthority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	if a.cert == nil {
		a = testAuthority{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return testAuthority{cert, key}
}

// issue returns the certificate of a client.
func (a testAuthority) issue(t *testing.T, name string, uris ...string) *tls.Certificate {
	t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, text := range uris {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, u)
	}
	own := a.sign(t, template)
	return &tls.Certificate{Certificate: [][]byte{own.cert.Raw}, PrivateKey: own.key, Leaf: own.cert}
}

func (a testAuthority) text() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}))
}

// identityProvider is an issuer with a key set.
type identityProvider struct {
	url   string
	rsa   *rsa.PrivateKey
	ecdsa *ecdsa.PrivateKey
}

func newIdentityProvider(t *testing.T) *identityProvider {
	t.Helper()
	p := &identityProvider{}
	var err, err2 error
	p.rsa, err = rsa.GenerateKey(rand.Reader, 2048)
	p.ecdsa, err2 = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &p.rsa.PublicKey, KeyID: "rsa", Use: "sig"}, {Key: &p.ecdsa.PublicKey, KeyID: "ec", Use: "sig"}}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(set) }))
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

// token signs a token. Without an issuer it is one of a Coven gateway.
func (p *identityProvider) token(t *testing.T, method jwt.SigningMethod, key any, id, issuer, who string, life time.Duration) string {
	t.Helper()
	claims := jwt.MapClaims{"sub": who, "iat": time.Now().Add(-2 * time.Hour).Unix(), "exp": time.Now().Add(life).Unix()}
	if issuer != "" {
		claims["iss"], claims["aud"] = issuer, "dragoman"
	}
	token := jwt.NewWithClaims(method, claims)
	if id != "" {
		token.Header["kid"] = id
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// publicPEM is the public key as a careless hub would take it for a secret.
func (p *identityProvider) publicPEM(t *testing.T) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(&p.rsa.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}
