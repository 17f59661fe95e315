package mcp

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Paths of [Server.OAuth].
const (
	// MetadataPath is where clients look for the metadata of the endpoint (RFC 9728), and
	// also in Path below it.
	MetadataPath = "/.well-known/oauth-protected-resource"
	// RegisterPath is where clients register that find no authorization server (MCP
	// 2025-03-26, authorization, section 2.3.3).
	RegisterPath = "/register"
)

// noOAuth is what a client with OAuth shows its user.
const noOAuth = "this hub has no OAuth: ask its operator for a token, and configure it as the header Authorization: Bearer"

// OAuth returns the handler for MetadataPath, the path below it, and RegisterPath. The hub has no
// authorization server: the handler exists so that a client with OAuth, which it attempts when
// the token is missing, fails with a message that says what to do.
func (s *Server) OAuth() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*") // it is public
		switch {
		case r.URL.Path == RegisterPath && r.Method == http.MethodPost:
			setHeaders(w.Header(), "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(strictjson.Encode(map[string]string{"error": "access_denied", "error_description": noOAuth}))
		case r.URL.Path != RegisterPath && (r.Method == http.MethodGet || r.Method == http.MethodHead):
			setHeaders(w.Header(), "application/json")
			_, _ = w.Write(strictjson.Encode(struct {
				Resource string   `json:"resource"`
				Name     string   `json:"resource_name"`
				Methods  []string `json:"bearer_methods_supported"`
			}{s.endpoint(r).String(), "Dragoman", []string{"header"}}))
		default:
			w.Header().Set("Allow", map[bool]string{true: "POST", false: "GET, HEAD"}[r.URL.Path == RegisterPath])
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	})
}

// endpoint returns the URL at which the client of a request reaches the server.
func (s *Server) endpoint(r *http.Request) *url.URL {
	if u, err := url.Parse(s.opts.Endpoint); err == nil && u.Host != "" {
		return u
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return &url.URL{Scheme: scheme, Host: cmp.Or(r.Host, "localhost"), Path: Path}
}

// challenge is the WWW-Authenticate header for a request whose credential is missing, or wrong, which
// it then says (RFC 6750, section 3.1).
func (s *Server) challenge(r *http.Request) string {
	u := *s.endpoint(r)
	u.Path = MetadataPath + strings.TrimSuffix(u.Path, "/")
	text := `Bearer resource_metadata="` + u.String() + `"`
	if tokenInPath(r) != "" || len(r.Header.Values("Authorization")) > 0 || presentsMore(r) {
		text += `, error="invalid_token"`
	}
	return text
}
