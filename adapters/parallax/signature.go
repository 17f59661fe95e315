package parallax

import (
	"context"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// checkSignature returns the code and text of the error for a message that is not signed
// as it must be, "" for none.
func (s *session) checkSignature(m wire.Message, secret []byte) (code, text string) {
	switch {
	case m.Signature == "" && s.opts.RequireSignature:
		return wire.CodeSignatureRequired, m.Type + " is not signed: this hub takes signed messages alone"
	case m.Signature != "" && len(secret) > 0 && !wire.Verify(m.Frame, m.Signature, secret):
		return wire.CodeInvalidSignature, m.Type + ": the signature is wrong: want sha256: and the hexadecimal HMAC-SHA256 under the agent's secret over the canonical JSON of the message without it"
	}
	return "", ""
}

// authenticate checks the signature of a register and keeps the agent's secret.
func (s *session) authenticate(ctx context.Context, m wire.Message, id core.AgentID) error {
	var secret []byte
	if s.opts.Secret != nil {
		secret = s.opts.Secret(id)
	}
	code, text := s.checkSignature(m, secret)
	if code == "" && len(secret) == 0 && s.opts.RequireSignature {
		code, text = wire.CodeSignatureRequired, "this hub takes signed messages alone, and has no secret of agent "+string(id)
	}
	if code != "" {
		return s.fail(ctx, m.ID, code, text, link.Reason{Cause: link.Unauthorized, Code: closeUnauthenticated})
	}
	if len(secret) > 0 {
		s.secret.Store(&secret)
	}
	return nil
}

// key returns the secret that signs messages; nil for none.
func (s *session) key() []byte {
	if secret := s.secret.Load(); secret != nil {
		return *secret
	}
	return nil
}
