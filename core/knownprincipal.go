package core

import "time"

// PrincipalStatus says whether a principal may connect. The zero value is unset.
type PrincipalStatus uint8

// The statuses of principals.
const (
	_                 PrincipalStatus = iota
	PrincipalPending                  // it registered itself and waits for an operator
	PrincipalApproved                 // it may connect
	PrincipalRevoked                  // it may no longer connect
)

var principalStatuses = names{"", "pending", "approved", "revoked"}

// String returns the name of the status in JSON.
func (s PrincipalStatus) String() string { return principalStatuses.name(uint8(s)) }

// MarshalText implements encoding.TextMarshaler.
func (s PrincipalStatus) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *PrincipalStatus) UnmarshalText(b []byte) error {
	return principalStatuses.parse((*uint8)(s), b, "principal status")
}

// KnownPrincipal is a principal in a list, once for each of its credentials. Those who connect
// with a certificate or a JSON Web Token are not known before, and not in it.
type KnownPrincipal struct {
	Principal string `json:"principal"`
	// Credential is token, ssh_key (of the settings) or registered (an SSH key that registered
	// itself).
	Credential string          `json:"credential"`
	Status     PrincipalStatus `json:"status"`
	Kind       PrincipalKind   `json:"kind,omitzero"`
	Roles      []string        `json:"roles,omitempty"`
	Agents     []string        `json:"agents,omitempty"`
	Operator   bool            `json:"operator,omitempty"`
	// Fingerprint is the SHA-256 of an SSH key, in hex.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Since is when a key registered, Expires when a token does.
	Since   time.Time `json:"since,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
}
