package credentials

import (
	"errors"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// ReadAuth reads all files of the settings of authentication but the rules. Client certificates
// and Unix users are left to the caller. All mistakes are reported together.
func ReadAuth(c config.Auth) (s auth.Settings, err error) {
	var mistakes [4]error
	s.Tokens, mistakes[0] = ReadTokens(c.Tokens)
	s.Keys, mistakes[1] = ReadKeys(c.SSHKeys)
	s.Issuers, mistakes[2] = ReadIssuers(c.JWT)
	mistakes[3] = s.Registration.UnmarshalText([]byte(c.Registration))
	if err := errors.Join(mistakes[:]...); err != nil {
		return auth.Settings{}, err
	}
	return s, nil
}
