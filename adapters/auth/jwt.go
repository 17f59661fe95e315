package auth

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Issuer says which JWTs are accepted.
type Issuer struct {
	// Issuer and Audience are what the claims iss and aud must have. Both are empty for the
	// tokens of a Coven gateway, which has neither claim; they need a Secret.
	Issuer, Audience string
	// JWKS is the URL of the key set, or Secret the key of tokens with an HMAC. One of them is
	// set. A secret has at least MinSecretBytes.
	JWKS   string
	Secret []byte
	// PrincipalClaim names the claim with the principal; "" is sub. RolesClaim names that with
	// the roles, a list or text with spaces; "" for none. A dot leads into an object where no
	// claim has the whole name: realm_access.roles.
	PrincipalClaim, RolesClaim string
}

// MinSecretBytes is the minimum length of a secret, as at Coven.
const MinSecretBytes = 32

// leeway is how far the clock of an issuer may be ahead.
const leeway = 30 * time.Second

// The algorithms of each way to verify. Those of one are never taken for the other, so that no
// public key can be used as a secret.
var (
	secretMethods = []string{"HS256", "HS384", "HS512"}
	publicMethods = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)

// issuer verifies the tokens of an Issuer.
type issuer struct {
	Issuer
	proof  string // of its principals: another one for each version of the settings
	parser *jwt.Parser
	keys   *keySet // nil with a secret
}

func newIssuer(of Issuer, proof string, keys *keySet) *issuer {
	methods := publicMethods
	if keys == nil {
		methods = secretMethods
	}
	options := []jwt.ParserOption{
		jwt.WithValidMethods(methods), jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(leeway), jwt.WithStrictDecoding(),
	}
	if of.Issuer != "" {
		options = append(options, jwt.WithIssuer(of.Issuer))
	}
	if of.Audience != "" {
		options = append(options, jwt.WithAudience(of.Audience))
	}
	return &issuer{of, proof, jwt.NewParser(options...), keys}
}

// same reports whether two issuers have the same settings.
func (i Issuer) same(as Issuer) bool {
	return i.Issuer == as.Issuer && i.Audience == as.Audience && i.JWKS == as.JWKS && bytes.Equal(i.Secret, as.Secret) &&
		i.PrincipalClaim == as.PrincipalClaim && i.RolesClaim == as.RolesClaim
}

// jwt returns the principal of a JWT. The issuer that it names, of which nothing is known yet,
// chooses the keys, which no other issuer shares, whatever their ids.
func (s *state) jwt(ctx context.Context, token string) (core.Principal, error) {
	_, rest, _ := strings.Cut(token, ".")
	text, _, _ := strings.Cut(rest, ".")
	data, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return core.Principal{}, refusedJWT(jwt.ErrTokenMalformed)
	}
	claims, err := strictjson.Parse(data, strictjson.Limits{})
	if err != nil {
		return core.Principal{}, refusedJWT(jwt.ErrTokenMalformed)
	}
	name, _ := claims.Get("iss").Text()
	from, known := s.issuers[name]
	if !known {
		return core.Principal{}, refused("Invalid authentication token: its issuer is not known here: see auth.jwt")
	}
	return from.verify(ctx, token)
}

// knowsIssuer reports whether an issuer still has the settings of a proof, by its rest.
func (s *state) knowsIssuer(rest string) bool {
	for _, one := range s.issuers {
		if one.proof == proofJWT+rest {
			return true
		}
	}
	return false
}

// errLater is the cause of a token that cannot be judged at present.
var errLater = errors.New("the keys of the issuer are not available")

