package mcp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// bearer returns an authenticator that knows the token of one principal, until that expires or
// has no ID any more.
func bearer(token string, of *core.Principal) func(*http.Request) (core.Principal, error) {
	return func(r *http.Request) (core.Principal, error) {
		expired := !of.Until.IsZero() && !time.Now().Before(of.Until)
		if r.Header.Get("Authorization") != "Bearer "+token || expired || of.ID == "" {
			return core.Principal{}, core.NewFault(core.CodeUnauthenticated, "Invalid authentication token")
		}
		return *of, nil
	}
}

func TestAnExpiredTokenOfTheHubIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ann := core.Principal{ID: "ann", Authenticated: true, Until: time.Now().Add(time.Minute)}
		server := mcp.New(coretest.NewHub(t, hub.Options{}), mcp.Options{Authenticate: bearer("secret", &ann)})
		defer server.Close()
		send := func(method, path, body, header, value string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, mcp.Path+path, strings.NewReader(body))
			r.Header.Set(header, value)
			if path == "" {
				r.Header.Set("Authorization", "Bearer secret")
			}
			w := httptest.NewRecorder()
			server.ServeHTTP(w, r)
			return w
		}
		began := time.Now()
		w := send(http.MethodGet, "", "", "Accept", "text/event-stream")
		if took := time.Since(began); w.Code != http.StatusOK || took != time.Minute {
			t.Errorf("got %d and the end after %s, want a stream that ends with the token", w.Code, took)
		}
		for _, path := range []string{"", "/secret"} {
			w := send(http.MethodPost, path, toolCall("1", "agents_list", `{}`), "Content-Type", "application/json")
			if body := w.Body.String(); w.Code != http.StatusUnauthorized || !strings.Contains(body, "-32600") || !strings.Contains(body, "expired") {
				t.Errorf("POST %s: got %d and %s, want 401 and that it has expired", path, w.Code, body)
			}
		}
	})
}

func TestAClientWithoutACredentialIsAnonymousOnAnOpenHub(t *testing.T) {
	nobody := func(*http.Request) (core.Principal, error) { return core.Principal{}, nil }
	server := mcp.New(coretest.NewHub(t, hub.Options{}), mcp.Options{Authenticate: nobody, Anonymous: core.Principal{ID: "mcp"}})
	defer server.Close()
	r := httptest.NewRequest(http.MethodPost, mcp.Path, strings.NewReader(toolCall("1", "agents_list", `{}`)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Errorf("got %d and %s, want 200", w.Code, w.Body)
	}
}

// The token of an agent says whose session a call belongs to, and does not excuse what stands beside it.
func TestAWrongCredentialBesideTheTokenOfAnAgentIsRefused(t *testing.T) {
	h := coretest.NewHub(t, hub.Options{})
	server := mcp.New(h, mcp.Options{Authenticate: func(r *http.Request) (core.Principal, error) {
		if r.Header.Get("X-SSH-Nonce") == "good" {
			return core.Principal{ID: "sue", Authenticated: true}, nil
		}
		return core.Principal{}, core.NewFault(core.CodeUnauthenticated, "SSH auth failed: signature verification failed")
	}})
	defer server.Close()
	s := h.Connect(hub.Identity{Principal: core.Principal{ID: "ann", Authenticated: true}, Dialect: "test"})
	defer s.Close(nil)
	token, revoke := server.Issue(s)
	defer revoke()
	for name, c := range map[string]struct {
		header, value string
		status        int
		says          string
	}{
		"nothing":               {"Accept", "application/json", http.StatusOK, "result"},
		"a good signature":      {"X-SSH-Nonce", "good", http.StatusOK, "result"},
		"a wrong signature":     {"X-SSH-Nonce", "wrong", http.StatusUnauthorized, "SSH auth failed: signature verification failed"},
		"the same as X-API-Key": {"X-API-Key", token, http.StatusOK, "result"},
		"another X-API-Key":     {"X-API-Key", "another", http.StatusUnauthorized, "X-API-Key differ"},
	} {
		for _, path := range []string{"", "/" + token} {
			r := httptest.NewRequest(http.MethodPost, mcp.Path+path, strings.NewReader(toolCall("1", "agents_list", `{}`)))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set(c.header, c.value)
			if path == "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			w := httptest.NewRecorder()
			server.ServeHTTP(w, r)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("%s beside it, in the path %v: got %d and %s, want %d with %q", name, path != "", w.Code, w.Body, c.status, c.says)
			}
		}
	}
}

// Two JSON Web Tokens of an issuer may be equal but for their roles.
func TestATokenDoesNotHaveTheRolesOfAnother(t *testing.T) {
	ann := core.Principal{ID: "ann", Authenticated: true, Proof: "jwt:1"}
	h := coretest.NewHub(t, hub.Options{Authorizer: coretest.Rules(t, "role:duty see")})
	server := mcp.New(h, mcp.Options{Authenticate: bearer("secret", &ann)})
	defer server.Close()
	agent := h.Connect(hub.Identity{Principal: core.Principal{ID: "coder", Authenticated: true}})
	defer agent.Close(nil)
	if err := agent.Join(core.Card{ID: "coder"}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		credential *core.Credential
		sees       bool
	}{{&core.Credential{Roles: []string{"duty"}}, true}, {nil, false}} {
		ann.Credential = c.credential
		r := httptest.NewRequest(http.MethodPost, mcp.Path, strings.NewReader(toolCall("1", "agents_list", `{}`)))
		r.Header.Set("Authorization", "Bearer secret")
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if got := strings.Contains(w.Body.String(), "coder"); got != c.sees {
			t.Errorf("with %+v: got %s, want that it sees the agent: %t", c.credential, w.Body, c.sees)
		}
	}
}
