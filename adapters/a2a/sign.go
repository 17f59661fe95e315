package a2a

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/gowebpki/jcs"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// keysPath is where the public key of signatures is, as a JSON Web Key Set.
const keysPath = Path + "/jwks.json"

// Signer signs cards (section 8.4): with ES256, over the canonical form of the card.
type Signer struct {
	key  *ecdsa.PrivateKey
	id   string
	keys []byte // the public key, as a JSON Web Key Set
}

// NewSigner returns a Signer with the private key in a PEM text: an EC key on the curve
// P-256, in the form of SEC 1 or of PKCS #8. The error says what is wrong with another one.
func NewSigner(text []byte) (*Signer, error) {
	key, err := readKey(text)
	if err != nil {
		return nil, err
	}
	if key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("the key is on the curve %s: want P-256, as from openssl ecparam -name prime256v1 -genkey -noout", key.Curve.Params().Name)
	}
	public := jose.JSONWebKey{Key: key.Public(), Algorithm: string(jose.ES256), Use: "sig"}
	sum, err := public.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, err
	}
	s := &Signer{key: key, id: base64.RawURLEncoding.EncodeToString(sum)}
	public.KeyID = s.id
	s.keys, err = json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{public}})
	return s, err
}

// readKey reads the first private key of a PEM text. Tools write parameters of the curve
// before it.
func readKey(text []byte) (*ecdsa.PrivateKey, error) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return nil, errors.New("no private key: want a PEM file with an EC PRIVATE KEY or a PRIVATE KEY")
		}
		switch block.Type {
		case "EC PRIVATE KEY":
			return x509.ParseECPrivateKey(block.Bytes)
		case "PRIVATE KEY":
			key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return nil, err
			}
			ec, ok := key.(*ecdsa.PrivateKey)
			if !ok {
				return nil, fmt.Errorf("the key is a %T: want an EC key on the curve P-256", key)
			}
			return ec, nil
		}
	}
}

// sign returns the signature of a card. keys is the address of the public key.
func (s *Signer) sign(card wire.Card, keys string) (wire.Signature, error) {
	payload, err := canonical(card)
	if err != nil {
		return wire.Signature{}, err
	}
	opts := (&jose.SignerOptions{}).WithType("JOSE").WithHeader("jku", keys)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: s.key, KeyID: s.id}}, opts)
	if err != nil {
		return wire.Signature{}, err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return wire.Signature{}, err
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		return wire.Signature{}, err
	}
	parts := strings.Split(text, ".")
	return wire.Signature{Protected: parts[0], Signature: parts[2]}, nil
}

// canonical returns what a signature of a card is over: its JSON in the form of RFC 8785,
// without signatures and without what is empty. The specification drops what has its default;
// its SDKs drop all that is empty, also in required members, and a card of ours has no
// required member that is.
func canonical(card wire.Card) ([]byte, error) {
	card.Signatures = nil
	var v any
	if err := strictjson.ParseValid(strictjson.Encode(card)).Decode(&v); err != nil {
		return nil, err
	}
	return jcs.Transform(strictjson.Encode(withoutEmpty(v)))
}

// withoutEmpty returns a JSON value without empty strings, lists and objects; nil if it is
// one itself.
func withoutEmpty(v any) any {
	switch v := v.(type) {
	case string:
		if v == "" {
			return nil
		}
	case []any:
		kept := v[:0]
		for _, item := range v {
			if item = withoutEmpty(item); item != nil {
				kept = append(kept, item)
			}
		}
		if len(kept) == 0 {
			return nil
		}
		return kept
	case map[string]any:
		for key, item := range v {
			if item = withoutEmpty(item); item == nil {
				delete(v, key)
			} else {
				v[key] = item
			}
		}
		if len(v) == 0 {
			return nil
		}
	}
	return v
}
