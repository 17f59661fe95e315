package core

import "time"

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

// Credential is what a credential says of its principal besides its name. What it allows holds
// only for connections that have it.
type Credential struct {
	Kind PrincipalKind
	// Roles are names that rules refer to.
	Roles []string
	// Agents are the ids of the agents that the principal may register, with * for any
	// characters; none means an agent with its own name alone.
	Agents []string
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
