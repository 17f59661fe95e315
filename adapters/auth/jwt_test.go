package auth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/core"
)

var secret = []byte("0123456789abcdef0123456789abcdef")

const (
	issuerA  = "https://a.example"
	issuerB  = "https://b.example"
	audience = "dragoman"
)

// hmacIssuer are settings with an issuer that signs with secret.
func hmacIssuer() auth.Issuer {
	return auth.Issuer{Issuer: issuerA, Audience: audience, Secret: secret}
}

// claims returns good claims, changed by some; nil removes one.
func claims(change jwt.MapClaims) jwt.MapClaims {
	all := jwt.MapClaims{
		"iss": issuerA, "aud": audience, "sub": "ana", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	maps.Copy(all, change)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	return all
}

// mint signs a token. The id of its key may be "".
func mint(t testing.TB, method jwt.SigningMethod, key any, id string, of jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, of)
	if id != "" {
		token.Header["kid"] = id
	}
	text, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func hs256(t testing.TB, change jwt.MapClaims) auth.Credentials {
	t.Helper()
	return bearer(mint(t, jwt.SigningMethodHS256, secret, "", claims(change)))
}

func TestAJWTOfAKnownIssuerNamesItsPrincipal(t *testing.T) {
	a := newAuth(t, auth.Options{}, auth.Settings{Issuers: []auth.Issuer{hmacIssuer()}})
	exp := time.Now().Add(90 * time.Minute).Truncate(time.Second)
	p := admits(t, a, hs256(t, jwt.MapClaims{"exp": exp.Unix()}), "ana")
	if !p.Until.Equal(exp) || p.Operator || p.Credential != nil {
		t.Errorf("got %+v, want until %v and no rights", p, exp)
	}
	admits(t, a, hs256(t, jwt.MapClaims{"aud": []string{"other", audience}}), "ana")
	for _, method := range []jwt.SigningMethod{jwt.SigningMethodHS384, jwt.SigningMethodHS512} {
		admits(t, a, bearer(mint(t, method, secret, "any", claims(nil))), "ana")
	}
	token := mint(t, jwt.SigningMethodHS256, secret, "", claims(nil))
	admits(t, a, auth.Credentials{APIKey: []string{token}}, "ana")
	admits(t, a, auth.Credentials{Subprotocols: []string{subprotocol(token)}}, "ana")
}

func TestAWrongJWTIsRefused(t *testing.T) {
	a := newAuth(t, auth.Options{}, auth.Settings{Issuers: []auth.Issuer{hmacIssuer()}})
	now := time.Now().Unix()
	good := mint(t, jwt.SigningMethodHS256, secret, "", claims(nil))
	parts := strings.Split(good, ".")
	for name, c := range map[string]struct{ token, want string }{
		"alg none":               {mint(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "", claims(nil)), "Invalid authentication token"},
		"no signature":           {parts[0] + "." + parts[1] + ".", "Invalid authentication token"},
		"another secret":         {mint(t, jwt.SigningMethodHS256, []byte("another secret of 32 bytes, or so"), "", claims(nil)), "Invalid authentication token"},
		"other claims":           {parts[0] + "." + strings.Split(mint(t, jwt.SigningMethodHS256, secret, "", claims(jwt.MapClaims{"sub": "bob"})), ".")[1] + "." + parts[2], "Invalid authentication token"},
		"an unknown issuer":      {mint(t, jwt.SigningMethodHS256, secret, "", claims(jwt.MapClaims{"iss": issuerB})), "its issuer is not known here"},
		"no issuer":              {mint(t, jwt.SigningMethodHS256, secret, "", claims(jwt.MapClaims{"iss": nil})), "its issuer is not known here"},
		"another audience":       {mint(t, jwt.SigningMethodHS256, secret, "", claims(jwt.MapClaims{"aud": "other"})), "it is for another audience"},
		"no audience":            {mint(t, jwt.SigningMethodHS256, secret, "", claims(jwt.MapClaims{"aud": nil})), "it lacks exp, aud or iss"},
		"no exp":                 {mint(t, jwt.SigningMethodHS256, secret, "", claims(jwt.MapClaims{"exp": nil})), "it lacks exp, aud or iss"},
		"exp as text":            {mint(t, jwt.SigningMethodHS256, secret, "", claims(jwt.MapClaims{"exp": "never"})), "Invalid authentication token"},
		"exp beyond time":        {mint(t, jwt.SigningMethodHS256, secret, "", claims(jwt.MapClaims{"exp": 1e300})), ""},
		"expired":                {mint(t, jwt.SigningMethodHS256, secret, "", claims(jwt.MapClaims{"exp": now - 31})), "Token has expired"},
		"just expired":           {mint(t, jwt.SigningMethodHS256, secret, "", claims(jwt.MapClaims{"exp": now - 1})), "Token has expired"},
		"from the future":        {mint(t, jwt.SigningMethodHS256, secret, "", claims(jwt.MapClaims{"iat": now + 120})), "it is not valid yet"},
		"not valid yet":          {mint(t, jwt.SigningMethodHS256, secret, "", claims(jwt.MapClaims{"nbf": now + 120})), "it is not valid yet"},
		"no subject":             {mint(t, jwt.SigningMethodHS256, secret, "", claims(jwt.MapClaims{"sub": nil})), "its claim sub does not name a principal"},
		"a subject that is none": {mint(t, jwt.SigningMethodHS256, secret, "", claims(jwt.MapClaims{"sub": 7})), "its claim sub does not name a principal"},
		"an address":             {mint(t, jwt.SigningMethodHS256, secret, "", claims(jwt.MapClaims{"sub": "capability:x"})), "its claim sub does not name a principal"},
		"two claims of one name": {parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"`+issuerB+`","iss":"`+issuerA+`"}`)) + "." + parts[2], "neither a token of the hub nor a JWT"},
		"not base64":             {"%%%.%%%.%%%", "neither a token of the hub nor a JWT"},
		"not JSON":               {"AAAA.AAAA.AAAA", "neither a token of the hub nor a JWT"},
		"two parts":              {"AAAA.AAAA", "Invalid authentication token"},
		"four parts":             {good + ".AAAA", "Invalid authentication token"},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, a, bearer(c.token), core.CodeUnauthenticated, c.want) })
	}
	critical := jwt.NewWithClaims(jwt.SigningMethodHS256, claims(nil))
	critical.Header["crit"] = []string{"b64"}
	text, _ := critical.SignedString(secret)
	refuses(t, a, bearer(text), core.CodeUnauthenticated, "Invalid authentication token")
	// Without an issuer a JWT is no token at all.
	a.Apply(tokens("alice"))
	refuses(t, a, bearer(good), core.CodeUnauthenticated, "Invalid authentication token")
}

func TestAClockMayBeHalfAMinuteAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuth(t, auth.Options{}, auth.Settings{Issuers: []auth.Issuer{hmacIssuer()}})
		ahead := func(seconds int64) auth.Credentials {
			return hs256(t, jwt.MapClaims{"iat": time.Now().Unix() + seconds, "nbf": time.Now().Unix() + seconds})
		}
		admits(t, a, ahead(30), "ana")
		refuses(t, a, ahead(31), core.CodeUnauthenticated, "it is not valid yet")
	})
}

func TestAJWTThatExpiresIsNotKnownAnyLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAuth(t, auth.Options{}, auth.Settings{Issuers: []auth.Issuer{hmacIssuer()}})
		given := hs256(t, nil)
		p := admits(t, a, given, "ana")
		time.Sleep(time.Hour)
		if a.Knows(p) {
			t.Error("got known after exp, want not")
		}
		refuses(t, a, given, core.CodeUnauthenticated, "Token has expired")
	})
}

func TestRolesAndThePrincipalComeFromTheNamedClaims(t *testing.T) {
	for _, c := range []struct {
		claim string
		value jwt.MapClaims
		want  []string
		fault string
	}{
		{"roles", jwt.MapClaims{"roles": []string{"dev", "ops"}}, []string{"dev", "ops"}, ""},
		{"scope", jwt.MapClaims{"scope": "dev ops"}, []string{"dev", "ops"}, ""},
		{"realm_access.roles", jwt.MapClaims{"realm_access": jwt.MapClaims{"roles": []string{"dev"}}}, []string{"dev"}, ""},
		{"https://x.example/roles", jwt.MapClaims{"https://x.example/roles": []string{"dev"}}, []string{"dev"}, ""},
		{"roles", nil, nil, ""},
		{"roles", jwt.MapClaims{"roles": 7}, nil, "its claim roles: want a list of texts"},
		{"roles", jwt.MapClaims{"roles": []any{"a", 7}}, nil, "its claim roles: want a list of texts"},
		{"roles", jwt.MapClaims{"roles": []any{"a\n"}}, []string{"a"}, ""},
		{"roles", jwt.MapClaims{"roles": []any{"a\nb"}}, nil, "its claim roles: want names"},
		{"roles", jwt.MapClaims{"roles": slices.Repeat([]string{"a"}, 257)}, nil, "its claim roles: want at most"},
	} {
		of := hmacIssuer()
		of.RolesClaim, of.PrincipalClaim = c.claim, "email"
		a := newAuth(t, auth.Options{}, auth.Settings{Issuers: []auth.Issuer{of}})
		change := jwt.MapClaims{"email": "ana@example.com"}
		maps.Copy(change, c.value)
		if c.fault != "" {
			refuses(t, a, hs256(t, change), core.CodeUnauthenticated, c.fault)
			continue
		}
		p := admits(t, a, hs256(t, change), "ana@example.com")
		var got []string
		if p.Credential != nil {
			got = p.Credential.Roles
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: got the roles %q, want %q", c.value, got, c.want)
		}
	}
}

func TestAPrincipalOfAnIssuerIsKnownUntilItsSettingsChange(t *testing.T) {
	own := hmacIssuer()
	with := func(change func(*auth.Issuer)) auth.Settings {
		other := own
		change(&other)
		s := tokens("alice")
		s.Issuers = []auth.Issuer{other}
		return s
	}
	for name, s := range map[string]auth.Settings{
		"no issuer":        tokens("alice"),
		"another audience": with(func(i *auth.Issuer) { i.Audience = "other" }),
		"another secret":   with(func(i *auth.Issuer) { i.Secret = []byte("another secret of 32 bytes, or so") }),
		"another claim":    with(func(i *auth.Issuer) { i.PrincipalClaim = "email" }),
		"other roles":      with(func(i *auth.Issuer) { i.RolesClaim = "roles" }),
		"a short secret":   with(func(i *auth.Issuer) { i.Secret = []byte("short") }),
		"no key":           with(func(i *auth.Issuer) { i.Secret = nil }),
	} {
		a := newAuth(t, auth.Options{}, auth.Settings{Issuers: []auth.Issuer{own}})
		p := admits(t, a, hs256(t, nil), "ana")
		if strings.Contains(p.Proof, string(secret)) {
			t.Errorf("got the proof %q, want no secret in it", p.Proof)
		}
		a.Apply(auth.Settings{Issuers: []auth.Issuer{own}})
		if !a.Knows(p) {
			t.Errorf("after a reload of the same: got unknown, want known")
		}
		if a.Apply(s); a.Knows(p) {
			t.Errorf("%s: got known, want not", name)
		}
	}
}

func TestTokensOfACovenGatewayHaveNeitherIssuerNorAudience(t *testing.T) {
	a := newAuth(t, auth.Options{}, auth.Settings{Issuers: []auth.Issuer{{Secret: secret}}})
	own := jwt.MapClaims{"iss": nil, "aud": nil}
	admits(t, a, hs256(t, own), "ana")
	refuses(t, a, hs256(t, jwt.MapClaims{"iss": nil}), core.CodeUnauthenticated, "it is for another audience")
	refuses(t, a, hs256(t, jwt.MapClaims{"aud": nil}), core.CodeUnauthenticated, "its issuer is not known here")
	refuses(t, a, hs256(t, jwt.MapClaims{"iss": nil, "aud": nil, "exp": nil}), core.CodeUnauthenticated, "it lacks exp")
}

func TestUnsafeIssuersAreNotUsed(t *testing.T) {
	for name, of := range map[string]auth.Issuer{
		"no audience":           {Issuer: issuerA, Secret: secret},
		"no issuer":             {Audience: audience, Secret: secret},
		"a short secret":        {Issuer: issuerA, Audience: audience, Secret: secret[:31]},
		"a key set for anybody": {JWKS: "https://a.example/keys"},
		"two keys":              {Issuer: issuerA, Audience: audience, Secret: secret, JWKS: "https://a.example/keys"},
	} {
		a := newAuth(t, auth.Options{}, auth.Settings{Issuers: []auth.Issuer{of}})
		if a.Open() {
			t.Errorf("%s: got an open hub, want it closed", name)
		}
		for _, change := range []jwt.MapClaims{nil, {"aud": nil}, {"iss": nil}, {"iss": nil, "aud": nil}} {
			if p, err := a.Authenticate(t.Context(), hs256(t, change)); err == nil {
				t.Errorf("%s: got %+v, want a refusal", name, p)
			}
		}
	}
}

// testKeys are keys of each type, made once.
var testKeys = sync.OnceValue(func() (k struct {
	rsa, rsa2 *rsa.PrivateKey
	p256      *ecdsa.PrivateKey
	p384      *ecdsa.PrivateKey
	ed        ed25519.PrivateKey
},
) {
	k.rsa, _ = rsa.GenerateKey(rand.Reader, 2048)
	k.rsa2, _ = rsa.GenerateKey(rand.Reader, 2048)
	k.p256, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	k.p384, _ = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	_, k.ed, _ = ed25519.GenerateKey(rand.Reader)
	return k
})

// asSecrets are the forms of a public key that a careless verifier may take for a secret.
func asSecrets(t *testing.T, key crypto.PublicKey) (all [][]byte) {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return [][]byte{der, text, []byte(strings.TrimSpace(string(text)))}
}
