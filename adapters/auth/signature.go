package auth

import (
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/dragoman-hub/dragoman/core"
)

// The times at which a signature is valid, by its timestamp (auth-facts, "SSH signature").
const (
	maxAge   = 5 * time.Minute
	maxAhead = time.Minute
)

// The limits of the fields of a signature. The largest key has 4096 bits.
const (
	maxKeyLine      = 4096
	maxSignature    = 2048
	maxTimestamp    = 20
	maxNonce        = 256
	minRSA, maxRSA  = 2048, 4096
	slowRSA         = 2048 // the largest RSA key that anybody may make the hub verify with
	keyTypesAllowed = "use ed25519, ECDSA P-256, or RSA with 2048 to 4096 bits"
)

// Fingerprint is the SHA-256 of a public SSH key in wire form.
type Fingerprint [sha256.Size]byte

// String returns the fingerprint as Coven writes it: in hexadecimal digits, without colons.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// signature is an SSH signature and what it covers.
type signature struct {
	key         ssh.PublicKey
	fingerprint Fingerprint
	timestamp   int64
	nonce       string
	ssh.Signature
}

// present reports whether any field is given. As at Coven an empty one counts as missing.
func (f SSHFields) present() bool {
	for _, values := range [...][]string{f.Key, f.Signature, f.Timestamp, f.Nonce} {
		for _, value := range values {
			if value != "" {
				return true
			}
		}
	}
	return false
}

// refusedSSH returns a Fault with the words of Coven's gateway.
func refusedSSH(format string, args ...any) *core.Fault {
	return refused("SSH auth failed: "+format, args...)
}

// signature returns the principal of an SSH signature. Cheap checks come first: a signature
// is verified only once all else is right, and a nonce is kept only once its signature lets
// somebody in.
func (a *Authenticator) signature(ctx context.Context, s *state, fields SSHFields) (core.Principal, error) {
	now := time.Now()
	signed, err := readSignature(fields, now)
	if err != nil {
		return core.Principal{}, err
	}
	key := signed.fingerprint
	if signed.timestamp < a.since.Unix() {
		return core.Principal{}, later("SSH auth failed: the signature is from before the start of this hub, which keeps none: sign again")
	}
	if a.nonces.seen(key, signed.timestamp, signed.nonce) || a.newNonces.seen(key, signed.timestamp, signed.nonce) {
		return core.Principal{}, replay()
	}
	p, listed := s.keys[key]
	if !listed && isSlow(signed.key) && !a.registered.has(key) {
		return core.Principal{}, refusedSSH("an unknown RSA key may have at most %d bits: use ed25519, or have an operator add the key to auth.ssh_keys", slowRSA)
	}
	if err := signed.key.Verify(signed.text(), &signed.Signature); err != nil {
		return core.Principal{}, refusedSSH("signature verification failed").Because(err)
	}
	seen := &a.nonces
	if !listed {
		if p, err = a.registeredOwner(ctx, s, key); err != nil {
			return core.Principal{}, err
		}
		seen = &a.newNonces
	}
	switch seen.add(key, signed.timestamp, signed.nonce, now.Unix()) {
	case replayed:
		return core.Principal{}, replay()
	case full:
		return core.Principal{}, later("SSH auth failed: too many signatures within 5 minutes: sign fewer calls, or use a token")
	}
	if err := a.take(ctx, signed); err != nil {
		return core.Principal{}, err
	}
	return p, nil
}

func replay() error { return refusedSSH("nonce already used (possible replay attack)") }

