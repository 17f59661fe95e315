package parallax

import (
	"context"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// unsigned says what is wrong with the signature of a message under the secret: the
// code and the words, or nothing.
func (s *session) unsigned(m wire.Message, secret []byte) (code, text string) {
	switch {
	case m.Signature == "" && s.opts.RequireSignature:
		return wire.CodeSignatureRequired, m.Type + " is not signed: this hub takes signed messages alone"
	case m.Signature != "" && len(secret) > 0 && !wire.Verify(m.Frame, m.Signature, secret):
		return wire.CodeInvalidSignature, m.Type + ": the signature is wrong: want sha256: and the hexadecimal HMAC-SHA256 under the agent's secret over the canonical JSON of the message without it"
	}
	return "", ""
}

// trusted checks the signature of a register, by which the agent's secret is settled.
func (s *session) trusted(ctx context.Context, m wire.Message, id core.AgentID) error {
	var secret []byte
	if s.opts.Secret != nil {
		secret = s.opts.Secret(id)
	}
	code, text := s.unsigned(m, secret)
	if code == "" && len(secret) == 0 && s.opts.RequireSignature {
		code, text = wire.CodeSignatureRequired, "this hub takes signed messages alone, and knows no secret of agent "+string(id)
	}
	if code != "" {
		return s.fail(ctx, m.ID, code, text, link.Reason{Cause: link.Unauthorized, Code: closeUnauthenticated})
	}
	if len(secret) > 0 {
		s.secret.Store(&secret)
	}
	return nil
}

// key is the secret by which messages are signed; nil for none.
func (s *session) key() []byte {
	if secret := s.secret.Load(); secret != nil {
		return *secret
	}
	return nil
}
