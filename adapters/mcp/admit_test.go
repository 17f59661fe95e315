package mcp_test

import (
	"crypto/sha256"
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

func TestAnExpiredTokenOfTheHubIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := mcp.New(coretest.NewHub(t, hub.Options{}), mcp.Options{})
		defer server.Close()
		leave := server.Admit(sha256.Sum256([]byte("secret")), core.Principal{ID: "ann", Authenticated: true, Until: time.Now().Add(time.Minute)})
		defer leave()
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
			if body := w.Body.String(); w.Code != http.StatusBadRequest || !strings.Contains(body, "-32600") || !strings.Contains(body, "expired") {
				t.Errorf("POST %s: got %d and %s, want 400 and that it has expired", path, w.Code, body)
			}
		}
	})
}
