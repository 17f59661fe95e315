package auth_test

import (
	"bytes"
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/core"
)

// keyServer answers requests for key sets in memory, so that time can be the fake clock's.
type keyServer struct {
	mu    sync.Mutex
	sets  map[string]string // by URL
	down  bool
	hang  bool
	asked int
}

func (s *keyServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.asked++
	set, known, down, hang := s.sets[r.URL.String()], s.sets[r.URL.String()] != "", s.down, s.hang
	s.mu.Unlock()
	answer := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(set)), Request: r}
	location, redirect := strings.CutPrefix(set, "-> ")
	switch {
	case hang:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case down:
		return nil, errors.New("connection refused")
	case redirect:
		answer.StatusCode = 302
		answer.Header.Set("Location", location)
	case !known:
		answer.StatusCode = 404
	}
	return answer, nil
}

func (s *keyServer) set(url, set string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sets == nil {
		s.sets = map[string]string{}
	}
	s.sets[url] = set
}

func (s *keyServer) be(down, hang bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.hang = down, hang
}

func (s *keyServer) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func jwk(id string, key crypto.PublicKey) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key, KeyID: id, Use: "sig"}
}

func jwks(keys ...jose.JSONWebKey) string {
	data, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		panic(err)
	}
	return string(data)
}

const (
	keysA = issuerA + "/keys"
	keysB = issuerB + "/keys"
)

func setIssuer(name string) auth.Issuer {
	return auth.Issuer{Issuer: name, Audience: audience, JWKS: name + "/keys"}
}

// withKeys returns an Authenticator of issuer A, whose key server is s.
func withKeys(t testing.TB, s *keyServer, issuers ...auth.Issuer) *auth.Authenticator {
	t.Helper()
	if issuers == nil {
		issuers = []auth.Issuer{setIssuer(issuerA)}
	}
	return newAuth(t, auth.Options{Transport: s}, auth.Settings{Issuers: issuers})
}

func TestAJWTIsVerifiedWithEachTypeOfKey(t *testing.T) {
	k := testKeys()
	s := &keyServer{}
	limited := jwk("limited", &k.rsa.PublicKey)
	limited.Algorithm = "RS256"
	s.set(keysA, jwks(jwk("rsa", &k.rsa.PublicKey), jwk("p256", &k.p256.PublicKey), jwk("p384", &k.p384.PublicKey), jwk("ed", k.ed.Public()), limited))
	a := withKeys(t, s)
	for _, c := range []struct {
		method jwt.SigningMethod
		key    any
		id     string
		good   bool
	}{
		{jwt.SigningMethodRS256, k.rsa, "rsa", true},
		{jwt.SigningMethodRS512, k.rsa, "rsa", true},
		{jwt.SigningMethodPS256, k.rsa, "rsa", true},
		{jwt.SigningMethodES256, k.p256, "p256", true},
		{jwt.SigningMethodES384, k.p384, "p384", true},
		{jwt.SigningMethodEdDSA, k.ed, "ed", true},
		{jwt.SigningMethodRS256, k.rsa, "limited", true},
		{jwt.SigningMethodPS256, k.rsa, "limited", false},
		{jwt.SigningMethodRS256, k.rsa2, "rsa", false},
		{jwt.SigningMethodRS256, k.rsa, "p256", false},
		{jwt.SigningMethodRS256, k.rsa, "", false}, // which of five?
		{jwt.SigningMethodRS256, k.rsa, "other", false},
	} {
		given := bearer(mint(t, c.method, c.key, c.id, claims(nil)))
		if c.good {
			admits(t, a, given, "ana")
		} else {
			refuses(t, a, given, core.CodeUnauthenticated, "Invalid authentication token")
		}
	}
	if s.requests() != 1 {
		t.Errorf("got %d requests for the key set, want 1", s.requests())
	}
}

func TestAPublicKeyIsNoSecret(t *testing.T) {
	k := testKeys()
	s := &keyServer{}
	s.set(keysA, jwks(jwk("rsa", &k.rsa.PublicKey)))
	a := withKeys(t, s)
	for _, public := range asSecrets(t, &k.rsa.PublicKey) {
		refuses(t, a, bearer(mint(t, jwt.SigningMethodHS256, public, "rsa", claims(nil))), core.CodeUnauthenticated, "Invalid authentication token")
	}
	refuses(t, a, bearer(mint(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "rsa", claims(nil))), core.CodeUnauthenticated, "Invalid authentication token")
}