// verify returns the principal of a token of the issuer.
func (i *issuer) verify(ctx context.Context, token string) (core.Principal, error) {
	claims := jwt.MapClaims{}
	if _, err := i.parser.ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) { return i.key(ctx, t) }); err != nil {
		return core.Principal{}, refusedJWT(err)
	}
	expires, err := claims.GetExpirationTime()
	switch {
	case err != nil || expires == nil || expires.Year() > 9999:
		return core.Principal{}, refused("Invalid authentication token: its exp is no time")
	case !time.Now().Before(expires.Time): // leeway is for clocks that are ahead of ours
		return core.Principal{}, refused("Token has expired")
	}
	if aud, err := claims.GetAudience(); i.Audience == "" && (err != nil || len(aud) > 0) {
		return core.Principal{}, refused("Invalid authentication token: it is for another audience")
	}
	name, _ := i.claim(claims, cmp.Or(i.PrincipalClaim, "sub")).(string)
	if err := CheckPrincipal(name); err != nil {
		return core.Principal{}, refused("Invalid authentication token: its claim %s does not name a %v", cmp.Or(i.PrincipalClaim, "sub"), err)
	}
	p := core.Principal{ID: name, Authenticated: true, Until: expires.UTC(), Proof: i.proof}
	if i.RolesClaim != "" {
		roles, err := rolesIn(i.claim(claims, i.RolesClaim))
		if err != nil {
			return core.Principal{}, refused("Invalid authentication token: its claim %s: %v", i.RolesClaim, err)
		}
		p.Credential = newCredential(0, roles, nil)
	}
	return p, nil
}

// key returns the key for a token.
func (i *issuer) key(ctx context.Context, token *jwt.Token) (any, error) {
	if _, critical := token.Header["crit"]; critical { // no extension is known here (RFC 7515, section 4.1.11)
		return nil, jwt.ErrTokenUnverifiable
	}
	if i.keys == nil {
		return i.Secret, nil
	}
	id, _ := token.Header["kid"].(string)
	key, err := i.keys.key(ctx, id)
	if err != nil {
		return nil, err
	}
	if !key.signs(token.Method.Alg()) {
		return nil, jwt.ErrTokenSignatureInvalid
	}
	return key.public, nil
}

// claim returns a claim, nil if there is none.
func (i *issuer) claim(claims jwt.MapClaims, name string) any {
	var at any = map[string]any(claims)
	for name != "" {
		of, _ := at.(map[string]any)
		if value, has := of[name]; has {
			return value
		}
		step, rest, _ := strings.Cut(name, ".")
		at, name = of[step], rest
	}
	return nil
}

// rolesIn reads the roles of a claim.
func rolesIn(claim any) ([]string, error) {
	var all []string
	switch value := claim.(type) {
	case nil:
		return nil, nil
	case string:
		all = strings.Fields(value)
	case []any:
		for _, one := range value {
			text, ok := one.(string)
			if !ok {
				return nil, errors.New("want a list of texts")
			}
			all = append(all, text)
		}
	default:
		return nil, errors.New("want a list of texts")
	}
	all, err := CheckRoles(all)
	return slices.Compact(all), err
}

// refusedJWT says why a token is refused, as far as that helps its owner. The error of the
// parser is a cause for the log; it has no part of the token but the name of its algorithm.
func refusedJWT(err error) error {
	reason := ""
	switch {
	case errors.Is(err, errLater):
		return later("the keys of the token's issuer cannot be fetched at present: try again").Because(err)
	case errors.Is(err, errUnknownKey):
		reason = ": its key (kid) is not in the key set of its issuer"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return later("the keys of the token's issuer did not arrive in time: try again").Because(err)
	case errors.Is(err, jwt.ErrTokenExpired):
		return refused("Token has expired")
	case errors.Is(err, jwt.ErrTokenInvalidAudience):
		reason = ": it is for another audience"
	case errors.Is(err, jwt.ErrTokenRequiredClaimMissing):
		reason = ": it lacks exp, aud or iss"
	case errors.Is(err, jwt.ErrTokenNotValidYet), errors.Is(err, jwt.ErrTokenUsedBeforeIssued):
		reason = ": it is not valid yet: compare the clocks"
	case errors.Is(err, jwt.ErrTokenMalformed):
		reason = ": it is neither a token of the hub nor a JWT"
	}
	return refused("Invalid authentication token%s", reason).Because(err)
}

// check returns an error about settings that would accept what they should not.
func (i Issuer) check() error {
	switch {
	case (i.JWKS == "") == (i.Secret == nil):
		return errors.New("want a key set or a secret")
	case i.Secret != nil && len(i.Secret) < MinSecretBytes:
		return fmt.Errorf("the secret has %d bytes: want at least %d", len(i.Secret), MinSecretBytes)
	case (i.Issuer == "") != (i.Audience == ""), i.Issuer == "" && i.Secret == nil:
		return errors.New("want an issuer and an audience")
	}
	return nil
}
