package mcp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
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

func TestTheBodyOfAnUnknownCallerIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	server := mcp.New(start(t, mcp.Options{}).hub, mcp.Options{})
	defer server.Close()
	const size = 1 << 20
	for start, id := range map[string]string{`{"jsonrpc":"2.0","id":"a","method":"tools/list","params":"`: `"id":"a"`, "garbage": `"id":null`} {
		for path, status := range map[string]int{mcp.Path: http.StatusUnauthorized, mcp.Path + "/wrong": http.StatusBadRequest} {
			body := strings.NewReader(start + strings.Repeat("x", size))
			w := httptest.NewRecorder()
			server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, body))
			if start == "garbage" {
				status = http.StatusUnauthorized
			}
			if w.Code != status || !strings.Contains(w.Body.String(), id) || body.Len() < size/2 {
				t.Errorf("%s %.10s: got %d, %s and %d bytes unread, want %d, %s and most of them", path, start, w.Code, w.Body, body.Len(), status, id)
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