// readSignature reads the fields of a signature and checks its age.
func readSignature(fields SSHFields, now time.Time) (*signature, error) {
	key, err := field("public key", fields.Key, maxKeyLine)
	if err != nil {
		return nil, err
	}
	encoded, err := field("signature", fields.Signature, maxSignature)
	if err != nil {
		return nil, err
	}
	timestamp, err := field("timestamp", fields.Timestamp, maxTimestamp)
	if err != nil {
		return nil, err
	}
	signed := &signature{}
	if signed.nonce, err = field("nonce", fields.Nonce, maxNonce); err != nil {
		return nil, err
	}
	if signed.timestamp, err = strconv.ParseInt(timestamp, 10, 64); err != nil {
		return nil, refusedSSH("invalid timestamp: want Unix seconds")
	}
	switch {
	case signed.timestamp > now.Add(maxAhead).Unix():
		return nil, refusedSSH("timestamp is in the future")
	case signed.timestamp < now.Add(-maxAge).Unix():
		return nil, refusedSSH("signature expired (max: %v)", maxAge)
	}
	blob, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, refusedSSH("invalid signature encoding: want base64")
	}
	if ssh.Unmarshal(blob, &signed.Signature) != nil || len(signed.Rest) > 0 {
		return nil, refusedSSH("invalid signature format")
	}
	if signed.key, _, _, _, err = ssh.ParseAuthorizedKey([]byte(key)); err != nil {
		return nil, refusedSSH("invalid public key: want an OpenSSH line such as ssh-ed25519 AAAA…")
	}
	signed.fingerprint = fingerprintOf(signed.key)
	if err := checkKey(signed.key); err != nil {
		return nil, refusedSSH("%v", err)
	}
	return signed, signed.checkFormat()
}

// text returns what is signed.
func (s *signature) text() []byte {
	return append(append(strconv.AppendInt(nil, s.timestamp, 10), '|'), s.nonce...)
}

// checkFormat refuses signatures that their key did not make in a safe way: those of RSA with
// SHA-1.
func (s *signature) checkFormat() error {
	ok := s.Format == s.key.Type()
	if s.key.Type() == ssh.KeyAlgoRSA {
		ok = s.Format == ssh.KeyAlgoRSASHA256 || s.Format == ssh.KeyAlgoRSASHA512
		if s.Format == ssh.KeyAlgoRSA {
			return refusedSSH("the signature is RSA with SHA-1: sign with rsa-sha2-256, rsa-sha2-512 or an ed25519 key")
		}
	}
	if !ok {
		return refusedSSH("signature verification failed")
	}
	return nil
}

// field returns the one value of a field. The words are those of Coven's gateway.
func field(name string, values []string, most int) (string, error) {
	if len(values) > 1 {
		return "", refusedSSH("the %s is given %d times: send it once", name, len(values))
	}
	if len(values) == 0 || strings.TrimSpace(values[0]) == "" {
		return "", refused("missing SSH %s", name)
	}
	value := strings.TrimSpace(values[0])
	if len(value) > most {
		return "", refusedSSH("the %s is longer than %d bytes", name, most)
	}
	return value, nil
}

// checkKey refuses keys whose signatures take long to verify, or are weak. Anybody can make a
// key of any size and send bad signatures of it.
func checkKey(key ssh.PublicKey) error {
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256:
		return nil
	case ssh.KeyAlgoRSA:
		of := rsaOf(key)
		if bits := of.N.BitLen(); bits < minRSA || maxRSA < bits {
			break
		}
		if of.E > largestExponent {
			return fmt.Errorf("the exponent of the RSA key is larger than %d: make a new key", largestExponent)
		}
		return nil
	}
	return errors.New("the type or size of the public key is not supported: " + keyTypesAllowed)
}

// isSlow reports whether a signature of the key takes more than 100 µs to verify. Only the keys
// that the hub knows may.
func isSlow(key ssh.PublicKey) bool { return bitsOf(key) > slowRSA }

// largestExponent is the public exponent of almost all RSA keys. Larger ones only make a
// verification slower.
const largestExponent = 1<<16 + 1

// rsaOf returns the RSA key in a public key, nil if it is another.
func rsaOf(key ssh.PublicKey) *rsa.PublicKey {
	if key, ok := key.(ssh.CryptoPublicKey); ok {
		of, _ := key.CryptoPublicKey().(*rsa.PublicKey)
		return of
	}
	return nil
}

// bitsOf returns the size of an RSA key, 0 for another.
func bitsOf(key ssh.PublicKey) int {
	if of := rsaOf(key); of != nil {
		return of.N.BitLen()
	}
	return 0
}

func fingerprintOf(key ssh.PublicKey) Fingerprint { return sha256.Sum256(key.Marshal()) }