func TestTwoIssuersMayHaveOneKeyID(t *testing.T) {
	k := testKeys()
	s := &keyServer{}
	s.set(keysA, jwks(jwk("1", &k.rsa.PublicKey)))
	s.set(keysB, jwks(jwk("1", &k.rsa2.PublicKey)))
	a := withKeys(t, s, setIssuer(issuerA), setIssuer(issuerB))
	ofB := jwt.MapClaims{"iss": issuerB}
	for range 2 { // the second time from the caches
		admits(t, a, bearer(mint(t, jwt.SigningMethodRS256, k.rsa, "1", claims(nil))), "ana")
		admits(t, a, bearer(mint(t, jwt.SigningMethodRS256, k.rsa2, "1", claims(ofB))), "ana")
		refuses(t, a, bearer(mint(t, jwt.SigningMethodRS256, k.rsa, "1", claims(ofB))), core.CodeUnauthenticated, "Invalid authentication token")
		refuses(t, a, bearer(mint(t, jwt.SigningMethodRS256, k.rsa2, "1", claims(nil))), core.CodeUnauthenticated, "Invalid authentication token")
	}
}

func TestAnUnknownKeyFetchesTheSetOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := testKeys()
		s := &keyServer{}
		s.set(keysA, jwks(jwk("old", &k.rsa.PublicKey)))
		a := withKeys(t, s)
		old, rotated := bearer(mint(t, jwt.SigningMethodRS256, k.rsa, "old", claims(nil))), bearer(mint(t, jwt.SigningMethodRS256, k.rsa2, "new", claims(nil)))
		asked := func(want int) {
			t.Helper()
			if s.requests() != want {
				t.Errorf("got %d requests for the key set, want %d", s.requests(), want)
			}
		}
		asked(0)
		admits(t, a, old, "ana")
		asked(1)
		for range 100 {
			refuses(t, a, rotated, core.CodeUnauthenticated, "its key (kid) is not in the key set")
		}
		asked(1)
		s.set(keysA, jwks(jwk("new", &k.rsa2.PublicKey)))
		time.Sleep(time.Minute)
		admits(t, a, rotated, "ana")
		asked(2)
		refuses(t, a, old, core.CodeUnauthenticated, "its key (kid) is not in the key set")
		asked(2)
		a.Apply(auth.Settings{Issuers: []auth.Issuer{setIssuer(issuerA)}}) // as SIGHUP does
		admits(t, a, rotated, "ana")
		synctest.Wait()
		asked(3)
	})
}

func TestAWithdrawnKeyIsForgottenWithinAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := testKeys()
		s := &keyServer{}
		s.set(keysA, jwks(jwk("1", &k.rsa.PublicKey)))
		a := withKeys(t, s)
		given := bearer(mint(t, jwt.SigningMethodRS256, k.rsa, "1", claims(jwt.MapClaims{"exp": time.Now().Add(24 * time.Hour).Unix()})))
		admits(t, a, given, "ana")
		s.set(keysA, jwks(jwk("2", &k.rsa2.PublicKey)))
		time.Sleep(time.Hour + time.Second)
		admits(t, a, given, "ana") // which fetches in the background
		synctest.Wait()
		refuses(t, a, given, core.CodeUnauthenticated, "its key (kid) is not in the key set")
	})
}

func TestAnOutageOfTheKeyServerKeepsKnownKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := testKeys()
		s := &keyServer{down: true}
		s.set(keysA, jwks(jwk("1", &k.rsa.PublicKey)))
		a := withKeys(t, s)
		long := jwt.MapClaims{"exp": time.Now().Add(24 * time.Hour).Unix()}
		known, unknown := bearer(mint(t, jwt.SigningMethodRS256, k.rsa, "1", claims(long))), bearer(mint(t, jwt.SigningMethodRS256, k.rsa2, "2", claims(long)))
		for range 10 {
			if fault := refuses(t, a, known, core.CodeUnauthenticated, "cannot be fetched at present"); !fault.Retryable {
				t.Errorf("got %+v, want it retryable", fault)
			}
		}
		if s.requests() != 1 {
			t.Errorf("away at start: got %d requests, want 1", s.requests())
		}
		s.be(false, false)
		time.Sleep(5 * time.Second)
		admits(t, a, known, "ana")
		s.be(true, false)
		for range 5 {
			time.Sleep(time.Hour)
			admits(t, a, known, "ana")
			refuses(t, a, unknown, core.CodeUnauthenticated, "Invalid authentication token")
		}
		s.be(false, true) // it accepts connections and says nothing
		time.Sleep(time.Hour)
		start := time.Now()
		admits(t, a, known, "ana")
		if took := time.Since(start); took != 0 {
			t.Errorf("a known key: waited %v, want no wait for the server", took)
		}
		refuses(t, a, unknown, core.CodeUnauthenticated, "Invalid authentication token")
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("an unknown key: waited %v, want at most 5 s", took)
		}
	})
}

