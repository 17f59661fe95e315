package auth

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"math/big"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Every signature is judged here as by package ssh.
func TestLargeRSAKeysAreVerifiedAsByPackageSSH(t *testing.T) {
	for _, bits := range []int{2048, 3072, 4096} {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			t.Fatal(err)
		}
		signer, err := ssh.NewSignerFromSigner(key)
		if err != nil {
			t.Fatal(err)
		}
		public := signer.PublicKey()
		judge := func(name, format string, text, blob []byte, want bool) {
			t.Helper()
			theirs := public.Verify(text, &ssh.Signature{Format: format, Blob: blob}) == nil
			ours := verifyRSA(&key.PublicKey, format, text, blob) == nil
			if ours != theirs || ours != want {
				t.Errorf("%d bits, %s, %s: got it taken: %v, by package ssh: %v, want %v", bits, format, name, ours, theirs, want)
			}
		}
		for _, format := range []string{ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512} {
			text := []byte("1700000000|a nonce")
			s, err := signer.(ssh.AlgorithmSigner).SignWithAlgorithm(rand.Reader, text, format)
			if err != nil {
				t.Fatal(err)
			}
			judge("as signed", format, text, s.Blob, true)
			judge("another text", format, []byte("1700000000|another"), s.Blob, false)
			judge("empty", format, text, nil, false)
			judge("zero", format, text, make([]byte, bits/8), false)
			judge("one", format, text, append(make([]byte, bits/8-1), 1), false)
			judge("the modulus", format, text, key.N.Bytes(), false)
			judge("cut", format, text, s.Blob[:len(s.Blob)-1], false)
			judge("longer", format, text, append(bytes.Clone(s.Blob), 0), false)
			judge("with a zero before it", format, text, append([]byte{0}, s.Blob...), false)
			judge("with the modulus added", format, text, new(big.Int).Add(new(big.Int).SetBytes(s.Blob), key.N).Bytes(), false)
			for i := 0; i < len(s.Blob); i += 37 {
				flipped := bytes.Clone(s.Blob)
				flipped[i] ^= 1
				judge(fmt.Sprintf("byte %d changed", i), format, text, flipped, false)
			}
			other := ssh.KeyAlgoRSASHA256
			if format == other {
				other = ssh.KeyAlgoRSASHA512
			}
			judge("of the other hash", other, text, s.Blob, false)
		}
		// A message that is encoded otherwise, such as with padding that is too short or with
		// something behind the digest, is refused.
		private := func(encoded []byte) []byte {
			return new(big.Int).Exp(new(big.Int).SetBytes(encoded), key.D, key.N).FillBytes(make([]byte, bits/8))
		}
		text := []byte("text")
		good, err := signer.(ssh.AlgorithmSigner).SignWithAlgorithm(rand.Reader, text, ssh.KeyAlgoRSASHA256)
		if err != nil {
			t.Fatal(err)
		}
		encoded := new(big.Int).Exp(new(big.Int).SetBytes(good.Blob), big.NewInt(int64(key.E)), key.N).FillBytes(make([]byte, bits/8))
		judge("encoded by hand", ssh.KeyAlgoRSASHA256, text, private(encoded), true)
		info := encoded[len(encoded)-len(digestInfoSHA256)-32:]
		short := append([]byte{0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0}, info...)
		judge("with little padding and bytes behind it", ssh.KeyAlgoRSASHA256, text, private(append(short, bytes.Repeat([]byte{7}, bits/8-len(short))...)), false)
		of2 := bytes.Clone(encoded)
		of2[1] = 2
		judge("of another block type", ssh.KeyAlgoRSASHA256, text, private(of2), false)
		gap := bytes.Clone(encoded)
		gap[20] = 0xfe
		judge("with a gap in its padding", ssh.KeyAlgoRSASHA256, text, private(gap), false)
		if verifyRSA(&key.PublicKey, ssh.KeyAlgoRSA, text, good.Blob) == nil {
			t.Error("SHA-1: got it taken, want it refused")
		}
	}
}

// A signature that begins with a zero may come without it.
func TestAnRSASignatureMayLackItsLeadingZeros(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100_000 {
		text := fmt.Append(nil, i)
		s, err := signer.(ssh.AlgorithmSigner).SignWithAlgorithm(rand.Reader, text, ssh.KeyAlgoRSASHA256)
		if err != nil {
			t.Fatal(err)
		}
		if s.Blob[0] != 0 {
			continue
		}
		if err := verifyRSA(&key.PublicKey, s.Format, text, s.Blob[1:]); err != nil {
			t.Errorf("got %v, want it taken", err)
		}
		return
	}
	t.Fatal("got no signature that begins with a zero")
}

func TestAnRSAKeyWithALargeExponentIsRefused(t *testing.T) {
	n := new(big.Int).Lsh(big.NewInt(1), 2047)
	n.SetBit(n, 0, 1)
	for e, want := range map[int]bool{3: true, 65537: true, 65539: false} {
		key, err := ssh.NewPublicKey(&rsa.PublicKey{N: n, E: e})
		if err != nil {
			t.Fatal(err)
		}
		if err := checkKey(key); (err == nil) != want {
			t.Errorf("exponent %d: got %v, want it taken: %v", e, err, want)
		}
	}
}
