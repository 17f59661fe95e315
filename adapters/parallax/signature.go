package parallax

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// signaturePrefix names the algorithm, as the page does ("Message Signing").
const signaturePrefix = "sha256:"

// signatureOf is what a message has as its signature: HMAC-SHA256 under the secret over
// the canonical form of the message without that member.
func signatureOf(frame, secret []byte) (string, error) {
	text, err := canonical(frame, "signature")
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(text)
	return signaturePrefix + hex.EncodeToString(mac.Sum(nil)), nil
}

// sign adds a signature to a frame of ours, which has none. Without a secret the frame
// stays as it is.
func sign(frame, secret []byte) ([]byte, error) {
	if len(secret) == 0 {
		return frame, nil
	}
	signature, err := signatureOf(frame, secret)
	if err != nil {
		return nil, err
	}
	head := bytes.TrimSuffix(frame, []byte("}"))
	return append(append(append(head[:len(head):len(head)], `,"signature":"`...), signature...), `"}`...), nil
}

// genuine reports whether the signature of a frame is right.
func genuine(frame []byte, signature string, secret []byte) bool {
	want, err := signatureOf(frame, secret)
	return err == nil && hmac.Equal([]byte(want), []byte(strings.ToLower(signature)))
}

// unsigned says what is wrong with the signature of a message under the secret: the
// code and the words, or nothing.
func (s *session) unsigned(m message, secret []byte) (code, text string) {
	switch {
	case m.Signature == "" && s.opts.RequireSignature:
		return codeSignatureRequired, m.Type + " is not signed: this hub takes signed messages alone"
	case m.Signature != "" && len(secret) > 0 && !genuine(m.frame, m.Signature, secret):
		return codeInvalidSignature, m.Type + ": the signature is wrong: want sha256: and the hexadecimal HMAC-SHA256 under the agent's secret over the canonical JSON of the message without it"
	}
	return "", ""
}

// trusted checks the signature of a register, by which the agent's secret is settled.
func (s *session) trusted(ctx context.Context, m message, id core.AgentID) error {
	var secret []byte
	if s.opts.Secret != nil {
		secret = s.opts.Secret(id)
	}
	code, text := s.unsigned(m, secret)
	if code == "" && len(secret) == 0 && s.opts.RequireSignature {
		code, text = codeSignatureRequired, "this hub takes signed messages alone, and knows no secret of agent "+string(id)
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
