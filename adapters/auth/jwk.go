package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"slices"

	"github.com/go-jose/go-jose/v4"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// maxKeys bounds the keys of a set.
const maxKeys = 100

// publicKey is a key of a set.
type publicKey struct {
	id      string
	public  crypto.PublicKey
	methods []string // the algorithms that it may be used with
}

func (k publicKey) signs(method string) bool { return slices.Contains(k.methods, method) }

// readKeySet reads a JSON Web Key Set (RFC 7517). Keys that cannot verify a token are left
// out: those of other types, for encryption, weak or with a private part. An error says that
// none is left, or that this is no set.
func readKeySet(data []byte) ([]publicKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := strictjson.Decode(data, strictjson.Limits{}, &set); err != nil {
		return nil, err
	}
	if len(set.Keys) > maxKeys {
		return nil, errors.New("it has more than 100 keys")
	}
	var all []publicKey
	for _, text := range set.Keys {
		if key, ok := readPublicKey(text); ok {
			all = append(all, key)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("it has no key that could verify a token")
	}
	return all, nil
}

// readPublicKey reads a key, without certificates that may be beside it.
func readPublicKey(text []byte) (publicKey, bool) {
	var plain struct {
		Type     string `json:"kty"`
		ID       string `json:"kid,omitempty"`
		Method   string `json:"alg,omitempty"`
		Use      string `json:"use,omitempty"`
		Modulus  string `json:"n,omitempty"`
		Exponent string `json:"e,omitempty"`
		Curve    string `json:"crv,omitempty"`
		X        string `json:"x,omitempty"`
		Y        string `json:"y,omitempty"`
		// A set that publishes these has been made by mistake.
		Secret  json.RawMessage `json:"k,omitempty"`
		Private json.RawMessage `json:"d,omitempty"`
	}
	if strictjson.Decode(text, strictjson.Limits{}, &plain) != nil || plain.Secret != nil || plain.Private != nil ||
		plain.Use != "" && plain.Use != "sig" {
		return publicKey{}, false
	}
	var key jose.JSONWebKey
	if key.UnmarshalJSON(strictjson.Encode(plain)) != nil || !key.Valid() || !key.IsPublic() {
		return publicKey{}, false
	}
	methods := methodsOf(key.Key)
	if plain.Method != "" {
		methods = slices.DeleteFunc(methods, func(m string) bool { return m != plain.Method })
	}
	return publicKey{plain.ID, key.Key, methods}, len(methods) > 0
}

// methodsOf returns the algorithms that a public key may be used with (RFC 7518, section 3).
func methodsOf(key crypto.PublicKey) []string {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if minRSA <= k.N.BitLen() && k.N.BitLen() <= 2*maxRSA {
			return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
		}
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256():
			return []string{"ES256"}
		case elliptic.P384():
			return []string{"ES384"}
		case elliptic.P521():
			return []string{"ES512"}
		}
	case ed25519.PublicKey:
		return []string{"EdDSA"}
	}
	return nil
}
