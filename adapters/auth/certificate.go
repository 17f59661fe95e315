package auth

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// certificate returns the principal of a verified chain: the one URI of the leaf, else its
// common name. TLS has verified the chain when the connection began; that its authority is
// still one and the leaf has not expired is checked for each request.
func (s *state) certificate(chain []*x509.Certificate) (core.Principal, error) {
	leaf, root := chain[0], authority(sha256.Sum256(chain[len(chain)-1].Raw))
	name := leaf.Subject.CommonName
	switch {
	case !s.authorities[root]:
		return core.Principal{}, refused("the client certificate is of an authority that is not in tls.client_ca: connect without one, or with another")
	case !time.Now().Before(leaf.NotAfter):
		return core.Principal{}, refused("the client certificate has expired: renew it")
	case len(leaf.URIs) > 1:
		return core.Principal{}, refused("the client certificate has %d URIs in its subjectAltName and could be any of them: issue one with a single URI", len(leaf.URIs))
	case len(leaf.URIs) == 1:
		name = leaf.URIs[0].String()
	case commonNames(leaf) > 1:
		return core.Principal{}, refused("the client certificate has %d common names and could be any of them: issue one with a single one, or with a URI in its subjectAltName", commonNames(leaf))
	case name == "":
		return core.Principal{}, refused("the client certificate names nobody: issue one with a URI in its subjectAltName, or with a common name")
	}
	if err := CheckPrincipal(name); err != nil {
		return core.Principal{}, refused("the client certificate does not name a %v", err)
	}
	return core.Principal{ID: name, Authenticated: true, Until: leaf.NotAfter, Proof: proofCertificate + hex.EncodeToString(root[:])}, nil
}

// commonNames returns how many common names the subject of a certificate has.
func commonNames(of *x509.Certificate) (n int) {
	for _, one := range of.Subject.Names {
		if one.Type.Equal(asn1.ObjectIdentifier{2, 5, 4, 3}) {
			n++
		}
	}
	return n
}

// knowsAuthority reports whether certificates of an authority are accepted, by the rest of
// their proof.
func (s *state) knowsAuthority(hash string) bool {
	b, err := hex.DecodeString(hash)
	return err == nil && len(b) == len(authority{}) && s.authorities[authority(b)]
}

// valid reports whether the proof of the principal has not expired.
func valid(p core.Principal) bool { return p.Until.IsZero() || time.Now().Before(p.Until) }
