package auth

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
	// Kind, Roles and Agents are what the token says besides of its owner.
	Kind   core.PrincipalKind
	Roles  []string
	Agents []string
	// Expires is when it expires; zero is never.
	Expires time.Time
	// Line is its line in the file that it comes from; 0 for none.
	Line int
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
	return core.Principal{
		ID: t.Principal, Authenticated: true, Operator: t.Operator, Until: t.Expires, Proof: proof,
		Credential: newCredential(t.Kind, t.Roles, t.Agents),
	}
}

// newCredential returns what a credential says of its principal, nil if that is nothing.
func newCredential(kind core.PrincipalKind, roles, agents []string) *core.Credential {
	if kind == 0 && len(roles) == 0 && len(agents) == 0 {
		return nil
	}
	return &core.Credential{Kind: kind, Roles: slices.Clone(roles), Agents: slices.Clone(agents)}
}

// same reports whether p and q are the same principal with the same proof, time and rights.
// Their dialects may differ.
func same(p, q core.Principal) bool {
	return p.ID == q.ID && p.Proof == q.Proof && p.Operator == q.Operator && p.Authenticated == q.Authenticated && p.Until.Equal(q.Until) &&
		sameCredential(p.Credential, q.Credential)
}

func sameCredential(a, b *core.Credential) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a == b || a.Kind == b.Kind && slices.Equal(a.Roles, b.Roles) && slices.Equal(a.Agents, b.Agents) && slices.Equal(a.Packs, b.Packs)
}

// Tokens is the set of valid tokens. It is safe for concurrent use. The zero Tokens is that
// of an open hub.
type Tokens struct {
	known atomic.Pointer[map[Hash]core.Principal]
}

// Replace replaces the valid tokens. An empty list opens the hub. A principal of which the
// list says what was said before stays equal to itself, so that it can be compared by ==.
func (t *Tokens) Replace(list []Token) {
	before := t.all()
	known := make(map[Hash]core.Principal, len(list))
	for _, one := range list {
		owner := one.Owner()
		if old, was := before[one.Hash]; was && same(old, owner) {
			owner = old
		}
		known[one.Hash] = owner
	}
	t.known.Store(&known)
}

// Open reports whether no authentication is needed.
func (t *Tokens) Open() bool { return len(t.all()) == 0 }

// Knows reports whether the token of the principal is still valid, and still has the same
// owner with the same rights.
func (t *Tokens) Knows(p core.Principal) bool {
	h, err := ParseHash(strings.TrimSuffix(p.Proof, operatorProof))
	owner, known := t.all()[h]
	return err == nil && known && good(owner) && same(owner, p)
}

// Hashes returns the hashes of all tokens.
func (t *Tokens) Hashes() []Hash { return slices.Collect(maps.Keys(t.all())) }

// Owner returns the principal of the token with the hash.
func (t *Tokens) Owner(h Hash) (core.Principal, bool) {
	owner, known := t.all()[h]
	return owner, known
}

// Owners returns the principal of every token.
func (t *Tokens) Owners() []core.Principal { return slices.Collect(maps.Values(t.all())) }

// Find returns the owner of a token, and whether the hub has the token. The error is an
// unauthenticated Fault: the token has expired.
func (t *Tokens) Find(token string) (core.Principal, bool, error) {
	owner, known := t.all()[HashOf(token)]
	if known && !good(owner) {
		return core.Principal{}, true, core.NewFault(core.CodeUnauthenticated, "Token has expired")
	}
	return owner, known, nil
}

func (t *Tokens) all() map[Hash]core.Principal {
	if known := t.known.Load(); known != nil {
		return *known
	}
	return nil
}

// good reports whether the token of the principal has not expired.
func good(p core.Principal) bool { return p.Until.IsZero() || time.Now().Before(p.Until) }
