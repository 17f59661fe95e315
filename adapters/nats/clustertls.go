package nats

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// errOtherSecret is that of a peer with another secret.
var errOtherSecret = errors.New("the peer does not have the secret of the cluster")

// tlsOf makes the TLS settings of connections between hubs of the secret they share: its key
// follows from the secret, and each side takes that key only.
func tlsOf(secret string) (*tls.Config, error) {
	seed, err := hkdf.Key(sha256.New, []byte(secret), nil, "the key of a Dragoman cluster", ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("making the key of the cluster: %w", err)
	}
	key := ed25519.NewKeyFromSeed(seed)
	about := x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(100, 0, 0),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	public := key.Public()
	der, err := x509.CreateCertificate(rand.Reader, &about, &about, public, crypto.Signer(key))
	if err != nil {
		return nil, fmt.Errorf("making the certificate of the cluster: %w", err)
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:   tls.RequireAnyClientCert,
		// There is no authority: VerifyConnection compares the key.
		InsecureSkipVerify: true, //nolint:gosec // see above
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) > 0 {
				if theirs, is := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey); is && bytes.Equal(theirs, public.(ed25519.PublicKey)) {
					return nil
				}
			}
			return errOtherSecret
		},
	}, nil
}
