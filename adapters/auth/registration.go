package auth

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/dragoman-hub/dragoman/core"
)

// Registration says what becomes of a valid signature of an unknown key. The zero value is
// RegistrationDisabled.
type Registration uint8

const (
	// RegistrationDisabled refuses it.
	RegistrationDisabled Registration = iota
	// RegistrationPending makes a principal that waits for an operator.
	RegistrationPending
	// RegistrationApproved makes a principal that may connect at once.
	RegistrationApproved
)

var registrations = [...]string{"disabled", "pending", "approved"}

// String returns the name of the setting.
func (r Registration) String() string { return registrations[r] }

// UnmarshalText implements encoding.TextUnmarshaler. "" is RegistrationDisabled.
func (r *Registration) UnmarshalText(text []byte) error {
	for i, name := range registrations {
		if string(text) == name || len(text) == 0 {
			*r = Registration(i)
			return nil
		}
	}
	return fmt.Errorf("want disabled, pending or approved")
}

// registeredOwner returns the principal of a key that is not in the settings, and registers an
// unknown one. The signature of the key has been verified. The words are those of Coven's
// gateway.
func (a *Authenticator) registeredOwner(ctx context.Context, s *state, key Fingerprint) (core.Principal, error) {
	if s.registration == RegistrationDisabled && !a.registered.has(key) {
		return core.Principal{}, refused("unknown public key")
	}
	one, known, err := a.registered.refresh(ctx, key)
	if err != nil {
		return core.Principal{}, err
	}
	if !known {
		status := core.PrincipalPending
		if s.registration == RegistrationApproved {
			status = core.PrincipalApproved
		}
		if one, err = a.registered.register(ctx, key, status, func(name string) bool { return a.isNamed(s, name) }); err != nil {
			return core.Principal{}, err
		}
		a.onRegistered(ctx, one.Principal)
		a.log.Info("an SSH key registered", "principal", one.Principal, "fingerprint", key.String(), "status", one.Status.String())
		if one.Status == core.PrincipalPending {
			return core.Principal{}, core.NewFault(core.CodeNotAuthorized,
				"agent registered with pending status (principal_id: %s) - admin approval required", one.Principal)
		}
	}
	switch one.Status {
	case core.PrincipalApproved:
		return one.owner(), nil
	case core.PrincipalPending:
		return core.Principal{}, core.NewFault(core.CodeNotAuthorized, "principal status is pending")
	}
	return core.Principal{}, core.NewFault(core.CodeNotAuthorized, "principal has been revoked")
}

// isNamed reports whether the settings name a principal.
func (a *Authenticator) isNamed(s *state, name string) bool {
	for _, p := range a.named(s) {
		if p.Principal == name {
			return true
		}
	}
	return false
}

// keyOwner returns the principal of a key by the rest of its proof, if it may connect.
func (a *Authenticator) keyOwner(s *state, fingerprint string) (core.Principal, bool) {
	b, err := hex.DecodeString(fingerprint)
	if err != nil || len(b) != len(Fingerprint{}) {
		return core.Principal{}, false
	}
	if p, listed := s.keys[Fingerprint(b)]; listed {
		return p, true
	}
	one, known := a.registered.get(Fingerprint(b))
	return one.owner(), known && one.Status == core.PrincipalApproved
}
