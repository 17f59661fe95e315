package mcp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
)

func TestARequestWithoutATokenIsToldWhereTheMetadataIs(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	for endpoint, want := range map[string][2]string{
		"":                              {"http://hub.example:1/.well-known/oauth-protected-resource/mcp", "http://hub.example:1/mcp"},
		"https://proxy.example/hub/mcp": {"https://proxy.example/.well-known/oauth-protected-resource/hub/mcp", "https://proxy.example/hub/mcp"},
	} {
		server := mcp.New(g.hub, mcp.Options{Endpoint: endpoint})
		defer server.Close()
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			w := httptest.NewRecorder()
			server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "http://hub.example:1/mcp", strings.NewReader(hello)))
			if got := w.Header().Get("WWW-Authenticate"); w.Code != http.StatusUnauthorized || got != `Bearer resource_metadata="`+want[0]+`"` || !strings.Contains(w.Body.String(), "the token is missing") {
				t.Errorf("%s: got %d, %s and %s, want 401, %s and what to do", method, w.Code, got, w.Body, want[0])
			}
		}
		w := httptest.NewRecorder()
		server.OAuth().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://hub.example:1"+mcp.MetadataPath+"/mcp", nil))
		if got := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(got, `"resource":"`+want[1]+`"`) || strings.Contains(got, "authorization_servers") {
			t.Errorf("got %d %s, want the metadata of %s without an authorization server", w.Code, got, want[1])
		}
	}
}

// unreadable is a body that must not be read.
type unreadable struct{ *testing.T }

func (b unreadable) Read([]byte) (int, error) {
	b.Error("the body was read, want the answer before")
	return 0, io.EOF
}

func TestAnUnknownCallerIsRefusedBeforeItsMessageIsRead(t *testing.T) {
	t.Parallel()
	server := mcp.New(start(t, mcp.Options{}).hub, mcp.Options{Authenticate: func(r *http.Request) (core.Principal, error) {
		if r.Header.Get("X-SSH-Nonce") != "" {
			return core.Principal{}, core.NewFault(core.CodeNotAuthorized, "the key is not approved yet")
		}
		return core.Principal{}, core.NewFault(core.CodeUnauthenticated, "no such token")
	}})
	defer server.Close()
	const metadata = `Bearer resource_metadata="http://example.com/.well-known/oauth-protected-resource/mcp"`
	for name, c := range map[string]struct {
		path, header, value string
		status              int
		challenge           string
	}{
		"without a token":        {"", "Accept", "application/json", http.StatusUnauthorized, metadata},
		"a wrong token":          {"", "Authorization", "Bearer wrong", http.StatusUnauthorized, metadata + `, error="invalid_token"`},
		"a wrong one in path":    {"/wrong", "Accept", "application/json", http.StatusUnauthorized, metadata + `, error="invalid_token"`},
		"a wrong API key":        {"", "X-API-Key", "wrong", http.StatusUnauthorized, metadata + `, error="invalid_token"`},
		"another scheme":         {"", "Authorization", "Basic eA==", http.StatusUnauthorized, metadata + `, error="invalid_token"`},
		"a key without approval": {"", "X-SSH-Nonce", "n", http.StatusForbidden, ""},
	} {
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			r := httptest.NewRequestWithContext(t.Context(), method, mcp.Path+c.path, unreadable{t})
			r.Header.Set(c.header, c.value)
			w := httptest.NewRecorder()
			server.ServeHTTP(w, r)
			if got := w.Header().Get("WWW-Authenticate"); w.Code != c.status || got != c.challenge || !strings.Contains(w.Body.String(), `"code":-32600`) {
				t.Errorf("%s %s: got %d, %q and %s, want %d, %q and an error", method, name, w.Code, got, w.Body, c.status, c.challenge)
			}
		}
	}
}

func TestAClientThatWantsToRegisterIsToldToUseAToken(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	register := func(method, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		g.server.OAuth().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(`{}`)))
		return w
	}
	if w := register(http.MethodPost, mcp.RegisterPath); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"error":"access_denied"`) || !strings.Contains(w.Body.String(), "Authorization: Bearer") {
		t.Errorf("got %d %s, want an error of OAuth that says what to do", w.Code, w.Body)
	}
	for method, path := range map[string]string{http.MethodGet: mcp.RegisterPath, http.MethodPost: mcp.MetadataPath} {
		if w := register(method, path); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") == "" {
			t.Errorf("%s %s: got %d, want 405 and what is allowed", method, path, w.Code)
		}
	}
}
