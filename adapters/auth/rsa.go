package auth

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"math/big"

	"golang.org/x/crypto/ssh"
)

// quickRSA is the size of the largest RSA keys for which crypto/rsa is quick. For others it has
// no assembly on common processors, and takes three times as long as math/big.
const quickRSA = 2048

// largestExponent is the public exponent of almost all RSA keys. Larger ones only make a
// verification slower.
const largestExponent = 1<<16 + 1

// The DER encodings of a DigestInfo before the digest (RFC 8017, section 9.2, note 1).
var (
	digestInfoSHA256 = []byte{0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00, 0x04, 0x20}
	digestInfoSHA512 = []byte{0x30, 0x51, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x03, 0x05, 0x00, 0x04, 0x40}
)

var errBadSignature = errors.New("the signature is not one of the key")

// verify verifies the signature. Large RSA keys are verified here, all others by package ssh.
func (s *signature) verify() error {
	if key := rsaOf(s.key); key != nil && key.N.BitLen() > quickRSA {
		return verifyRSA(key, s.Format, s.text(), s.Blob)
	}
	return s.key.Verify(s.text(), &s.Signature)
}

// rsaOf returns the RSA key in a public key, nil if it is another.
func rsaOf(key ssh.PublicKey) *rsa.PublicKey {
	if key, ok := key.(ssh.CryptoPublicKey); ok {
		of, _ := key.CryptoPublicKey().(*rsa.PublicKey)
		return of
	}
	return nil
}

// verifyRSA verifies a signature of rsa-sha2-256 or rsa-sha2-512 (RFC 8332): RSASSA-PKCS1-v1_5
// (RFC 8017, section 8.2.2), where leading zeros may be missing, as package ssh allows. It
// compares the whole encoded message with the only one that is right. Nothing of it is secret,
// so that it need not take the same time for all signatures.
func verifyRSA(key *rsa.PublicKey, format string, text, signature []byte) error {
	var suffix []byte
	switch format {
	case ssh.KeyAlgoRSASHA256:
		digest := sha256.Sum256(text)
		suffix = append(bytes.Clone(digestInfoSHA256), digest[:]...)
	case ssh.KeyAlgoRSASHA512:
		digest := sha512.Sum512(text)
		suffix = append(bytes.Clone(digestInfoSHA512), digest[:]...)
	default:
		return errBadSignature
	}
	size := key.Size()
	number := new(big.Int).SetBytes(signature)
	if len(signature) > size || number.Cmp(key.N) >= 0 || key.N.Bit(0) == 0 {
		return errBadSignature
	}
	want := bytes.Repeat([]byte{0xff}, size)
	want[0], want[1] = 0, 1
	want[size-len(suffix)-1] = 0
	copy(want[size-len(suffix):], suffix)
	number.Exp(number, big.NewInt(int64(key.E)), key.N)
	if !bytes.Equal(number.FillBytes(make([]byte, size)), want) {
		return errBadSignature
	}
	return nil
}
