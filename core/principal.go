package core

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// TokenPrefix begins the tokens that the program makes, so that people and scanners of secrets
// recognise them.
const TokenPrefix = "dragoman_"

// Principal is the sender of something as the hub established it (promise P7).
type Principal struct {
	// ID is unique among principals. It is not the id of an agent, which may be written the same.
	ID string `json:"id"`
	// Dialect is the dialect of the sender.
	Dialect string `json:"dialect,omitempty"`
	// Authenticated says that it proved its identity; on an open hub nobody does.
	Authenticated bool `json:"authenticated,omitempty"`
	// Operator may read and cancel every task. On an open hub it is everybody who
	// comes over pi, native, REST, the REST of Parallax or as a client of Coven, else those who
	// were given the right.
	Operator bool `json:"operator,omitempty"`
	// Component says that it is a part of the hub itself, for which no quota counts.
	Component bool `json:"-"`
	// Credential is what the credential says besides; nil is nothing. It is shared and never
	// changed, and not sent to peers.
	Credential *Credential `json:"-"`
	// Until is when the proof of its identity expires, which ends its sessions; zero is
	// never. It is not sent to peers.
	Until time.Time `json:"-"`
	// Proof names the proof of its identity, so that its sessions can be ended once that is
	// no longer valid. It is not a secret, and not sent to peers.
	Proof string `json:"-"`
}

// PartPrefix begins the names of the parts of the hub, and of the other hubs of a cluster.
const PartPrefix = "hub "

// openNames are the names of those who come to an open hub without one, by the way they come.
var openNames = []string{"client", "editor", "local", "mcp", "stdio"}

// IsHubs reports whether a name is one that the hub gives, in whatever case: to its parts, or to those who
// come to an open hub without a name. No credential proves such a name.
func IsHubs(name string) bool {
	words := strings.Fields(strings.ToLower(name))
	return len(words) > 1 && words[0] == "hub" || len(words) == 1 && slices.Contains(openNames, words[0])
}

// Rights returns text that is the same for two principals of one id if, and only if, their
// credentials give them the same rights: "" for none besides those of the id.
func (p Principal) Rights() string {
	var own Credential
	if p.Credential != nil {
		own = *p.Credential
	}
	if !p.Operator && len(own.Roles)+len(own.Agents)+len(own.Packs) == 0 {
		return ""
	}
	return fmt.Sprintf("%t %q %q %q", p.Operator, own.Roles, own.Agents, own.Packs)
}

// Account returns what counts together where a bound is one of each principal: its own id, or one account for
// all who proved no identity, whose names cost nothing. It is not the id of a principal, which has no control
// characters.
func (p Principal) Account() string {
	if !p.Authenticated {
		return "\x00"
	}
	return p.ID
}

// MayRegister reports whether the principal may register an agent with the id: its own, or one
// that its credential names. One that proved no identity may register any.
func (p Principal) MayRegister(id AgentID) bool {
	switch {
	case !p.Authenticated:
		return true
	case p.Credential == nil || len(p.Credential.Agents) == 0:
		return string(id) == p.ID
	}
	return slices.ContainsFunc(p.Credential.Agents, func(pattern string) bool { return MatchGlob(pattern, string(id)) })
}

// MatchGlob reports whether the text matches the pattern, in which * stands for any
// characters, none included.
func MatchGlob(pattern, text string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	if text, star = strings.CutPrefix(text, first); !star {
		return false
	}
	for {
		var next string
		if next, rest, star = strings.Cut(rest, "*"); !star {
			return strings.HasSuffix(text, next)
		}
		i := strings.Index(text, next)
		if i < 0 {
			return false
		}
		text = text[i+len(next):]
	}
}

// Credential is what a credential says of its principal besides its name. What it allows holds
// only for connections that have it.
type Credential struct {
	Kind PrincipalKind
	// Roles are names that rules refer to.
	Roles []string
	// Agents are the ids of the agents that the principal may register, with * for any
	// characters; none means an agent with its own name alone.
	Agents []string
	// Packs are the packs that the principal provides whatever the rules say: that of an entry
	// of the hub's settings, which is the operator's word already.
	Packs []string
}

// PrincipalKind says what a principal is. The zero value is unset.
type PrincipalKind uint8

// The kinds of principals.
const (
	_ PrincipalKind = iota
	KindPerson
	KindAgent
	KindService
)

var principalKinds = names{"", "person", "agent", "service"}

// String returns the name of the kind in settings and lists.
func (k PrincipalKind) String() string { return principalKinds.name(uint8(k)) }

// MarshalText implements encoding.TextMarshaler.
func (k PrincipalKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *PrincipalKind) UnmarshalText(b []byte) error {
	return principalKinds.parse((*uint8)(k), b, "kind of principal")
}
