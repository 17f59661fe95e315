package wire

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// signaturePrefix names the algorithm, as the page does ("Message Signing").
const signaturePrefix = "sha256:"

// signatureOf returns the signature of a message: HMAC-SHA256 with the secret over the
// canonical form of the message without its member signature.
func signatureOf(frame, secret []byte) (string, error) {
	text, err := canonical(frame, "signature")
	if err != nil {
		return "", err
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(text)
	return signaturePrefix + hex.EncodeToString(mac.Sum(nil)), nil
}

// Sign adds a signature to an unsigned frame. Without a secret it returns the frame.
func Sign(frame, secret []byte) ([]byte, error) {
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

// Verify reports whether signature is that of the frame.
func Verify(frame []byte, signature string, secret []byte) bool {
	want, err := signatureOf(frame, secret)
	return err == nil && hmac.Equal([]byte(want), []byte(strings.ToLower(signature)))
}
