package access

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Hash is the SHA-256 of a token. Tokens are random and long, so that guessing them needs no
// slower hash to be hopeless.
type Hash [sha256.Size]byte

// HashOf returns the hash of a token.
func HashOf(token string) Hash { return sha256.Sum256([]byte(token)) }

// ParseHash reads a hash as 64 hexadecimal digits. The error does not repeat the text, which
// may be the token itself.
func ParseHash(text string) (h Hash, err error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(h) {
		return h, fmt.Errorf("want the SHA-256 of the token as %d hexadecimal digits", 2*len(h))
	}
	return Hash(b), nil
}

// Token is what the hub knows of a token.
type Token struct {
	Hash Hash
	// Principal is the owner of the token, and Operator says that it may read and cancel
	// everything.
	Principal string
	Operator  bool
	// Expires is when it expires; zero is never.
	Expires time.Time
}

// operatorProof is the suffix of an operator's proof, so that the proof changes if the owner
// is no longer an operator.
const operatorProof = "/operator"

// Owner returns the principal of a sender with the token.
func (t Token) Owner() core.Principal {
	proof := hex.EncodeToString(t.Hash[:])
	if t.Operator {
		proof += operatorProof
	}
	return core.Principal{ID: t.Principal, Authenticated: true, Operator: t.Operator, Until: t.Expires, Proof: proof}
}

// Tokens is the set of valid tokens. It is safe for concurrent use. The zero Tokens is that
// of an open hub.
type Tokens struct {
	known atomic.Pointer[map[Hash]Token]
}

// Replace replaces the valid tokens. An empty list opens the hub.
func (t *Tokens) Replace(list []Token) {
	known := make(map[Hash]Token, len(list))
	for _, one := range list {
		known[one.Hash] = one
	}
	t.known.Store(&known)
}

// Open reports whether no authentication is needed.
func (t *Tokens) Open() bool { return len(t.all()) == 0 }

// Knows reports whether the token of the principal is still valid, and still has the same
// owner with the same rights.
func (t *Tokens) Knows(p core.Principal) bool {
	h, err := ParseHash(strings.TrimSuffix(p.Proof, operatorProof))
	one, known := t.all()[h]
	owner := one.Owner()
	return err == nil && known && one.good() && owner.ID == p.ID && owner.Proof == p.Proof && owner.Until.Equal(p.Until)
}

// Hashes returns the hashes of all tokens.
func (t *Tokens) Hashes() []Hash { return slices.Collect(maps.Keys(t.all())) }

// Owner returns the principal of the token with the hash.
func (t *Tokens) Owner(h Hash) (core.Principal, bool) {
	one, known := t.all()[h]
	return one.Owner(), known
}

// Check returns the principal for the values of the header, or metadata, Authorization: one
// of "Bearer" or, from clients of Parallax, "ApiKey" and a token, or only a token that
// begins with "plx_". On an open hub it is the zero Principal, whatever was sent. The error
// is an unauthenticated Fault.
func (t *Tokens) Check(authorization []string) (core.Principal, error) {
	if t.Open() {
		return core.Principal{}, nil
	}
	if len(authorization) == 0 {
		return core.Principal{}, core.NewFault(core.CodeUnauthenticated, "a token is missing: send it as Authorization: Bearer")
	}
	token, valid := tokenIn(authorization[0])
	one, known := t.all()[HashOf(token)]
	switch {
	case len(authorization) > 1 || !valid || !known:
		return core.Principal{}, core.NewFault(core.CodeUnauthenticated, "Invalid authentication token")
	case !one.good():
		return core.Principal{}, core.NewFault(core.CodeUnauthenticated, "Token has expired")
	}
	return one.Owner(), nil
}

// tokenIn returns the token in a value of Authorization.
func tokenIn(value string) (token string, ok bool) {
	scheme, token, two := strings.Cut(value, " ")
	if !two {
		return value, strings.HasPrefix(value, "plx_")
	}
	return strings.TrimSpace(token), strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "ApiKey")
}

func (t *Tokens) all() map[Hash]Token {
	if known := t.known.Load(); known != nil {
		return *known
	}
	return nil
}

// good reports whether the token has not expired.
func (t Token) good() bool { return t.Expires.IsZero() || time.Now().Before(t.Expires) }
