package client

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// credential says how the token is sent. The zero credential is a Bearer token.
type credential struct {
	location, name string // of an API key
	scheme         string // of an Authorization header
}

// credentialOf returns the first way of the card to authenticate that needs nothing but a
// token, by default a Bearer token. What needs more, such as mutual TLS, is up to the HTTP
// client.
func credentialOf(card wire.Card) credential {
	for _, required := range card.Security {
		if len(required.Schemes) != 1 {
			continue
		}
		for name := range required.Schemes {
			s := card.SecuritySchemes[name]
			switch {
			case s.APIKey != nil:
				return credential{location: s.APIKey.Location, name: s.APIKey.Name}
			case s.HTTP != nil:
				return credential{scheme: s.HTTP.Scheme}
			case s.OAuth2 != nil, s.OpenIDConnect != nil:
				return credential{}
			}
		}
	}
	return credential{}
}

// add adds the token to a request.
func (c credential) add(req *http.Request, token string) {
	switch {
	case token == "":
	case c.location == "query":
		q := req.URL.Query()
		q.Set(c.name, token)
		req.URL.RawQuery = q.Encode()
	case c.location == "cookie":
		req.AddCookie(&http.Cookie{Name: c.name, Value: token})
	case c.location != "" && c.name != "":
		req.Header.Set(c.name, token)
	default:
		req.Header.Set("Authorization", cmp.Or(c.scheme, "Bearer")+" "+token)
	}
}

// denied returns the Fault of a request that was refused with 401 or 403. It names the setting
// that may change that, and what the card wants. r is nil where the card is not known.
func (a *Agent) denied(r *remote, what string, status int, said string) *core.Fault {
	code, f := core.CodeNotAuthorized, "its token has not the right"
	if status == http.StatusUnauthorized {
		code, f = core.CodeUnauthenticated, "the token in token_file of its settings is not valid there"
	}
	if a.opts.Token() == "" {
		code, f = core.CodeUnauthenticated, "it wants a token: set token_file in its settings"
	}
	if r != nil && len(r.card.SecuritySchemes) > 0 {
		var all []string
		for _, name := range slices.Sorted(maps.Keys(r.card.SecuritySchemes)) {
			all = append(all, short(name+describe(r.card.SecuritySchemes[name])))
		}
		f += "; its card names the security schemes " + strings.Join(all[:min(len(all), 10)], ", ")
	}
	if said != "" {
		f += "; it says: " + short(said)
	}
	return core.NewFault(code, "%s was refused with status %d: %s", what, status, f)
}

// describe describes a security scheme, for a message.
func describe(s wire.SecurityScheme) string {
	switch {
	case s.APIKey != nil:
		return " (API key in the " + s.APIKey.Location + " " + s.APIKey.Name + ")"
	case s.HTTP != nil:
		return " (HTTP " + s.HTTP.Scheme + ")"
	case s.OAuth2 != nil:
		return " (OAuth 2)"
	case s.OpenIDConnect != nil:
		return " (OpenID Connect)"
	case s.MutualTLS != nil:
		return " (mutual TLS)"
	}
	return ""
}

// withoutQuery returns a URL for messages: a query may have the token.
func withoutQuery(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return short(text)
	}
	u.RawQuery, u.User = "", nil
	return u.String()
}