func TestACallerThatLeavesDoesNotEndTheFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := testKeys()
		s := &keyServer{hang: true}
		a := withKeys(t, s)
		given := bearer(mint(t, jwt.SigningMethodRS256, k.rsa, "1", claims(nil)))
		ctx, leave := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := a.Authenticate(ctx, given); err == nil || !core.AsFault(err).Retryable {
				t.Errorf("got %v, want a refusal to try again", err)
			}
		})
		synctest.Wait()
		leave()
		all.Wait()
		if s.requests() != 1 {
			t.Errorf("got %d requests, want 1", s.requests())
		}
		refuses(t, a, given, core.CodeUnauthenticated, "cannot be fetched at present") // once the fetch has timed out
		if s.requests() != 1 {
			t.Errorf("got %d requests, want the fetch of the first caller to be shared", s.requests())
		}
	})
}

func TestABadKeySetIsNotUsed(t *testing.T) {
	k := testKeys()
	good := jwks(jwk("1", &k.rsa.PublicKey))
	private := jwks(jwk("1", k.rsa))
	encrypting := jwk("1", &k.rsa.PublicKey)
	encrypting.Use = "enc"
	for name, c := range map[string]struct {
		set  string
		good bool
	}{
		"good":             {good, true},
		"with other keys":  {strings.Replace(good, `"keys":[`, `"keys":[{"kty":"oct","kid":"1","k":"AAAA"},{"kty":"new"},7,`, 1), true},
		"too long":         {good + strings.Repeat(" ", 1<<20), false},
		"not JSON":         {"<html>", false},
		"empty":            {`{"keys":[]}`, false},
		"a private key":    {private, false},
		"for encryption":   {jwks(encrypting), false},
		"missing":          {"", false},
		"101 keys":         {jwks(append(make101(jwk("x", &k.rsa.PublicKey)), jwk("1", &k.rsa.PublicKey))...), false},
		"elsewhere":        {"-> https://evil.example/keys", false},
		"without TLS":      {"-> http://a.example/moved", false},
		"another port":     {"-> https://a.example:8443/moved", false},
		"moved here":       {"-> " + issuerA + "/moved", true},
		"moved for ever":   {"-> " + keysA, false},
		"moved, relative":  {"-> /moved", true},
		"moved to no path": {"-> ://", false},
	} {
		t.Run(name, func(t *testing.T) {
			var logged bytes.Buffer
			s := &keyServer{}
			s.set(keysA, c.set)
			for _, elsewhere := range []string{"https://evil.example/keys", "http://a.example/moved", "https://a.example:8443/moved", issuerA + "/moved"} {
				s.set(elsewhere, good)
			}
			a := newAuth(t, auth.Options{Transport: s, Log: slog.New(slog.NewTextHandler(&logged, nil))}, auth.Settings{Issuers: []auth.Issuer{setIssuer(issuerA)}})
			given := bearer(mint(t, jwt.SigningMethodRS256, k.rsa, "1", claims(nil)))
			if c.good {
				admits(t, a, given, "ana")
				return
			}
			refuses(t, a, given, core.CodeUnauthenticated, "cannot be fetched at present")
			a.Close()
			if !strings.Contains(logged.String(), "a key set could not be fetched") || strings.Contains(logged.String(), "evil.example") && name != "elsewhere" {
				t.Errorf("got the log %q, want that the key set could not be fetched", logged.String())
			}
		})
	}
}

func make101(key jose.JSONWebKey) (all []jose.JSONWebKey) {
	for range 100 {
		all = append(all, key)
	}
	return all
}

func TestAKeySetIsFetchedOverHTTP(t *testing.T) {
	k := testKeys()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Header.Get("Authorization") != "" {
			t.Errorf("got %s with %v, want a GET without credentials", r.Method, r.Header)
		}
		_, _ = io.WriteString(w, jwks(jwk("", &k.p256.PublicKey)))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	of := setIssuer(issuerA)
	of.JWKS = server.URL + "/keys?secret=hunter2"
	a := newAuth(t, auth.Options{Transport: server.Client().Transport}, auth.Settings{Issuers: []auth.Issuer{of}})
	admits(t, a, bearer(mint(t, jwt.SigningMethodES256, k.p256, "", claims(nil))), "ana")

	var logged bytes.Buffer
	a = newAuth(t, auth.Options{Log: slog.New(slog.NewTextHandler(&logged, nil))}, auth.Settings{Issuers: []auth.Issuer{of}}) // does not trust the server
	refuses(t, a, bearer(mint(t, jwt.SigningMethodES256, k.p256, "", claims(nil))), core.CodeUnauthenticated, "cannot be fetched at present")
	a.Close()
	if strings.Contains(logged.String(), "hunter2") || !strings.Contains(logged.String(), "/keys") {
		t.Errorf("got the log %q, want the address without its query", logged.String())
	}
}
