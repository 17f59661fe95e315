package auth

import (
	"crypto/rsa"
	"math/big"
	"testing"

	"golang.org/x/crypto/ssh"
)

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
