package auth

import (
	"context"
	"crypto/subtle"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// maxTokenBytes bounds a token. It is hashed and decoded before anything is known of it.
const maxTokenBytes = 16 << 10

// barePrefix begins the tokens of Parallax, which its clients send without a scheme.
const barePrefix = "plx_"

// invalidToken is what clients of Parallax know.
func invalidToken() *core.Fault { return refused("Invalid authentication token") }

// token returns the token of the credentials. Wherever it is given it must be the same, once
// each.
func (c *Credentials) token() (token string, present bool, err error) {
	take := func(one string) {
		switch {
		case one == "" || len(one) > maxTokenBytes:
			err = invalidToken()
		case present && !sameText(one, token):
			err = refused("the tokens in Authorization, X-API-Key and the subprotocol differ: send one of them")
		}
		token, present = one, true
	}
	if len(c.Authorization) > 1 || len(c.APIKey) > 1 {
		return "", true, refused("a token is given twice: send one")
	}
	if len(c.Authorization) == 1 {
		one, ok := c.authorization()
		if !ok {
			return "", true, refused("Invalid authentication token: send it as Authorization: Bearer TOKEN")
		}
		take(one)
	}
	for _, one := range c.APIKey {
		take(strings.TrimSpace(one))
	}
	for i, one := range protocolTokens(c.Subprotocols) {
		if i > 0 {
			return "", true, refused("a token is given twice: send one")
		}
		take(one)
	}
	return token, present, err
}

// authorization returns the token in Authorization. The schemes are Bearer and, of Parallax,
// ApiKey.
func (c *Credentials) authorization() (token string, ok bool) {
	scheme, token, two := strings.Cut(c.Authorization[0], " ")
	if !two {
		return scheme, c.Bare && scheme != "" || strings.HasPrefix(scheme, barePrefix)
	}
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "ApiKey")
}

// sameText compares two secrets in a time that does not depend on where they differ.
func sameText(a, b string) bool {
	x, y := HashOf(a), HashOf(b)
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// token returns the principal of a token: one of the hub, which is found by its hash, so that
// no comparison depends on the token, or else a JWT.
func (a *Authenticator) token(ctx context.Context, s *state, token string) (kind string, p core.Principal, err error) {
	p, known, err := a.tokens.Find(token)
	if known {
		return kindToken, p, err
	}
	if len(s.issuers) > 0 && strings.Count(token, ".") == 2 {
		p, err = s.jwt(ctx, token)
		return kindJWT, p, err
	}
	return kindToken, p, invalidToken()
}
