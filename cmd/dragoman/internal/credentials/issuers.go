package credentials

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// maxSecretBytes bounds the secret of an issuer.
const maxSecretBytes = 4096

// ReadIssuers returns the issuers of tokens (the setting auth.jwt), and reads their secret
// files. All mistakes are reported together, and none quotes a secret.
func ReadIssuers(list config.Issuers) ([]auth.Issuer, error) {
	var all []auth.Issuer
	var mistakes []error
	for _, one := range list {
		of := auth.Issuer{
			Issuer: one.Issuer, Audience: one.Audience, JWKS: one.JWKS, PrincipalClaim: one.PrincipalClaim, RolesClaim: one.RolesClaim,
		}
		if one.SecretFile != "" {
			var err error
			if of.Secret, err = readSecret(one.SecretFile); err != nil {
				mistakes = append(mistakes, fmt.Errorf("auth.jwt: %s: %w", one.SecretFile, err))
			}
		}
		all = append(all, of)
	}
	if err := errors.Join(mistakes...); err != nil {
		return nil, err
	}
	return all, nil
}

// readSecret reads a secret, without the end of its line.
func readSecret(path string) ([]byte, error) {
	data, err := readAtMost(path, maxSecretBytes, "a file with the secret")
	if err != nil {
		return nil, err
	}
	secret := bytes.TrimRight(data, "\r\n")
	if len(secret) < auth.MinSecretBytes {
		return nil, fmt.Errorf("the secret has %d bytes: want at least %d, such as openssl rand -hex 32 prints", len(secret), auth.MinSecretBytes)
	}
	return secret, nil
}
