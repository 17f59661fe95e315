package wire

import (
	"errors"
)

func (r *InitializeRequest) check() error {
	if r.ProtocolVersion < 1 {
		return errors.New("protocolVersion: missing; send 1")
	}
	return nil
}

// HubName is the name of our hub as an agent.
const HubName = "dragoman"

// Empty is an object whose presence declares a capability.
type Empty struct{}

func (r *AuthenticateRequest) check() error { return need("methodId", r.MethodID) }

// need returns an error for a member that is missing or empty.
func need(name, value string) error {
	if value == "" {
		return errors.New(name + ": missing; send a string")
	}
	return nil
}
